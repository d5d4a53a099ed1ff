#include "timing/rest_schedule.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
double same(std::uint64_t) { return 100; }

double cycles(std::vector<std::vector<double>> in_flight, std::uint64_t waiting, int blocks_per_sm, const SmRate& rate,
              double (*next)(std::uint64_t)) {
  return schedule_rest(std::move(in_flight), waiting, blocks_per_sm, rate, next).cycles;
}
}  // namespace

TEST_CASE("blocks that share an SM's rate") {
  const SmRate bound{1, 1};  // one block by itself is as fast as two together
  CHECK(cycles({{100, 100}}, 0, 2, bound, same) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, bound, same) == Approx(150));
  const SmRate slow{0.5, 1};  // each by itself takes as long as both
  CHECK(cycles({{100, 100}}, 0, 2, slow, same) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, slow, same) == Approx(200));
}

TEST_CASE("waiting blocks follow, and a last wave that is not full costs a whole one") {
  const SmRate slow{0.5, 1};
  CHECK(cycles({{}, {}}, 4, 2, slow, same) == Approx(200));
  CHECK(cycles({{}, {}}, 5, 2, slow, same) == Approx(400));
  CHECK(cycles({{100, 100}, {100}}, 2, 2, slow, same) == Approx(400));
}

TEST_CASE("older blocks are served first, so that they leave first") {
  // Two of four run at full speed: two are there for 200 cycles, two for 400.
  const RestTime first = schedule_rest({{100, 100, 100, 100}}, 0, 4, {0.5, 1}, same);
  CHECK(first.cycles == Approx(400));
  CHECK(first.block_cycles == Approx(4 * 200 + 2 * 200));
  CHECK(first.sm_cycles == Approx(400));
  // By themselves no faster than together: all leave at once.
  CHECK(schedule_rest({{100, 100, 100, 100}, {}}, 0, 4, {0.25, 1}, same).block_cycles == Approx(4 * 400));
  // The next block takes the place of the first that ends, and is the youngest.
  const RestTime next = schedule_rest({{50, 100}}, 1, 2, {1, 1}, same);
  CHECK(next.cycles == Approx(250));
  CHECK(next.block_cycles == Approx(2 * 150 + 100));
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

TEST_CASE("warps in flight and their waiting follow the schedule") {
  TimingCounters before, counters;
  before.sm_active_cycles = 100;
  before.warp_cycles = 1600;
  counters.sm_active_cycles = 100 + 300;
  counters.smsp_active_cycles = 4 * 300;
  counters.warp_cycles = 1600 + 4800;
  counters.stalls[static_cast<std::size_t>(Stall::Wait)] = 1000;
  counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] = 3800;
  RestTime rest;
  rest.sm_cycles = 330;
  rest.block_cycles = 375;
  set_residence(counters, before, rest, 8);
  CHECK(counters.sm_active_cycles == 430);
  CHECK(counters.smsp_active_cycles == 4 * 330);
  CHECK(counters.warp_cycles == 1600 + 3000);
  CHECK(counters.stalls[static_cast<std::size_t>(Stall::Wait)] == 1000);
  CHECK(counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] == 2000);
}
