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

/// How fast each of some (rows) goes, in times of their mean, by how far they were at some times (columns): the slope
/// of each over their mean (least squares). What differs by chance or by a phase is not the same in two halves of the
/// times, so slopes are shrunk as far as those do not agree (split-half reliability, Spearman-Brown).
Eigen::ArrayXd rates_of_each(const Eigen::ArrayXXd& progress);

}  // namespace forewarp
