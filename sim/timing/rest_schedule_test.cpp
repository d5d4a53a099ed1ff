#include "timing/rest_schedule.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
double same(std::uint64_t) { return 100; }
}  // namespace

TEST_CASE("blocks that share an SM's rate") {
  const SmRate bound{1, 1};  // one block by itself is as fast as two together
  CHECK(rest_cycles({{100, 100}}, 0, 2, bound, same) == Approx(200));
  CHECK(rest_cycles({{100, 50}}, 0, 2, bound, same) == Approx(150));
  const SmRate slow{0.5, 1};  // each by itself takes as long as both
  CHECK(rest_cycles({{100, 100}}, 0, 2, slow, same) == Approx(200));
  CHECK(rest_cycles({{100, 50}}, 0, 2, slow, same) == Approx(200));
}

TEST_CASE("waiting blocks follow, and a last wave that is not full costs a whole one") {
  const SmRate slow{0.5, 1};
  CHECK(rest_cycles({{}, {}}, 4, 2, slow, same) == Approx(200));
  CHECK(rest_cycles({{}, {}}, 5, 2, slow, same) == Approx(400));
  CHECK(rest_cycles({{100, 100}, {100}}, 2, 2, slow, same) == Approx(400));
}

TEST_CASE("what warps wait for by themselves limits a block that is alone") {
  TimingCounters counters;
  counters.sm_active_cycles = 1000;
  counters.warp_cycles = 16000;  // two blocks of eight warps
  counters.stalls[static_cast<std::size_t>(Stall::LongScoreboard)] = 8000;
  counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] = 7000;
  counters.stalls[static_cast<std::size_t>(Stall::Selected)] = 1000;
  const SmRate rate = observed_rate(counters, {}, 1000, 8);
  CHECK(rate.most == Approx(1));
  CHECK(rate.alone == Approx(8.0 / 9));
}
