#include "timing/skip/loop_progress.h"

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
  for (std::uint16_t sm = 0; sm < 4; ++sm) later.blocks[sm].sm = sm;
  const std::vector<double> moved = moved_between(earlier, later);
  CHECK(moved == std::vector<double>{4, 6, 2, 10});
  CHECK(steady_moves(later, moved, std::vector<double>{3, 3, 1, 5}, moved) == std::vector<double>{5, 5, 2, 10});
}

TEST_CASE("older blocks that outrun the younger of their SM are reckoned to go on so") {
  LoopProgress later;
  for (const std::uint16_t sm : {std::uint16_t{0}, std::uint16_t{1}})
    for (const std::uint64_t linear : {8u, 4u}) {
      later.blocks.push_back(block(0, 16, 0));
      later.blocks.back().sm = sm;
      later.blocks.back().linear = linear + sm;
    }
  const std::vector<double> apart{1, 5, 2, 6}, even{4, 4, 4, 4}, half{2, 2, 2, 2};
  CHECK(steady_moves(later, apart, half, apart) == std::vector<double>{1.5, 5.5, 1.5, 5.5});
  // What was seen for longer says how far apart.
  CHECK(steady_moves(later, apart, half, even) == std::vector<double>{3.5, 3.5, 3.5, 3.5});
  CHECK(steady_moves(later, even, half, std::vector<double>{10, 30, 10, 30}) == std::vector<double>{2, 6, 2, 6});
  // By a little: it does not last.
  const std::vector<double> nearly{45, 55, 44, 56};
  CHECK(steady_moves(later, nearly, half, nearly) == std::vector<double>{50, 50, 50, 50});
}

TEST_CASE("an SM is reckoned to go on gaining as far as it gained in both halves of what was seen") {
  LoopProgress later;
  for (std::uint16_t sm = 0; sm < 4; ++sm) {
    later.blocks.push_back(block(0, 16, 100));
    later.blocks.back().sm = sm;
  }
  const std::vector<double> moved{11, 9, 9, 11};
  // In both alike, it lasts ...
  const std::vector<double> steady = steady_moves(later, moved, std::vector<double>{5.5, 4.5, 4.5, 5.5}, moved);
  for (std::size_t b = 0; b < 4; ++b) CHECK(steady[b] == Approx(moved[b]));
  // ... in one of them, or lost again in the other, it does not.
  CHECK(steady_moves(later, moved, std::vector<double>{6, 4, 4, 6}, moved) == std::vector<double>{10, 10, 10, 10});
  CHECK(steady_moves(later, moved, std::vector<double>{7, 3, 3, 7}, moved) == std::vector<double>{10, 10, 10, 10});
  // Of 1.5 and 0.5, as much as these vary together: three quarters.
  CHECK(steady_moves(later, std::vector<double>{12, 8, 8, 12}, std::vector<double>{6.5, 3.5, 3.5, 6.5}, moved)[0] ==
        Approx(10 + 2 * 0.75));
}

TEST_CASE("blocks of a cluster move on together, by whole rounds of all their rings") {
  LoopProgress progress;
  for (const std::uint64_t cluster : {7u, 7u, 8u, 8u, 9u}) {
    progress.blocks.push_back(block(0, 12, 0));
    progress.blocks.back().cluster = cluster;
    progress.blocks.back().phase_period = 2;
  }
  progress.blocks[1].phase_period = 3;
  std::vector<std::uint32_t> counts{40, 27, 6, 0, 10};
  keep_clusters_together(progress, counts);
  CHECK(counts == std::vector<std::uint32_t>{24, 24, 0, 0, 10});
}

TEST_CASE("warps of a block in different loops keep step, or no number of iterations moves them on") {
  LoopProgress earlier, later;
  earlier.blocks = {block(0, 8, 0), block(0, 8, 0)};
  later.blocks = earlier.blocks;
  earlier.blocks[0].parts = earlier.blocks[1].parts = {10, 11.5};
  later.blocks[0].parts = later.blocks[1].parts = {30, 30};
  CHECK(keep_step(earlier, later));
  // A ring of stages lets one run ahead by a few.
  later.blocks[1].parts = {12, 15.4};
  CHECK(keep_step(earlier, later));
  later.blocks[1].parts = {12, 16};
  CHECK_FALSE(keep_step(earlier, later));
  later.blocks[1].parts = {30, 40};
  CHECK_FALSE(keep_step(earlier, later));
  // Warps that are all in one loop drift apart as they like.
  earlier.blocks[1].parts = {10};
  later.blocks[1].parts = {90};
  CHECK(keep_step(earlier, later));
}
