#include "timing/skip/estimate.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

namespace forewarp {
namespace {

double student_t(double degrees_of_freedom) { return quantile(boost::math::students_t(degrees_of_freedom), 0.975); }

}  // namespace

double half_interval(std::span<const double> rates) {
  if (rates.size() < 2) return std::numeric_limits<double>::infinity();
  double sum = rates[0], squares = 0;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    sum += rates[i];
    squares += (rates[i] - rates[i - 1]) * (rates[i] - rates[i - 1]) / 2;
  }
  const auto n = static_cast<double>(rates.size());
  return student_t(n - 1) * std::sqrt(squares / (n - 1) / n) / (sum / n);
}

double half_interval(std::span<const double> rates, std::span<const double> shares) {
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) mean += shares[i] * rates[i];
  for (std::size_t i = 0; i < rates.size(); ++i) variance += std::pow(shares[i] * (rates[i] - mean), 2);
  return student_t(static_cast<double>(rates.size() - 1)) * std::sqrt(variance) / mean;
}

}  // namespace forewarp
