// The text report, in the order of Nsight Compute's sections.
#pragma once

#include <span>
#include <string>

#include "base/style.h"
#include "report/prediction.h"

namespace forewarp {

/// One launch: the full report. Several: a line each, then the bottleneck of each.
std::string write_text(std::span<const Prediction> predictions, Style style = Style());

}  // namespace forewarp
