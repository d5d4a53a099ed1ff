#include "timing/skip/estimate.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace forewarp;

TEST_CASE("the interval holds the mean in 95 of 100 samples") {
  // Rates that differ from window to window about one that drifts.
  std::mt19937 random(1);
  for (const int windows : {3, 6, 20}) {
    for (const double drift : {0.0, 0.02}) {
      int inside = 0;
      constexpr int kSamples = 2000;
      for (int sample = 0; sample < kSamples; ++sample) {
        std::normal_distribution<double> noise(0, 0.03);
        std::vector<double> rates;
        double sum = 0;
        for (int w = 0; w < windows; ++w) {
          rates.push_back(5 * (1 + drift * (w + 0.5) / windows + noise(random)));
          sum += rates.back();
        }
        const double mean = sum / windows;
        inside += std::abs(mean - 5 * (1 + drift / 2)) <= half_interval(rates) * mean;
      }
      INFO(windows << " windows, drift " << drift);
      CHECK(inside >= kSamples * 92 / 100);
      CHECK(inside <= kSamples * 98 / 100);
    }
  }
}

TEST_CASE("two rates are known with one degree of freedom") {
  CHECK(half_interval(std::vector<double>{1, 3}) == Approx(12.706 / 2).epsilon(0.001));
}

TEST_CASE("without a second window nothing is known") {
  CHECK(std::isinf(half_interval({})));
  CHECK(std::isinf(half_interval(std::vector<double>{1})));
  CHECK(half_interval(std::vector<double>{2, 2, 2}) == 0);
}

TEST_CASE("what stands for little widens the interval little") {
  const std::array alike{1.0, 1.1, 0.9};
  const std::array steady{0.0, 0.0, 0.0};
  // The residuals by hand: the mean is 1.
  CHECK(half_interval(alike, std::array{0.0, 0.5, 0.5}, steady) ==
        Approx(4.303 * std::sqrt(2 * 0.05 * 0.05)).epsilon(0.001));
  CHECK(half_interval(std::array{1.0, 1.0, 3.0}, std::array{0.0, 0.99, 0.01}, steady) < 0.13);
  CHECK(half_interval(std::array{1.0, 1.0, 3.0}, std::array{0.0, 0.5, 0.5}, steady) > 1);
  CHECK(half_interval(std::array{2.0, 2.0, 2.0}, std::array{0.2, 0.3, 0.5}, steady) == Approx(0).margin(1e-12));
}

TEST_CASE("windows that agree but are unsteady themselves are not sure") {
  // Half of what the halves differ by is the error of their mean.
  CHECK(half_interval(std::array{1.0, 2.0, 2.0}, std::array{0.0, 1.0, 0.0}, std::array{0.0, 0.1, 0.0}) ==
        Approx(4.303 * 0.05).epsilon(0.001));
}

TEST_CASE("rates that last are told from a phase and from chance") {
  constexpr int kEach = 100, kTimes = 16;
  const auto spread = [&](double rates, double phases) {
    Eigen::ArrayXXd progress(kEach, kTimes);
    Eigen::ArrayXd own = Eigen::ArrayXd::LinSpaced(kEach, -1, 1);
    std::mt19937 random(1);
    for (int i = 0; i < kEach; ++i)
      for (int t = 0; t < kTimes; ++t)
        progress(i, t) = 10 * t * (1 + rates * own[i]) + phases * std::uniform_real_distribution<>(-1, 1)(random);
    return std::pair(rates_of_each(progress), own);
  };
  const auto [same, unused] = spread(0, 0);
  CHECK((same == 1).all());
  const auto [clear, own] = spread(0.1, 0);
  CHECK((clear - (0.1 * own).exp()).abs().maxCoeff() < 1e-9);
  const auto [noisy, also] = spread(0.1, 2);
  CHECK((noisy - (0.1 * also).exp()).abs().mean() < 0.01);
  CHECK((spread(0, 2).first - 1).abs().mean() < 0.003);
  // One that stands still is slow, not endless; too few times say nothing.
  Eigen::ArrayXXd stuck = Eigen::ArrayXXd::Ones(2, 4);
  stuck.row(1) << 1, 2, 3, 4;
  CHECK(rates_of_each(stuck)[0] == Approx(std::exp(-1)));
  CHECK(rates_of_each(stuck.leftCols(3))[0] == 1);
  CHECK((rates_of_each(Eigen::ArrayXXd::Ones(2, 4)) == 1).all());  // nothing went on
}
