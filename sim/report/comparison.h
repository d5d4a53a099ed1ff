// A table of the same cases on several GPUs, with measurements beside the predictions where available.
#pragma once

#include <string>
#include <vector>

#include "base/style.h"
#include "report/prediction.h"
#include "report/profile.h"

namespace forewarp {

/// Predictions for one GPU, and its measurements (may be empty).
struct ComparedGpu {
  std::string gpu;
  std::vector<Prediction> predictions;
  std::vector<MeasuredLaunch> measured;
};

/// Rows by case and launch, one line per GPU that has the launch.
std::string write_comparison_text(const std::string& title, const std::vector<ComparedGpu>&, Style style = Style());
std::string write_comparison_json(const std::vector<ComparedGpu>&);

}  // namespace forewarp
