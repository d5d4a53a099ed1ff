#include "timing/skip/estimate.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace forewarp {

double half_interval(std::span<const double> rates) {
  if (rates.size() < 2) return std::numeric_limits<double>::infinity();
  double sum = rates[0], squares = 0;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    sum += rates[i];
    squares += (rates[i] - rates[i - 1]) * (rates[i] - rates[i - 1]) / 2;
  }
  const auto n = static_cast<double>(rates.size());
  const boost::math::students_t t(n - 1);
  return quantile(t, 0.975) * std::sqrt(squares / (n - 1) / n) / (sum / n);
}

}  // namespace forewarp
