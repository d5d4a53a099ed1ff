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

double half_interval(std::span<const double> rates, std::span<const double> shares, std::span<const double> unsteady) {
  double mean = 0, variance = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) mean += shares[i] * rates[i];
  for (std::size_t i = 0; i < rates.size(); ++i)
    variance += shares[i] * shares[i] *
                (std::pow(rates[i] - mean, 2) + std::pow(rates[i] * unsteady[i] / 2, 2));  // of the mean of two halves
  return student_t(static_cast<double>(rates.size() - 1)) * std::sqrt(variance) / mean;
}

Eigen::ArrayXd rates_of_each(const Eigen::ArrayXXd& progress) {
  const Eigen::Index times = progress.cols(), half = times / 2;
  if (half < 2) return Eigen::ArrayXd::Ones(progress.rows());
  // By how much more than in the mean, in a part of the times.
  const auto more = [&](Eigen::Index first, Eigen::Index count) {
    const auto some = progress.middleCols(first, count);
    const Eigen::ArrayXd mean = some.colwise().mean().transpose();
    const Eigen::VectorXd from = mean - mean.mean();
    const double squares = from.squaredNorm();
    if (squares == 0) return Eigen::ArrayXd(Eigen::ArrayXd::Zero(some.rows()));
    return Eigen::ArrayXd((some.matrix() * from).array() / squares - 1);
  };
  const Eigen::ArrayXd one = more(0, half), other = more(half, times - half);
  const double squares = one.square().sum() * other.square().sum();
  const double alike = squares > 0 ? std::max(0.0, (one * other).sum() / std::sqrt(squares)) : 0;
  return (2 * alike / (1 + alike) * more(0, times)).exp();  // none stands still
}

}  // namespace forewarp
