#include "timing/skip/rest_schedule.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
RestBlock same(std::uint64_t i) { return {1000 + i, 100, 100}; }

/// `left`: of blocks of 100 instructions, by SM.
RestTime rest(const std::vector<std::vector<double>>& left, std::uint64_t waiting, int blocks_per_sm,
              const SmRate& rate) {
  std::vector<std::vector<RestBlock>> in_flight;
  std::uint64_t block = 0;
  for (const std::vector<double>& sm : left) {
    in_flight.emplace_back();
    for (const double one : sm) in_flight.back().push_back({block++, 100, one});
  }
  return schedule_rest(std::move(in_flight), waiting, blocks_per_sm, rate, same);
}

double cycles(const std::vector<std::vector<double>>& left, std::uint64_t waiting, int blocks_per_sm,
              const SmRate& rate) {
  return rest(left, waiting, blocks_per_sm, rate).cycles;
}
}  // namespace

TEST_CASE("blocks that share an SM's rate") {
  const SmRate bound{1, 1};  // one block by itself is as fast as two together
  CHECK(cycles({{100, 100}}, 0, 2, bound) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, bound) == Approx(150));
  const SmRate slow{0.5, 1};  // each by itself takes as long as both
  CHECK(cycles({{100, 100}}, 0, 2, slow) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, slow) == Approx(200));
  const SmRate between{0.75, 1};
  CHECK(cycles({{100, 50}}, 0, 2, between) == Approx(100 + 50 / 0.75));
}

TEST_CASE("an SM that is twice as fast takes twice as many blocks") {
  const SmRate uneven{1, 1, {}, {2. / 3, 4. / 3}};
  const RestTime r = rest({{}, {}}, 30, 1, uneven);
  CHECK(r.cycles == Approx(30 * 100 / 2));
  std::size_t of_fast = 0;
  for (const RestPart& part : r.parts) of_fast += part.sm == 1 ? 1 : 0;
  CHECK(of_fast == 20);
}

TEST_CASE("waiting blocks follow, and a last wave that is not full costs a whole one") {
  const SmRate slow{0.5, 1};
  CHECK(cycles({{}, {}}, 4, 2, slow) == Approx(200));
  CHECK(cycles({{}, {}}, 5, 2, slow) == Approx(400));
  CHECK(cycles({{100, 100}, {100}}, 2, 2, slow) == Approx(400));
}

TEST_CASE("blocks and SMs are in flight until they end") {
  const RestTime r = rest({{100, 100, 50, 50}, {}}, 0, 4, {0.25, 1});
  CHECK(r.cycles == Approx(400));
  CHECK(r.block_cycles == Approx(4 * 200 + 2 * 200));
  CHECK(r.sm_cycles == Approx(400));
  // The next block takes the place of the first that ends.
  const RestTime next = rest({{50, 100}}, 1, 2, {1, 1});
  CHECK(next.cycles == Approx(250));
  CHECK(next.block_cycles == Approx(2 * 200 + 50));
}

TEST_CASE("a block is one part for as long as its rate stays") {
  // Three at a time end one after another, and others take their places.
  const RestTime r = rest({{30, 60, 90}}, 20, 3, {1, 1});
  CHECK(r.parts.size() > 23);  // the last ones go faster when others have ended
  CHECK(r.parts.size() <= 23 + 3);
  CHECK(r.parts[5].from == 0);
  CHECK(r.parts[5].to == 1);
  CHECK(rest({{100, 100}}, 0, 2, {1, 1}).parts.size() == 2);
}

TEST_CASE("a schedule is cut in two at a time, and all of it is in one of the halves") {
  const std::vector<RestPart> parts{{0, 0, 1, 0, 100, 0}, {1, 0.5, 1, 0, 50, 1}, {2, 0, 0.5, 50, 150, 1}};
  const std::vector<RestPart> before = parts_between(parts, 0, 75), after = parts_between(parts, 75, 1e9);
  REQUIRE(before.size() == 3);
  REQUIRE(after.size() == 2);
  CHECK(before[0].to == Approx(0.75));
  CHECK(before[0].until == 75);
  CHECK(after[0].from == before[0].to);
  CHECK(after[0].at == 75);
  CHECK(after[0].until == 100);
  CHECK(before[1].until == 50);
  CHECK(before[2].to == Approx(0.125));
  CHECK(after[1].block == 2);
  CHECK(after[1].from == before[2].to);
  CHECK(after[1].to == 0.5);
}

TEST_CASE("which part of its way a block goes, and when") {
  const RestTime r = rest({{50, 100}}, 1, 2, {0.75, 1});
  REQUIRE(r.parts.size() == 4);
  const auto is = [&](std::size_t i, std::uint64_t block, double from, double to, double at, double until) {
    const RestPart& p = r.parts[i];
    CHECK(p.block == block);
    CHECK(p.sm == 0);
    CHECK(p.from == Approx(from));
    CHECK(p.to == Approx(to));
    CHECK(p.at == Approx(at));
    CHECK(p.until == Approx(until));
  };
  is(0, 0, 0.5, 1, 0, 100);
  is(1, 1, 0, 1, 0, 200);
  is(2, 1000, 0, 0.5, 100, 200);
  is(3, 1000, 0.5, 1, 200, 200 + 50 / 0.75);
}

TEST_CASE("warps that end before the others of their block are not in flight") {
  TimingCounters before, counters;
  before.sm_active_cycles = 100;
  before.warp_cycles = 1000;
  counters.sm_active_cycles = 300;
  counters.warp_cycles = 1000 + 200 * 2 * 9;
  CHECK(observed_warps(counters, before, 12, 2) == Approx(9));
  CHECK(observed_warps(counters, before, 12, 1) == Approx(12));
  CHECK(observed_warps(before, before, 12, 1) == Approx(12));
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
  RestTime time;
  time.sm_cycles = 330;
  time.block_cycles = 375;
  set_residence(counters, before, time, 8);
  CHECK(counters.sm_active_cycles == 430);
  CHECK(counters.smsp_active_cycles == 4 * 330);
  CHECK(counters.warp_cycles == 1600 + 3000);
  CHECK(counters.stalls[static_cast<std::size_t>(Stall::Wait)] == 1000);
  CHECK(counters.stalls[static_cast<std::size_t>(Stall::NotSelected)] == 2000);
}

TEST_CASE("older blocks go first by as much as they were seen to, and what they cannot use others do") {
  // Two to an SM: the older has three fourths of it.
  const SmRate older_first{1, 1, {3, 1}};
  CHECK(cycles({{75, 100}}, 0, 2, older_first) == Approx(100 + 75));
  // The younger becomes the older, and the next has what is left.
  CHECK(cycles({{75, 100}}, 1, 2, older_first) == Approx(275));
  const RestTime r = rest({{75, 100}}, 1, 2, older_first);
  CHECK(r.block_cycles == Approx(2 * 200 + 75));
  const SmRate slow{0.5, 1, {3, 1}};
  CHECK(rest({{50, 100}}, 0, 2, slow).block_cycles == Approx(2 * 100 + 100));
  CHECK(cycles({{50, 100}}, 0, 2, slow) == Approx(200));
}
