// What a few detailed windows say about all of a launch: a ratio estimator over a systematic sample, with its interval.
#pragma once

#include <cstddef>
#include <span>

namespace forewarp {

/// The value that Student's t stays below in 97.5 of 100 cases; 1.96 with many degrees of freedom.
double student_975(double degrees);

/// Two neighbouring windows of a systematic sample.
struct Neighbours {
  double difference = 0;  ///< of their ratios, in parts of the ratio
  double apart = 0;       ///< cycles from one to the other
  double gap = 0;         ///< ... of those for which the mean of the two stands
};

/// Standard deviation of a window's ratio, in parts of it.
double relative_deviation(std::span<const Neighbours>);

/// Half of the 95 % confidence interval of the cycles of all gaps, and of `open` ones for which earlier windows stand.
/// The variance comes from the differences of neighbours (Wolter's estimator for systematic samples), so that a drift
/// over the launch does not count as noise; infinite where there are none.
double half_interval(std::span<const Neighbours>, double open);

/// Of what was gained in all, the share that will last: gains in both halves of a time, which add up to about 0. Their
/// covariance is the variance that lasts (split-half reliability); the rest of it was chance.
double lasting_share(std::span<const double> first_half, std::span<const double> second_half);

/// Where the mean of what follows one after another last changed; 0 where it did not. Binary segmentation: a sequence
/// is parted where the t statistic of both sides is largest, if that is more than chance makes it once in a hundred
/// times, and its later part again.
std::size_t last_change(std::span<const double> values);

}  // namespace forewarp
