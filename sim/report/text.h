// Predictions as a report for people, in the order of Nsight Compute's sections.
#pragma once

#include <span>
#include <string>

#include "report/prediction.h"

namespace forewarp {

/// One launch: the whole report. Several: a line each, then each one's bottleneck.
std::string write_text(std::span<const Prediction> predictions);

}  // namespace forewarp
