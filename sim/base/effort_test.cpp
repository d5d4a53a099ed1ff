#include "base/effort.h"

#include <catch2/catch.hpp>

namespace forewarp {
namespace {

TEST_CASE("Timing has what tracing leaves of the seconds that are not the verdict's, and a little in any case") {
  Effort effort;
  CHECK(effort.seconds_left(0) == Approx(8.5));
  CHECK(effort.seconds_left(5) == Approx(3.5));
  CHECK(effort.seconds_left(100) == Approx(3));
  effort.seconds = 2;
  CHECK(effort.seconds_left(0.7) == Approx(1));
}

TEST_CASE("Seconds are work at nominal rates, never none and never too much to count") {
  Effort effort;
  CHECK(effort.counted_instructions() == 240'000'000);
  effort.seconds = 1e-12;
  CHECK(effort.counted_instructions() == 1);
  effort.seconds = 1e300;
  CHECK(effort.counted_instructions() == 1'000'000'000'000'000'000);
  effort.exact = true;
  CHECK(effort.counted_instructions() == ~std::uint64_t{0});
  CHECK(effort.block_instructions() == 0);
}

}  // namespace
}  // namespace forewarp
