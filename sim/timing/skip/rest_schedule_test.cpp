#include "timing/skip/rest_schedule.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {
SmRate rate_of(double alone, double most, std::vector<double> shares = {}) {
  SmRate rate;
  rate.alone = alone;
  rate.most = most;
  rate.shares = std::move(shares);
  return rate;
}

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
  const SmRate bound = rate_of(1, 1, {1, 0});  // one block by itself is as fast as two together
  CHECK(cycles({{100, 100}}, 0, 2, bound) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, bound) == Approx(150));
  const SmRate slow = rate_of(0.5, 1);  // each by itself takes as long as both
  CHECK(cycles({{100, 100}}, 0, 2, slow) == Approx(200));
  CHECK(cycles({{100, 50}}, 0, 2, slow) == Approx(200));
}

TEST_CASE("waiting blocks follow, and a last wave that is not full costs a whole one") {
  const SmRate slow = rate_of(0.5, 1);
  CHECK(cycles({{}, {}}, 4, 2, slow) == Approx(200));
  CHECK(cycles({{}, {}}, 5, 2, slow) == Approx(400));
  CHECK(cycles({{100, 100}, {100}}, 2, 2, slow) == Approx(400));
}

TEST_CASE("older blocks are served first, so that they leave first") {
  // Two of four run at full speed: two are there for 200 cycles, two for 400.
  const RestTime first = rest({{100, 100, 100, 100}}, 0, 4, rate_of(0.5, 1, {1, 1, 0, 0}));
  CHECK(first.cycles == Approx(400));
  CHECK(first.block_cycles == Approx(4 * 200 + 2 * 200));
  CHECK(first.sm_cycles == Approx(400));
  // By themselves no faster than together: all leave at once.
  CHECK(rest({{100, 100, 100, 100}, {}}, 0, 4, rate_of(0.25, 1)).block_cycles == Approx(4 * 400));
  // The next block takes the place of the first that ends, and is the youngest.
  const RestTime next = rest({{50, 100}}, 1, 2, rate_of(1, 1, {1, 0}));
  CHECK(next.cycles == Approx(250));
  CHECK(next.block_cycles == Approx(2 * 150 + 100));
}

TEST_CASE("a block is one part for as long as its rate stays") {
  // Three at a time end one after another, and others take their places.
  const RestTime r = rest({{30, 60, 90}}, 20, 3, rate_of(1, 1));
  CHECK(r.parts.size() > 23);  // the last ones go faster when others have ended
  CHECK(r.parts.size() <= 23 + 3);
  CHECK(r.parts[5].from == 0);
  CHECK(r.parts[5].to == 1);
}

TEST_CASE("blocks share as they were seen to share") {
  // Three to one: the older ends after 400 / 3, when the younger has two thirds before it.
  CHECK(cycles({{100, 100}}, 0, 2, rate_of(1, 1, {3, 1})) == Approx(200));
  const RestTime r = rest({{100, 100}}, 0, 2, rate_of(1, 1, {3, 1}));
  REQUIRE(r.parts.size() == 3);
  CHECK(r.parts[1].to == Approx(1.0 / 3));
  // In turn: both end together.
  CHECK(rest({{100, 100}}, 0, 2, rate_of(1, 1)).parts.size() == 2);
}

TEST_CASE("shares are of the SMs that hold the most blocks, and the same ones at both times") {
  const std::vector<BlockProgress> earlier{{0, 0, 0.1}, {2, 0, 0.1}, {1, 1, 0.2}, {3, 1, 0.2}, {4, 2, 0.5}};
  const std::vector<BlockProgress> later{{2, 0, 0.2}, {0, 0, 0.4}, {3, 1, 0.9}, {5, 1, 0.1}, {4, 2, 0.9}};
  const std::vector<double> shares = observed_shares(later, earlier);
  REQUIRE(shares.size() == 2);
  CHECK(shares[0] == Approx(0.3));
  CHECK(shares[1] == Approx(0.1));
  CHECK(observed_shares(later, {}).empty());
  // Of two full SMs both have other blocks by then: the one that kept its blocks is no longer most of them.
  const std::vector<BlockProgress> turned{{2, 0, 0.2}, {0, 0, 0.4}, {5, 1, 0.1}, {7, 1, 0.9}, {8, 2, 0.1}, {9, 2, 0.1}};
  CHECK(observed_shares(turned, earlier).empty());
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
  const RestTime r = rest({{50, 100}}, 1, 2, rate_of(0.75, 1, {1, 0}));
  REQUIRE(r.parts.size() == 5);
  const auto is = [&](std::size_t i, std::uint64_t block, double from, double to, double at, double until) {
    const RestPart& p = r.parts[i];
    CHECK(p.block == block);
    CHECK(p.sm == 0);
    CHECK(p.from == Approx(from));
    CHECK(p.to == Approx(to));
    CHECK(p.at == Approx(at));
    CHECK(p.until == Approx(until));
  };
  const double first = 50 / 0.75, second = first + (100 - first * 0.25) / 0.75;
  is(0, 0, 0.5, 1, 0, first);
  is(1, 1, 0, first * 0.25 / 100, 0, first);
  is(2, 1, first * 0.25 / 100, 1, first, second);
  is(3, 1000, 0, (second - first) * 0.25 / 100, first, second);
  is(4, 1000, (second - first) * 0.25 / 100, 1, second, r.cycles);
}

namespace {
/// A part in which SMs held two blocks of eight warps and gave one instruction a cycle.
TimingCounters two_blocks() {
  TimingCounters counters;
  counters.sm_active_cycles = 1000;
  counters.warp_cycles = 16000;
  return counters;
}
constexpr SmShape kShape{8, 2, 4, 10};
}  // namespace

TEST_CASE("a block alone goes as it was seen to, and no slower than among others") {
  const SmRate rate = observed_rate(two_blocks(), {}, 1000, kShape, 2, {5, 0.9, 0});
  CHECK(rate.most == Approx(1));
  CHECK(rate.alone == Approx(0.9));
  REQUIRE(rate.by_blocks.size() == 2);
  CHECK(rate.with(1) == Approx(0.9));
  CHECK(rate.with(2) == Approx(1));
  CHECK(rate.by_sms.empty());
  CHECK(observed_rate(two_blocks(), {}, 1000, kShape, 2, {5, 0.1, 0}).alone == Approx(0.5));
}

TEST_CASE("an SM that holds fewer blocks gives less, but more than in proportion") {
  // Four blocks of four warps, one in each sub-partition. By itself a warp issues every tenth cycle.
  TimingCounters counters;
  counters.sm_active_cycles = 1000;
  counters.warp_cycles = 16000;
  const SmRate rate = observed_rate(counters, {}, 1000, {4, 5, 4, 10}, 4, {5, 0.4, 0});
  REQUIRE(rate.by_blocks.size() == 5);
  CHECK(rate.with(1) == Approx(0.4));
  CHECK(rate.with(2) > rate.with(1));
  CHECK(rate.with(3) / rate.with(2) > rate.with(4) / rate.with(3));
  CHECK(rate.with(4) == Approx(1));
  CHECK(rate.with(5) > 1);
}

TEST_CASE("an SM is faster the fewer others are busy") {
  // Five SMs give 1.5 each where ten give 1.
  const SmRate rate = observed_rate(two_blocks(), {}, 1000, kShape, 2, {5, 1.2, 1.5});
  CHECK(rate.with(1) == Approx(1.2));
  CHECK(rate.with(2) == Approx(1.5));
  REQUIRE(rate.by_sms.size() == 10);
  CHECK(rate.with(2) * rate.left(10) == Approx(1));
  CHECK(rate.left(5) == Approx(1).epsilon(0.001));
  CHECK(rate.left(7) < rate.left(5));
  CHECK(rate.left(7) > rate.left(10));
  CHECK(rate.left(11) == rate.left(10));
  // As many were busy: what is left is the same for any number.
  const std::vector<double> same = observed_rate(two_blocks(), {}, 1000, kShape, 2, {10, 1.2, 1.5}).by_sms;
  REQUIRE(same.size() == 1);
  CHECK(same[0] == Approx(1 / 1.5));
}

TEST_CASE("SMs that still work go on faster when others have ended") {
  SmRate rate = rate_of(1, 1);
  rate.by_sms = {1, 0.5};
  // Both at half their rate until one has done 50; then the other does its last 50 at full rate.
  const RestTime r = rest({{100}, {50}}, 0, 1, rate);
  CHECK(r.cycles == Approx(150));
  CHECK(r.sm_cycles == Approx(250));
  REQUIRE(r.parts.size() == 3);
  CHECK(r.parts.back().from == Approx(0.5));
  // A block that waits keeps both busy.
  CHECK(cycles({{100}, {50}}, 1, 1, rate) == Approx(250));
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
