// Predictions as JSON, in the shape other tools depend on: {"forewarp", "gpu", "cases": [...]}.
#pragma once

#include <span>
#include <string>

#include "report/inputs.h"
#include "report/prediction.h"

namespace forewarp {

/// All predictions must be for one GPU. Ends with a newline; the same predictions give the same bytes.
/// `inputs`: what they were predicted from, where that is known.
std::string write_json(const GpuModel& gpu, std::span<const Prediction> predictions,
                       const ResultInputs* inputs = nullptr);

}  // namespace forewarp
