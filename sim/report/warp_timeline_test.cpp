// What a watched block's waits come to, by hand-made pipelines whose copies are late by so much.
#include "report/warp_timeline.h"

#include <catch2/catch.hpp>

#include "report/test_support.h"

using namespace forewarp;
using Catch::Contains;

namespace {

struct Pipeline {
  std::uint32_t stages = 3;
  Cycle period = 400, late = 100, ahead = 0;  ///< ahead: of a second consumer, which waits so much longer
  std::uint32_t bytes = 1024;
  bool freed_late = true;  ///< the producer waits for stages
  bool busy = false;       ///< the tensor pipe is, all the time
};

/// A producer (row 0) and two consumers go round the stages twenty times; barriers of 8 bytes, full ones first.
BlockRecord record_of(const Pipeline& p) {
  constexpr Cycle kStart = 1000;
  BlockRecord r;
  r.start = kStart;
  r.blocks.push_back({0, 0, 0, kStart});
  for (std::uint16_t w = 0; w < 3; ++w)
    r.warps.push_back({0, w, static_cast<std::uint8_t>(w), kStart, BlockRecord::kOpen, {}});
  std::vector<Cycle> at(3, kStart);
  const auto state = [&](std::uint16_t row, Cycle to, Stall why, std::uint32_t barrier = WarpInterval::kNone) {
    if (to <= at[row]) return;
    r.warps[row].intervals.push_back({at[row], to, 5, why, WarpInterval::kNone, barrier, 1});
    at[row] = to;
  };
  for (std::uint32_t i = 0; i < 20; ++i) {
    const std::uint32_t full = i % p.stages * 8, empty = full + p.stages * 8;
    const Cycle over = kStart + (i + 1) * p.period;
    r.copies.push_back({0, 3, BlockRecord::CopyKind::In, full, p.bytes, 0, over - 3 * p.period / 2, over});
    r.phases.push_back({0, full, i / p.stages + 1, over});
    for (const std::uint32_t row : {1u, 2u}) {
      const Cycle asked = over - p.late - (row == 2 ? p.ahead : 0);
      r.awaits.push_back(
          {row, 7, full, i / p.stages + 1, asked, p.late + (row == 2 ? p.ahead : 0) > 0 ? over : asked - 50});
      state(static_cast<std::uint16_t>(row), asked, Stall::Products);
      state(static_cast<std::uint16_t>(row), over, Stall::LongScoreboard, full);
    }
    r.awaits.push_back({0, 9, empty, i / p.stages + 1, over - 200, p.freed_late ? over - 100 : over - 300});
    state(0, over, Stall::LongScoreboard, empty);
  }
  r.products.push_back({1, 11, 1, kStart, kStart, kStart + 10});
  r.end = kStart + 20 * p.period;
  if (p.busy)
    for (std::uint8_t sub = 0; sub < 4; ++sub) r.busy.push_back({0, sub, kStart, r.end});
  return r;
}

std::string sentence(const Pipeline& p, GpuModel gpu = testing::small_gpu()) {
  if (gpu.occupancy.shared_block_max_bytes == 0) gpu.occupancy.shared_block_max_bytes = 1 << 20;
  const KernelTrace trace = testing::small_trace();
  TimingResult timing = testing::small_timing();
  timing.record = std::make_shared<const BlockRecord>(record_of(p));
  const Prediction made = build_prediction(gpu, *trace.kernel, trace, testing::small_occupancy(), timing);
  REQUIRE(made.timeline != nullptr);
  return made.timeline->sentence;
}

}  // namespace

TEST_CASE("nothing is said of a launch that nobody watched", "[timeline]") {
  CHECK(testing::small_prediction().timeline == nullptr);
}

TEST_CASE("roles, rings and names follow from what ends a barrier's phases", "[timeline]") {
  const GpuModel gpu = testing::small_gpu();
  const KernelTrace trace = testing::small_trace();
  TimingResult timing = testing::small_timing();
  timing.record = std::make_shared<const BlockRecord>(record_of({}));
  const WarpTimeline t = *build_prediction(gpu, *trace.kernel, trace, testing::small_occupancy(), timing).timeline;
  CHECK(t.roles == std::vector<WarpRole>{WarpRole::Producer, WarpRole::Consumer, WarpRole::Consumer});
  REQUIRE(t.barriers.size() == 6);
  CHECK(t.barriers[2].name == "full[2]");
  CHECK(t.barriers[2].offset == 16);
  CHECK(t.barriers[3].name == "empty[0]");
  REQUIRE(t.rings.size() == 2);
  CHECK(t.rings[0].name == "full[0..2]");
  CHECK(t.rings[0].stages == 3);
  CHECK(t.rings[0].period == Approx(400));
  CHECK(t.rings[0].late == Approx(100));
  CHECK(t.rings[0].latency == Approx(600));
  CHECK(t.rings[0].bytes == Approx(1024));
  CHECK(t.rings[1].late == Approx(100));
  CHECK(t.from == 1000 + 4 * 400 - 100);
}

TEST_CASE("late copies: as many stages as give them their time", "[timeline]") {
  // Without the wait of 100 a stage of 400 takes 300: a copy of 600 then spans 2 stages, not 1.5.
  const std::string one = sentence({});
  CHECK_THAT(one, Contains("full[0..2]"));
  CHECK_THAT(one, Contains("100 cycles late a stage"));
  CHECK_THAT(one, Contains("a fourth stage would hide it"));
  CHECK_THAT(one, !Contains("do not fit"));
  // 240 late: 3.75 stages of 160.
  CHECK_THAT(sentence({.stages = 2, .late = 240}), Contains("3 more stages would hide it"));
  // Only 1 KiB is left of a block's shared memory, and a stage takes 2.
  GpuModel gpu = testing::small_gpu();
  gpu.occupancy.shared_block_max_bytes = 3072;
  CHECK_THAT(sentence({.bytes = 2048}, gpu), Contains("do not fit in a block's shared memory"));
}

TEST_CASE("where bandwidth or the producer is late, more stages do not help", "[timeline]") {
  GpuModel gpu = testing::small_gpu();
  gpu.async.box_line_x16 = 16;  // a cycle a line
  CHECK_THAT(sentence({.bytes = 370 * 128}, gpu),
             Contains("more stages would not help: the SM's unit for copies takes 370 cycles"));
  CHECK_THAT(sentence({.bytes = 320 * 128}, gpu),
             Contains("would hide it, down to the 320 cycles that the SM's unit for copies takes"));
  CHECK_THAT(sentence({.freed_late = false}), Contains("the producer finds them free"));
}

TEST_CASE("copies that come in time bind nothing", "[timeline]") {
  const std::string none = sentence({.late = 0});
  CHECK_THAT(none, Contains("copies come in time"));
  CHECK_THAT(none, Contains("for their products"));
  CHECK_THAT(none, Contains("the producer waits for empty[0..2]"));
  // A consumer that runs ahead of the others waits without holding anyone up.
  CHECK_THAT(sentence({.late = 0, .ahead = 80}), Contains("others, ahead of them, wait 80 cycles a stage"));
  // With the tensor pipe always busy, copies that are late cost nothing.
  CHECK_THAT(sentence({.late = 20, .busy = true}), Contains("the tensor pipe, which is busy 100.0 %"));
}
