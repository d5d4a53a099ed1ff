// Joins predictions with measured profiles: errors by launch, counter, kernel class and suite.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/style.h"
#include "report/accuracy.h"
#include "report/prediction.h"
#include "report/profile.h"
#include "report/suites.h"

namespace forewarp {

/// One counter of one launch.
struct CounterPair {
  double measured = 0, predicted = 0;
};

struct ValidatedLaunch {
  std::string stem;
  const MeasuredLaunch* measured = nullptr;
  const Prediction* predicted = nullptr;
  double error = 0;  ///< of the cycles, percent
};

/// A case of the suite without an error, because it could not be predicted or was not measured.
struct ValidationFailure {
  std::string stem, case_id, message;
};

struct CounterAccuracy {
  std::string name;
  bool points = false;  ///< a percentage: errors are differences in points
  std::size_t launches = 0, exact = 0;
  double mean = 0, worst = 0;
  double weighted_pct = 0;  ///< summed differences over the sum of the measured values
  std::size_t steady = 0;   ///< launches whose measured value repeats within a tenth
  double steady_mean = 0;   ///< mean error over those
};

struct ClassAccuracy {
  std::string name;
  ErrorSummary errors;
};

struct Validation {
  Suite suite;
  std::string gpu;
  std::vector<ValidatedLaunch> launches;
  std::vector<ValidationFailure> failures;
  std::vector<CounterAccuracy> counters;  ///< by name
  std::vector<ClassAccuracy> classes;     ///< by the first part of the stem: matmul, copy, ...
  std::vector<ClassAccuracy> kinds;       ///< by measured kernel class, and those under 10 microseconds
  ErrorSummary cycles;
  double rank_correlation = 0;
  std::vector<std::string> violations;  ///< tolerances exceeded, in words; failures too
};

/// The predictions for one trace of the suite.
struct PredictedTrace {
  std::string stem;
  std::vector<Prediction> predictions;
};

/// Joins by stem, case and launch. The lists must outlive the result.
Validation validate(const Suite&, const std::string& gpu, const std::vector<PredictedTrace>&,
                    const std::vector<MeasuredLaunch>&, std::vector<ValidationFailure> failures);

std::string write_validation_text(const Validation&, Style style = Style());
std::string write_validation_json(const Validation&);

}  // namespace forewarp
