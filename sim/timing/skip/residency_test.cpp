#include "timing/skip/residency.h"

#include <catch2/catch.hpp>

using namespace forewarp;

TEST_CASE("shares are of the SMs that hold the most blocks, and the same ones at both times") {
  const std::vector<BlockProgress> earlier{{0, 0, 0.1}, {2, 0, 0.1}, {1, 1, 0.2}, {3, 1, 0.2}, {4, 2, 0.5}};
  const std::vector<BlockProgress> later{{2, 0, 0.2}, {0, 0, 0.4}, {3, 1, 0.9}, {5, 1, 0.1}, {4, 2, 0.9}};
  const std::vector<double> shares = observed_shares(later, earlier);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0] == Approx(0.3));
  CHECK(shares[1] == Approx(0.1));
  CHECK(observed_shares(later, {}).empty());
}

TEST_CASE("what warps wait for by themselves limits a block that is alone") {
  TimingCounters counters;
  counters.instructions_issued = 1000;
  counters.sm_active_cycles = 1000;
  counters.warp_cycles = 16000;  // two blocks of eight warps
  counters.stalls[static_cast<std::size_t>(Stall::LongScoreboard)] = 8000;
  counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] = 7000;
  counters.stalls[static_cast<std::size_t>(Stall::Selected)] = 1000;
  const SmRate rate = observed_rate(counters, {}, {8, 2, 4}, 2);
  CHECK(rate.with(2) == Approx(1));
  CHECK(rate.alone == Approx(8.0 / 9));
}

TEST_CASE("an SM that holds fewer blocks gives less, but more than in proportion") {
  // Four blocks of four warps, one in each sub-partition. By itself a warp issues every tenth cycle.
  TimingCounters counters;
  counters.instructions_issued = 1000;
  counters.sm_active_cycles = 1000;
  counters.warp_cycles = 16000;
  counters.stalls[static_cast<std::size_t>(Stall::LongScoreboard)] = 9000;
  counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] = 6000;
  counters.stalls[static_cast<std::size_t>(Stall::Selected)] = 1000;
  const SmRate rate = observed_rate(counters, {}, {4, 5, 4}, 4);
  REQUIRE(rate.by_blocks.size() == 5);
  CHECK(rate.with(1) == Approx(rate.alone));
  CHECK(rate.with(1) == Approx(0.4));
  CHECK(rate.with(2) > rate.with(1));
  CHECK(rate.with(3) / rate.with(2) > rate.with(4) / rate.with(3));
  CHECK(rate.with(4) == Approx(1));
  CHECK(rate.with(5) > 1);
}
