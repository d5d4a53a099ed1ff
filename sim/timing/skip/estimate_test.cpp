#include "timing/skip/estimate.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace forewarp;

TEST_CASE("Student's t") {
  CHECK(student_975(1) == Approx(12.706));
  CHECK(student_975(2) == Approx(4.303));
  for (const auto& [degrees, value] :
       std::vector<std::pair<double, double>>{{3, 3.182}, {5, 2.571}, {9, 2.262}, {30, 2.042}})
    CHECK(student_975(degrees) == Approx(value).epsilon(0.012));
  CHECK(student_975(1.5) < 12.706);
  CHECK(student_975(1.5) > 4.303);
}

TEST_CASE("the interval holds the sum in 95 of 100 samples") {
  // Rates that differ from window to window about a mean that drifts; each gap goes at the mean of its ends.
  std::mt19937 random(1);
  for (const int windows : {3, 6, 20}) {
    for (const double drift : {0.0, 0.02}) {
      int inside = 0;
      constexpr int kSamples = 2000;
      for (int sample = 0; sample < kSamples; ++sample) {
        std::normal_distribution<double> noise(0, 0.03);
        std::vector<double> rates;
        for (int w = 0; w < windows; ++w) rates.push_back(1 + drift * w / windows + noise(random));
        std::vector<Neighbours> neighbours;
        double estimate = 0, truth = 0;
        for (int w = 1; w < windows; ++w) {
          const double gap = 1000 * (rates[w - 1] + rates[w]) / 2;
          neighbours.push_back({rates[w] / rates[w - 1] - 1, gap, gap});
          estimate += gap;
          truth += 1000 * (1 + drift * (w - 0.5) / windows);
        }
        inside += std::abs(estimate - truth) <= half_interval(neighbours, 0);
      }
      INFO(windows << " windows, drift " << drift);
      CHECK(inside >= kSamples * 93 / 100);
      CHECK(inside <= kSamples * 98 / 100);
    }
  }
}

TEST_CASE("without a second window nothing is known") {
  CHECK(std::isinf(half_interval({}, 100)));
  CHECK(half_interval({}, 0) == 0);
}

TEST_CASE("what was gained in both halves lasts") {
  const std::vector<double> gains{1, -2, 1}, lost{-1, 2, -1}, none{0, 0, 0};
  CHECK(lasting_share(gains, gains) == Approx(1));
  CHECK(lasting_share(gains, none) == 0);
  CHECK(lasting_share(gains, lost) == 0);
  CHECK(lasting_share(none, none) == 0);
  // Three in one half, one in the other: of a mean of two, three quarters.
  CHECK(lasting_share(std::vector<double>{3, -3}, std::vector<double>{1, -1}) == Approx(0.75));
}

TEST_CASE("the last change of a mean is found where there is one") {
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0, 1);
  for (const std::size_t many : {8, 15, 40}) {
    INFO(many);
    constexpr int kSamples = 2000;
    int alarms = 0, near = 0;
    for (int sample = 0; sample < kSamples; ++sample) {
      std::vector<double> values;
      for (std::size_t i = 0; i < many; ++i) values.push_back(100 + noise(random));
      alarms += last_change(values) > 0;
      // Down and up again: the later one counts.
      const std::size_t down = many / 4, up = many / 2;
      for (std::size_t i = 0; i < many; ++i) values[i] += i < down ? 0 : i < up ? -10 : 10;
      near += last_change(values) == up;
    }
    CHECK(alarms <= kSamples * 2 / 100);
    if (many >= 15) CHECK(near >= kSamples * 90 / 100);
  }
  CHECK(last_change({}) == 0);
  CHECK(last_change(std::vector<double>(30, 0.1)) == 0);
  CHECK(last_change(std::vector<double>{1, 1, 1, 2, 2, 2}) == 3);
}
