#include "timing/loop_progress.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

BlockLoop block(std::uint32_t cls, std::uint32_t sm_warps, double position) {
  BlockLoop b;
  b.cls = cls;
  b.sm_warps = sm_warps;
  b.position = position;
  return b;
}

}  // namespace

TEST_CASE("blocks of one class on SMs that hold as many warps are reckoned to go alike, others by themselves") {
  LoopProgress earlier, later;
  earlier.blocks = {block(0, 8, 1), block(0, 8, 1), block(0, 16, 2), block(1, 8, 3)};
  later.blocks = {block(0, 8, 5), block(0, 8, 7), block(0, 16, 4), block(1, 8, 13)};
  const std::vector<double> moved = moved_between(earlier, later);
  CHECK(moved == std::vector<double>{4, 6, 2, 10});
  CHECK(steady_moves(later, moved) == std::vector<double>{5, 5, 2, 10});
}
