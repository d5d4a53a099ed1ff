#include "report/calibration.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

Quantity made(bool rate) { return {"made", "micro_made", "low", "high", 100, "cycles", "m", rate, {}}; }

}  // namespace

TEST_CASE("a quantity is the slope between two cases") {
  const auto cost = slope_of(made(false), {1000, 990, 1010}, {3000, 2980, 3020});
  REQUIRE(cost);
  CHECK(cost->value == Approx(20));
  CHECK(cost->spread == Approx(0.3));
  CHECK(slope_of(made(true), {1000, 1000, 1000}, {3000, 3000, 3000})->value == Approx(0.05));
  CHECK_FALSE(slope_of(made(false), {3000, 3000, 3000}, {1000, 1000, 1000}));
}

TEST_CASE("a leaf is proposed where the quantity follows it") {
  // 3 cycles of the quantity for each of the leaf: 8 more are 24 more.
  CHECK(*propose(20, 21, 124, 100, 103) == Approx(28));
  CHECK(*propose(20, 21, 94, 100, 103) == Approx(18));
  CHECK_FALSE(propose(20, 21, 124, 100, 100.1));      // does not follow
  CHECK_FALSE(propose(20, 21, 1000, 100, 103));       // too far to believe a slope
  CHECK_FALSE(propose(20, 21, 10, 100, 103));         // below nothing
  CHECK(*propose(0, 1, 102, 100, 101) == Approx(2));  // from nothing a step at a time
}
