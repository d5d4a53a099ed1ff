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
  // The residuals by hand: the mean is 1.
  CHECK(half_interval(alike, std::array{0.0, 0.5, 0.5}) == Approx(4.303 * std::sqrt(2 * 0.05 * 0.05)).epsilon(0.001));
  CHECK(half_interval(std::array{1.0, 1.0, 3.0}, std::array{0.0, 0.99, 0.01}) < 0.13);
  CHECK(half_interval(std::array{1.0, 1.0, 3.0}, std::array{0.0, 0.5, 0.5}) > 1);
  CHECK(half_interval(std::array{2.0, 2.0, 2.0}, std::array{0.2, 0.3, 0.5}) == Approx(0).margin(1e-12));
}
