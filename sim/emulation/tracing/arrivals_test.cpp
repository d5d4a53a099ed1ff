// What a trace says of barriers: which one a warp's registers name, and whether all of the warp arrives.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "emulation/emulation.h"
#include "emulation/launch_example.h"
#include "trace/events.h"

using namespace forewarp;

namespace {

struct Met {
  int id, threads;
  bool complete;
  LaneMask lanes;
  bool operator==(const Met&) const = default;
};

/// The arrivals of each warp of the only class, of blocks of 128 threads.
std::vector<std::vector<Met>> arrivals(const std::string& code) {
  test::Example made(test::kStart + "    SHF.R.U32.HI R4, RZ, 0x5, R0\n" + code + "    EXIT\n", {4, 1, 1}, {128, 1, 1});
  const auto trace = trace_launch(made.program, made.item, 0, {});
  REQUIRE(trace->classes.size() == 1);
  const EventTable events(*trace->kernel);
  std::vector<std::vector<Met>> met;
  for (const WarpTrace& warp : trace->classes[0].warps) {
    met.emplace_back();
    WarpCursor(trace->classes[0].paths[warp.path], warp)
        .for_each_record(events, [&](std::uint32_t, const TraceEvent& event, std::span<const Access> records, auto) {
          const BarrierArrival a = BarrierArrival::of(records.front());
          if (event.kind == EventKind::Arrive)
            met.back().push_back({a.id, a.threads, a.complete, trace->patterns[records.front().pattern].lanes});
          return true;
        });
  }
  return met;
}

constexpr LaneMask kAll = ~LaneMask{0};

}  // namespace

TEST_CASE("a trace holds the barriers that registers name", "[trace]") {
  const auto met = arrivals(R"(
    LOP3.LUT R5, R4, 0x1, RZ, 0xc0, !PT
    IADD3 R5, R5, 0x1, RZ
    BAR.SYNC.DEFER_BLOCKING R5, 0x40
    BAR.SYNC.DEFER_BLOCKING 0x0
)");
  for (std::size_t warp = 0; warp < 4; ++warp)
    CHECK(met[warp] == std::vector<Met>{{static_cast<int>(warp % 2) + 1, 64, true, kAll}, {0, 0, true, kAll}});
}

TEST_CASE("a trace tells warps that a guard keeps from a barrier, and those that arrive in parts", "[trace]") {
  const auto guarded = arrivals(R"(
    ISETP.GE.AND P0, PT, R4, 0x2, PT
    @P0 BAR.SYNC.DEFER_BLOCKING 0x1, 0x40
)");
  CHECK(guarded[0] == std::vector<Met>{{0, 0, false, 0}});
  CHECK(guarded[3] == std::vector<Met>{{1, 64, true, kAll}});
  const auto parts = arrivals(R"(
    LOP3.LUT R5, R0, 0x1f, RZ, 0xc0, !PT
    ISETP.GE.AND P0, PT, R5, 0x8, PT
    @P0 BRA $others
    BAR.SYNC.DEFER_BLOCKING 0x0
    BRA $end
  others:
    BAR.SYNC.DEFER_BLOCKING 0x0
  end:
)");
  for (const std::vector<Met>& warp : parts) {
    REQUIRE(warp.size() == 2);
    CHECK((warp[0].lanes | warp[1].lanes) == kAll);
    CHECK((!warp[0].complete && warp[1].complete));
  }
}
