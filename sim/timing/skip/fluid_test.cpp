#include "timing/skip/fluid.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace forewarp;

namespace {
SmRate rate_of(double alone, double most, std::vector<double> shares = {}) {
  SmRate rate;
  rate.alone = alone;
  rate.by_blocks.assign(4, most);
  rate.shares = std::move(shares);
  return rate;
}

struct Rest {
  double cycles = 0, block_cycles = 0, sm_cycles = 0;
  std::vector<FluidPart> parts;
};

/// `left`: of blocks of 100 instructions, by SM.
Rest rest(const std::vector<std::vector<double>>& left, std::uint64_t waiting, int blocks_per_sm, const SmRate& rate) {
  std::vector<std::vector<FluidBlock>> in_flight;
  std::uint64_t block = 0;
  for (const std::vector<double>& sm : left) {
    in_flight.emplace_back();
    for (const double one : sm) in_flight.back().push_back({block++, 100, 100 - one});
  }
  Fluid fluid(std::move(in_flight), waiting, blocks_per_sm, rate,
              [](std::uint64_t i) { return FluidBlock{1000 + i, 100, 0}; });
  Rest all;
  fluid.advance(std::numeric_limits<double>::infinity(), &all.parts);
  all.cycles = fluid.now();
  all.block_cycles = fluid.block_cycles();
  all.sm_cycles = fluid.sm_cycles();
  return all;
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
  const Rest first = rest({{100, 100, 100, 100}}, 0, 4, rate_of(0.5, 1, {1, 1, 0, 0}));
  CHECK(first.cycles == Approx(400));
  CHECK(first.block_cycles == Approx(4 * 200 + 2 * 200));
  CHECK(first.sm_cycles == Approx(400));
  // By themselves no faster than together: all leave at once.
  CHECK(rest({{100, 100, 100, 100}, {}}, 0, 4, rate_of(0.25, 1)).block_cycles == Approx(4 * 400));
  // The next block takes the place of the first that ends, and is the youngest.
  const Rest next = rest({{50, 100}}, 1, 2, rate_of(1, 1, {1, 0}));
  CHECK(next.cycles == Approx(250));
  CHECK(next.block_cycles == Approx(2 * 150 + 100));
}

TEST_CASE("blocks share as they were seen to share") {
  // Three to one: the older ends after 400 / 3, when the younger has two thirds before it.
  CHECK(cycles({{100, 100}}, 0, 2, rate_of(1, 1, {3, 1})) == Approx(200));
  const Rest r = rest({{100, 100}}, 0, 2, rate_of(1, 1, {3, 1}));
  REQUIRE(r.parts.size() == 2);
  CHECK(r.parts[0].until == Approx(400.0 / 3));
  // In turn: both end together.
  CHECK(rest({{100, 100}}, 0, 2, rate_of(1, 1)).parts.size() == 2);
}

TEST_CASE("which part of its way a block goes, and when") {
  const Rest r = rest({{50, 100}}, 1, 2, rate_of(0.75, 1, {1, 0}));
  REQUIRE(r.parts.size() == 3);
  const auto is = [&](std::size_t i, std::uint64_t block, double from, double to, double at, double until) {
    const FluidPart& p = r.parts[i];
    CHECK(p.block == block);
    CHECK(p.sm == 0);
    CHECK(p.from == Approx(from));
    CHECK(p.to == Approx(to));
    CHECK(p.at == Approx(at));
    CHECK(p.until == Approx(until));
  };
  const double first = 50 / 0.75, second = first + (100 - first * 0.25) / 0.75;
  is(0, 0, 0.5, 1, 0, first);
  is(1, 1, 0, 1, 0, second);
  is(2, 1000, 0, 1, first, r.cycles);
}

TEST_CASE("a fluid that is stopped and goes on ends where one does that is not") {
  const SmRate rate = rate_of(0.5, 1, {3, 1});
  const auto make = [&] {
    std::vector<std::vector<FluidBlock>> in_flight{{{0, 100, 20}, {1, 100, 0}}, {{2, 100, 50}}};
    return Fluid(in_flight, 5, 2, rate, [](std::uint64_t i) { return FluidBlock{10 + i, 60, 0}; });
  };
  Fluid whole = make(), in_steps = make();
  std::vector<FluidPart> parts;
  whole.advance(std::numeric_limits<double>::infinity());
  for (double at = 30; !in_steps.over(); at += 30) in_steps.advance(at, &parts);
  CHECK(in_steps.now() == Approx(whole.now()));
  CHECK(in_steps.work() == Approx(whole.work()));
  CHECK(in_steps.work() == Approx(80 + 100 + 50 + 5 * 60));
  double sum = 0;
  for (const FluidPart& part : parts) sum += (part.to - part.from) * (part.block < 10 ? 100 : 60);
  CHECK(sum == Approx(whole.work()));
  // Until then a place is filled again as soon as its block has ended.
  CHECK(whole.first_idle() > 0);
  CHECK(whole.first_idle() < whole.now());
}
