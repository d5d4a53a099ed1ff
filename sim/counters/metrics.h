// Counters that follow exactly from the trace, with Nsight Compute's names and units, and the list of all metrics of a
// prediction.
#pragma once

#include <string>
#include <vector>

#include "counters/metric_set.h"
#include "trace/trace.h"

namespace forewarp {

struct CountSummary;

/// One counter: name, unit, meaning, architectures, and how it is computed from the summary.
struct ExactMetric {
  const char* name;
  const char* unit;
  const char* meaning;
  int from_sm;  ///< first architecture that has it
  int to_sm;    ///< last
  double (*value)(const CountSummary&);
};

const std::vector<ExactMetric>& exact_metric_table();

/// Every exact metric of the trace's architecture. A ratio with denominator 0 is 0.
MetricSet exact_metrics(const KernelTrace& trace);

/// For `forewarp describe metrics`: exact metrics first, then those that need timing. Names have <placeholders> where a
/// family differs in one word.
struct MetricDescription {
  std::string name, unit, meaning;
  bool exact = false;  ///< follows from the trace alone
};
std::vector<MetricDescription> describe_metrics();

}  // namespace forewarp
