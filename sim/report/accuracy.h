// How far predictions are from measurements.
#pragma once

#include <span>
#include <vector>

namespace forewarp {

/// Distribution of errors in percent.
struct ErrorSummary {
  std::size_t cases = 0;
  double mean = 0, median = 0, p90 = 0, worst = 0;
};

/// |predicted - measured| / |measured| in percent; 0 if both are 0, 100 if only the measured value is.
double error_pct(double predicted, double measured);
/// Percentiles interpolate between neighbours.
ErrorSummary summarize(std::vector<double> errors);
/// Spearman's rank correlation; ties get their mean rank. 0 for fewer than two values or if one side is constant.
double rank_correlation(std::span<const double> a, std::span<const double> b);

}  // namespace forewarp
