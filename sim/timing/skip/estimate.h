// What a few detailed windows say about all of a launch: a ratio estimator over a systematic sample, with its interval.
#pragma once

#include <Eigen/Core>
#include <span>

namespace forewarp {

/// Half of the 95 % confidence interval of the mean of rates that were seen one after another, evenly over a launch, in
/// parts of it, by Student's t. The variance comes from the differences of neighbours (Wolter's estimator for
/// systematic samples), so that a drift over the launch does not count as noise; infinite with fewer than two.
double half_interval(std::span<const double> rates);

/// The same of rates that stand for shares of a launch: the variance is that of their weighted mean, as the residuals
/// show it and as far as each is unsteady itself. `unsteady`: by how much its two halves differ, in parts of it.
double half_interval(std::span<const double> rates, std::span<const double> shares, std::span<const double> unsteady);

/// The rate of each row, relative to the mean of all, by its progress at some times (columns): the least-squares slope
/// over the mean progress. Chance and phase differ between the first and the second half of the times, so what a row
/// deviates by is shrunk by its split-half reliability (Spearman-Brown).
Eigen::ArrayXd rates_of_each(const Eigen::ArrayXXd& progress);

}  // namespace forewarp
