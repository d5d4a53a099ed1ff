// Predictions as JSON, in the shape other tools depend on: {"forewarp", "gpu", "cases": [...]}.
#pragma once

#include <span>
#include <string>

#include "report/prediction.h"

namespace forewarp {

/// All predictions must be for one GPU. Ends with a newline; the same predictions give the same bytes.
std::string write_json(const GpuModel& gpu, std::span<const Prediction> predictions);

}  // namespace forewarp
