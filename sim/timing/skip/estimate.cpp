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

double half_interval(std::span<const double> rates) {
  if (rates.size() < 2) return std::numeric_limits<double>::infinity();
  double sum = rates[0], squares = 0;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    sum += rates[i];
    squares += (rates[i] - rates[i - 1]) * (rates[i] - rates[i - 1]) / 2;
  }
  const auto n = static_cast<double>(rates.size());
  return student_975(n - 1) * std::sqrt(squares / (n - 1) / n) / (sum / n);
}

}  // namespace forewarp
