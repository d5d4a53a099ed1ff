#include "timing/skip/steps_in_time.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

/// Two blocks that run one after the other on one SM, and one beside them that is half done.
const std::vector<RestPart> kParts{{0, 0, 1, 0, 100, 0}, {1, 0, 1, 100, 200, 0}, {2, 0.5, 1, 0, 50, 1}};

std::vector<StepsInTime::Step> steps(double from, double until, std::span<const BlockSteps* const> wanted = {}) {
  StepsInTime order(kParts, wanted, from, until);
  std::vector<StepsInTime::Step> all;
  for (StepsInTime::Step step; order.next(step);) all.push_back(step);
  return all;
}

}  // namespace

TEST_CASE("steps of blocks come in the order of time, each once") {
  const std::vector<StepsInTime::Step> all = steps(0, 1e9);
  REQUIRE(all.size() == 2 * kBlockSteps + kBlockSteps / 2);
  std::vector<std::uint32_t> next{0, 0, kBlockSteps / 2};
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) CHECK(all[i].at >= all[i - 1].at);
    CHECK(all[i].step == next[all[i].part]++);
    CHECK(all[i].last == (all[i].step + 1 == kBlockSteps));
  }
}

TEST_CASE("of the steps only those are gone through that are wanted") {
  BlockSteps some, none;
  for (const std::size_t step : {3u, 70u, 127u}) some.set(step);
  const std::vector<const BlockSteps*> wanted{&some, &none, &some};
  std::vector<std::pair<std::size_t, std::uint32_t>> seen;
  for (const StepsInTime::Step& step : steps(0, 1e9, wanted)) {
    seen.emplace_back(step.part, step.step);
    CHECK(step.last == (step.step == 127));
  }
  const std::vector<std::pair<std::size_t, std::uint32_t>> expected{{0, 3}, {2, 70}, {2, 127}, {0, 70}, {0, 127}};
  CHECK(seen == expected);
  CHECK(steps(60, 1e9, wanted).size() == 1);
}

TEST_CASE("stretches of time that meet hold all steps between them") {
  const std::vector<StepsInTime::Step> all = steps(0, 1e9);
  std::size_t seen = 0;
  for (const double from : {0.0, 50.0, 100.0, 150.0}) {
    for (const StepsInTime::Step& step : steps(from, from + 50)) {
      CHECK(step.at >= from);
      CHECK(step.at < from + 50);
      ++seen;
    }
  }
  CHECK(seen == all.size());
}

TEST_CASE("work goes on as blocks do, each at its rate") {
  const WorkInTime work(kParts, [](std::uint64_t block) { return block == 1 ? 300.0 : 100.0; });
  CHECK(work.all() == Approx(450));
  // 100 and 50 until 50 and 100, then 300.
  for (const auto& [time, done] :
       std::vector<std::pair<double, double>>{{0, 0}, {25, 50}, {50, 100}, {100, 150}, {150, 300}, {200, 450}}) {
    INFO(time);
    CHECK(work.by(time) == Approx(done).margin(0.5));
    CHECK(work.when(done) == Approx(time).margin(0.2));
  }
  CHECK(work.when(-1) == 0);
  CHECK(work.when(1e9) == Approx(200));
}
