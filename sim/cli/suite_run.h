// Predicts the cases of a suite on one GPU: what validate and compare share.
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
  std::vector<ValidationFailure> unmeasured;  ///< cases that the suite names without a profile
};

struct SuiteOptions {
  SimulateOptions simulation;
  unsigned threads = 1;
  std::optional<PredictionCache> cache;
};

/// One run a GPU name or file, all cases side by side. A trace that lists no cases stands for those that were
/// measured on the suite's GPU.
std::vector<SuiteRun> run_suite(const Suite&, const std::vector<std::string>& gpus, const SuiteOptions&);

/// The rows of validation/published with what is predicted for each.
std::vector<PublishedResult> run_published(const SuiteOptions&);

}  // namespace forewarp::cli
