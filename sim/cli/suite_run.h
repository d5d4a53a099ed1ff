// Predicts the cases of a suite on one GPU, for validate and compare.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/prediction_cache.h"
#include "report/profile.h"
#include "report/published.h"
#include "report/suites.h"
#include "report/validation.h"

namespace forewarp::cli {

struct SuiteRun {
  std::string gpu;
  std::vector<PredictedTrace> traces;         ///< in the suite's order
  std::vector<MeasuredLaunch> measured;       ///< of the suite's cases, in the same order
  std::vector<ValidationFailure> failures;    ///< cases that could not be predicted
  std::vector<ValidationFailure> unmeasured;  ///< cases of the suite without a profile
};

struct SuiteOptions {
  SimulateOptions simulation;
  unsigned threads = 1;
  std::optional<PredictionCache> cache;
  std::vector<std::string> changes;  ///< of every GPU's numbers (--set)
  /// Predict what the suite's GPU ran at less than its clock at the clock that power left its SMs.
  bool at_measured_clock = false;
};

/// One run per GPU name or file, with all cases in parallel. A trace that lists no cases stands for those measured on
/// the suite's GPU.
std::vector<SuiteRun> run_suite(const Suite&, const std::vector<std::string>& gpus, const SuiteOptions&);

/// The rows of validation/published with a prediction for each.
std::vector<PublishedResult> run_published(const SuiteOptions&);

}  // namespace forewarp::cli
