#include "timing/skip/estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forewarp {

/// The expansion about the normal distribution (Abramowitz and Stegun 26.7.5) is within 1 % from three degrees on;
/// below, t is known in closed form for one and two, and in between 1 / t is nearly linear.
double student_975(double degrees) {
  constexpr double kOne = 12.706, kTwo = 4.303, kThree = 3.182, kNormal = 1.95996;
  const auto between = [](double a, double b, double part) { return 1 / ((1 - part) / a + part / b); };
  if (degrees <= 1) return kOne;
  if (degrees < 2) return between(kOne, kTwo, degrees - 1);
  if (degrees < 3) return between(kTwo, kThree, degrees - 2);
  const double z = kNormal, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * degrees * degrees * degrees);
}

double relative_deviation(std::span<const Neighbours> neighbours) {
  double squares = 0, apart = 0;
  for (const Neighbours& n : neighbours) {
    squares += n.apart * n.difference * n.difference / 2;
    apart += n.apart;
  }
  return apart > 0 ? std::sqrt(squares / apart) : std::numeric_limits<double>::infinity();
}

double half_interval(std::span<const Neighbours> neighbours, double open) {
  double squares = open * open;
  for (const Neighbours& n : neighbours) squares += n.gap * n.gap;
  if (squares <= 0) return 0;
  if (neighbours.empty()) return std::numeric_limits<double>::infinity();
  // Each gap has the mean of two windows; of neighbouring gaps one is the same.
  return student_975(static_cast<double>(neighbours.size())) * relative_deviation(neighbours) * std::sqrt(squares);
}

double lasting_share(std::span<const double> first_half, std::span<const double> second_half) {
  double variance = 0, covariance = 0;
  for (std::size_t i = 0; i < first_half.size(); ++i) {
    const double mean = (first_half[i] + second_half[i]) / 2;
    variance += mean * mean;
    covariance += first_half[i] * second_half[i];
  }
  return variance > 0 ? std::clamp(covariance / variance, 0.0, 1.0) : 0;
}

std::size_t last_change(std::span<const double> values) {
  constexpr std::size_t kLeast = 3;  // on each side
  // Of normal values without a change, in one of a hundred sequences of fifteen, two of eight (estimate_test.cpp).
  constexpr double kSignificant = 4.5;
  constexpr double kRounding = 1e-9;  // of the mean: less than that is no difference
  std::size_t since = 0;
  while (true) {
    const std::span<const double> part = values.subspan(since);
    double sum = 0, squares = 0;
    for (const double value : part) {
      sum += value;
      squares += value * value;
    }
    double before = 0, most = kSignificant;
    std::size_t at = 0;
    for (std::size_t k = 1; k + kLeast <= part.size(); ++k) {
      before += part[k - 1];
      if (k < kLeast) continue;
      const auto n1 = static_cast<double>(k), n2 = static_cast<double>(part.size() - k);
      const double first = before / n1, second = (sum - before) / n2;
      const double within = std::max(0.0, squares - n1 * first * first - n2 * second * second) / (n1 + n2 - 2);
      const double error = std::sqrt(within * (1 / n1 + 1 / n2)) + kRounding * std::abs(sum) / (n1 + n2);
      if (std::abs(first - second) <= most * error) continue;
      most = std::abs(first - second) / error;
      at = k;
    }
    if (at == 0) return since;
    since += at;
  }
}

}  // namespace forewarp
