// Predictions as JSON, in the shape other tools depend on: {"forewarp", "gpu", "cases": [...]}.
#pragma once

#include <span>
#include <string>

#include "report/prediction.h"

namespace forewarp {

/// All predictions are of one GPU. Ends with a newline; the same bytes for the same predictions.
std::string write_json(const std::string& gpu, std::span<const Prediction> predictions);

}  // namespace forewarp
