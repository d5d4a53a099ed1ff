#include "timing/skip/loop_bodies.h"

#include <catch2/catch.hpp>

namespace forewarp {
namespace {

TEST_CASE("Two times are as unlike as what one of them does and the other does not") {
  CHECK(unlikeness(BodyVector{1, 1, 2}, BodyVector{10, 10, 20}) == 0);
  CHECK(unlikeness(BodyVector{3, 1, 0}, BodyVector{3, 0, 1}) == Approx(0.25));
  CHECK(unlikeness(BodyVector{1, 0}, BodyVector{0, 5}) == 1);
  CHECK(unlikeness(BodyVector{0, 0}, BodyVector{1, 5}) == 1);
}

TEST_CASE("The time that did most nearly what is left is found, of equal ones the longest") {
  // Forty of the first body were done, ten at a time, then twenty of the second, of which a hundred are left.
  std::vector<BodyVector> left;
  for (const double first : {40, 30, 20, 10, 0}) left.push_back({first, 120});
  left.push_back({0, 110});
  CHECK(most_alike(left, BodyVector{0, 100}) == 4);
  // Where as much of the first is left as of the second: blocks that are still to come go through both.
  for (BodyVector& then : left) then[0] += 100;
  CHECK(most_alike(left, BodyVector{100, 100}) == 2);
  for (BodyVector& then : left) then[0] += 100;
  CHECK(most_alike(left, BodyVector{200, 100}) == 0);
}

}  // namespace
}  // namespace forewarp
