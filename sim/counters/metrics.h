// Counters that follow from the trace alone, exactly, under Nsight Compute's names and in its units; and the list of
// all metrics that a prediction holds.
#pragma once

#include <string>
#include <vector>

#include "counters/metric_set.h"
#include "trace/trace.h"

namespace forewarp {

struct CountSummary;

/// One counter: name, unit, meaning, architectures, and how it follows from the summary.
struct ExactMetric {
  const char* name;
  const char* unit;
  const char* meaning;
  int from_sm;  ///< first architecture that has it
  int to_sm;    ///< last
  double (*value)(const CountSummary&);
};

const std::vector<ExactMetric>& exact_metric_table();

/// Every exact metric that the trace's architecture has. Ratios over nothing are 0.
MetricSet exact_metrics(const KernelTrace& trace);

/// For `forewarp describe metrics`: exact ones first, then those that need time. Names hold <placeholders> where a
/// family differs in a word.
struct MetricDescription {
  std::string name, unit, meaning;
  bool exact = false;  ///< follows from the trace alone
};
std::vector<MetricDescription> describe_metrics();

}  // namespace forewarp
