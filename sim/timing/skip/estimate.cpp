#include "timing/skip/estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace forewarp {

/// Hill's expansion about the normal distribution is within 1 % from three degrees on; below, t is known in closed form
/// for one and two, and in between 1 / t is nearly linear.
double student_975(double degrees) {
  constexpr double kOne = 12.706, kTwo = 4.303, kThree = 3.182, kNormal = 1.95996;
  const auto between = [](double a, double b, double part) { return 1 / ((1 - part) / a + part / b); };
  if (degrees <= 1) return kOne;
  if (degrees < 2) return between(kOne, kTwo, degrees - 1);
  if (degrees < 3) return between(kTwo, kThree, degrees - 2);
  const double z = kNormal, z3 = z * z * z, z5 = z3 * z * z;
  return z + (z3 + z) / (4 * degrees) + (5 * z5 + 16 * z3 + 3 * z) / (96 * degrees * degrees);
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
  double variance = 0, of_variance = 0;
  for (const Neighbours& n : neighbours) {
    const double gap = n.gap * n.gap * n.difference * n.difference / 2;
    variance += gap;
    of_variance += gap * gap;
  }
  if (open > 0) {
    if (neighbours.empty()) return std::numeric_limits<double>::infinity();
    const double of_open = std::pow(open * relative_deviation(neighbours), 2);
    variance += of_open;
    of_variance += of_open * of_open / static_cast<double>(neighbours.size());
  }
  if (variance <= 0) return 0;
  return student_975(variance * variance / of_variance) * std::sqrt(variance);  // degrees as Satterthwaite has them
}

}  // namespace forewarp
