#include "report/accuracy.h"

#include <catch2/catch.hpp>

using namespace forewarp;

TEST_CASE("errors are relative to the measurement") {
  CHECK(error_pct(110, 100) == Approx(10));
  CHECK(error_pct(90, 100) == Approx(10));
  CHECK(error_pct(0, 0) == 0);
  CHECK(error_pct(5, 0) == 100);
}

TEST_CASE("a summary keeps the tail") {
  const ErrorSummary s = summarize({10, 0, 20, 30, 40, 50, 60, 70, 80, 90, 100});
  CHECK(s.cases == 11);
  CHECK(s.mean == Approx(50));
  CHECK(s.median == Approx(50));
  CHECK(s.p90 == Approx(90));
  CHECK(s.worst == 100);
  CHECK(summarize({}).cases == 0);
  CHECK(summarize({1, 2}).p90 == Approx(1.9));
}

TEST_CASE("rank correlation sees order alone") {
  const std::vector<double> a{1, 2, 3, 4};
  CHECK(rank_correlation(a, std::vector<double>{10, 100, 1000, 10000}) == Approx(1));
  CHECK(rank_correlation(a, std::vector<double>{4, 3, 2, 1}) == Approx(-1));
  CHECK(rank_correlation(a, std::vector<double>{5, 5, 5, 5}) == 0);
  CHECK(rank_correlation(a, std::vector<double>{1, 2, 2, 4}) == Approx(0.9486833));
  CHECK(rank_correlation({}, {}) == 0);
}
