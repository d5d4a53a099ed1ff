// What a few detailed windows say about all of a launch: a ratio estimator over a systematic sample, with its interval.
#pragma once

#include <span>

namespace forewarp {

/// Half of the 95 % confidence interval of the mean of rates that were seen one after another, evenly over a launch, in
/// parts of it, by Student's t. The variance comes from the differences of neighbours (Wolter's estimator for
/// systematic samples), so that a drift over the launch does not count as noise; infinite with fewer than two.
double half_interval(std::span<const double> rates);

/// The same of rates that stand for shares of a launch: the variance is that of their weighted mean, as the residuals
/// show it.
double half_interval(std::span<const double> rates, std::span<const double> shares);

}  // namespace forewarp
