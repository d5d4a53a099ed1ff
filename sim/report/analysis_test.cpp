#include <catch2/catch.hpp>
#include <set>

#include "counters/metrics.h"
#include "report/accounting.h"
#include "report/test_support.h"

using namespace forewarp;
using Catch::Contains;

namespace {

Prediction predict(const GpuModel& gpu, const KernelTrace& trace, const TimingResult& timing) {
  return build_prediction(gpu, *trace.kernel, trace, testing::small_occupancy(), timing);
}

}  // namespace

TEST_CASE("metrics that need time follow Nsight Compute's definitions") {
  const Prediction p = testing::small_prediction();
  const MetricSet& m = p.metrics;
  CHECK(m.get("gpc__cycles_elapsed.max") == 2000);
  CHECK(m.get("gpu__time_duration.sum") == Approx(2000.0));  // 1000 MHz: a nanosecond a cycle
  CHECK(m.get("sm__cycles_active.avg") == 1500);
  CHECK(m.get("sm__warps_active.avg.pct_of_peak_sustained_active") == Approx(100.0 * 20000 / 6000 / 64));
  CHECK(m.get("smsp__issue_active.avg.per_cycle_active") == Approx(0.01));
  CHECK(m.get("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio") == 150);
  CHECK(m.get("smsp__average_warps_issue_stalled_membar_per_issue_active.ratio") == 0);
  CHECK(m.get("smsp__average_warp_latency_per_inst_issued.ratio") == Approx(20000.0 / 120));
  CHECK(m.get("l1tex__t_sector_hit_rate.pct") == Approx(100.0 * (640 - 480) / 720));
  CHECK(m.get("lts__t_sectors_srcunit_tex_op_read.sum") == 480);
  CHECK(m.get("lts__t_sector_hit_rate.pct") == 25);
  CHECK(m.get("dram__throughput.avg.pct_of_peak_sustained_elapsed") == Approx(6.72));
  CHECK(m.get("sm__throughput.avg.pct_of_peak_sustained_elapsed") == Approx(100.0 * 60 / 8000));  // LSU: 60 of 4 x 2000
  CHECK(m.get("launch__occupancy_limit_shared_mem") == 2);
}

TEST_CASE("waits for products are among those at barriers, as Nsight Compute counts them") {
  const GpuModel gpu = testing::small_gpu();
  const KernelTrace trace = testing::small_trace();
  TimingResult timing = testing::small_timing();
  const auto barrier = [&] {
    return predict(gpu, trace, timing).metrics.get("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio");
  };
  timing.counters.stalls[static_cast<std::size_t>(Stall::Barrier)] = 1200;
  CHECK(barrier() == 10);
  timing.counters.stalls[static_cast<std::size_t>(Stall::Products)] = 600;
  CHECK(barrier() == 15);
}

TEST_CASE("the stalls of a launch add up to its warps' time") {
  double sum = 0;
  for (const StallShare& s : testing::small_prediction().stalls) sum += s.share_pct;
  CHECK(sum == Approx(100));
}

TEST_CASE("the roofline counts two operations for a multiply-add") {
  const Roofline r = testing::small_prediction().roofline;
  CHECK(r.precision == std::string("fp32"));
  CHECK(r.work[0].operations == 20 * 32 * 2);
  CHECK(r.work[0].peak_per_second == Approx(4 * 4 * 32 * 2 * 1e9));
  CHECK(r.attained == Approx(1280 / 2e-6));
  CHECK(r.levels[0].bytes == 720 * 32 + (80 - 60) * 128);  // what conflicts add moves nothing
  CHECK(r.levels[2].intensity == Approx(1280.0 / 13440));
  CHECK(r.binding == "HBM");
  CHECK(r.ceiling == Approx(1280.0 / 13440 * 100e9));
}

TEST_CASE("reads that L2 merged leave its slices once, so that no kernel exceeds L2's roof by them") {
  const GpuModel gpu = testing::small_gpu();
  const KernelTrace trace = testing::small_trace();
  TimingResult timing = testing::small_timing();
  timing.counters.memory.read_sectors = 1200;
  timing.counters.memory.merged_sectors = 900;
  const Prediction p = predict(gpu, trace, timing);
  const RooflineLevel& l2 = p.roofline.levels[1];
  CHECK(l2.name == std::string("L2"));
  CHECK(l2.bytes == (1200 - 900 + 80) * 32);
  CHECK(l2.bytes == p.metrics.get("lts__t_sectors_srcunit_tex.sum") * 32);
}

TEST_CASE("copies into shared memory count against L1's roof for what they write") {
  const auto l1_bytes = [](Opcode opcode, std::vector<Modifier> modifiers, const GpuModel& gpu) {
    KernelTrace trace = testing::small_trace();
    Kernel kernel = *trace.kernel;
    Instruction& copy = kernel.instructions[0];
    copy.opcode = opcode;
    copy.memory = MemoryKind::AsyncCopy;
    for (const Modifier m : modifiers) copy.modifiers.set(static_cast<std::size_t>(m));
    trace.kernel = std::make_shared<const Kernel>(kernel);
    return predict(gpu, trace, testing::small_timing()).roofline.levels[0].bytes;
  };
  GpuModel gpu = testing::small_gpu();
  const double others = 80 * 32 + (80 - 60) * 128, written = 10 * 256;
  gpu.memory_pipe.shared_wavefront_cycles = 1;
  gpu.memory_pipe.fill_wavefront_cycles = 0;
  CHECK(l1_bytes(Opcode::LDGSTS, {}, gpu) == others + written);
  CHECK(l1_bytes(Opcode::LDGSTS, {Modifier::BYPASS}, gpu) == others);
  CHECK(l1_bytes(Opcode::UTMALDG, {}, gpu) == others);
  CHECK(l1_bytes(Opcode::UTMASTG, {}, gpu) == others + 640 * 32);
  gpu.memory_pipe.fill_wavefront_cycles = 1;
  CHECK(l1_bytes(Opcode::LDGSTS, {Modifier::BYPASS}, gpu) == others + written);
}

TEST_CASE("waves come from the blocks' stays when all were simulated") {
  const Waves w = testing::small_prediction().waves;
  CHECK(w.full_waves == 1);
  CHECK(w.last_wave_blocks == 2);
  CHECK(w.last_wave_fill_pct == 25);
  CHECK(w.from_spans);
  CHECK(w.tail_pct == Approx(45));  // SMs 2 and 3 are free from 1000 to 1900
  CHECK(w.idle_sm_pct == Approx(100 - 100.0 * (1800 * 2 + 900 * 2) / 8000));
}

TEST_CASE("waves are computed when blocks were extrapolated") {
  TimingResult timing = testing::small_timing();
  timing.spans.pop_back();
  const Waves w = predict(testing::small_gpu(), testing::small_trace(), timing).waves;
  CHECK_FALSE(w.from_spans);
  CHECK(w.tail_pct == 50);
  CHECK(w.idle_sm_pct == 25);  // two of four SMs idle in the second of two waves
}

TEST_CASE("tables name the instructions that waste and part") {
  const Prediction p = testing::small_prediction();
  REQUIRE(p.memory.size() == 3);
  CHECK(p.memory[0].sectors == 640);
  CHECK(p.memory[0].wasted_sectors() == 560);
  CHECK(p.memory[1].conflicts == 60);
  CHECK(p.wasted_sectors() == 560);
  REQUIRE(p.divergence.branches.size() == 1);
  CHECK(p.divergence.branches[0].divergent == 10);
  CHECK(p.divergence.idle_lane_pct == Approx(100.0 * 32 / (6 * 64)));
  REQUIRE_FALSE(p.hot_spots.empty());
  CHECK(p.hot_spots[0].instruction == 2);
  CHECK(p.hot_spots[0].reason == Stall::LongScoreboard);
}

TEST_CASE("causes from the counters of one run add up to its time") {
  const Prediction p = testing::small_prediction();
  CHECK_FALSE(p.accounting.simulated);
  REQUIRE_FALSE(p.accounting.causes.empty());
  double cycles = 0, share = 0;
  for (const Cause& cause : p.accounting.causes) {
    CHECK(cause.cycles > 0);
    cycles += cause.cycles;
    share += cause.share_pct;
  }
  CHECK(cycles == Approx(2000));
  CHECK(share == Approx(100));
}

TEST_CASE("causes that do not add up to the elapsed cycles are an error of ours") {
  const GpuModel gpu = testing::small_gpu();
  const KernelTrace trace = testing::small_trace();
  const TimingResult timing = testing::small_timing();
  const Prediction p = predict(gpu, trace, timing);
  const report::Inputs in(gpu, *trace.kernel, trace, p.occupancy, timing);
  Accounting out;
  report::CauseSizes sizes = report::counted_sizes(in, p);
  CHECK_NOTHROW(report::fill_accounting(in, p, sizes, out));
  sizes[CauseKind::L2] += 1;
  CHECK_THROWS_AS(report::fill_accounting(in, p, sizes, out), InternalError);
  sizes[CauseKind::L2] = -1;
  sizes[CauseKind::Issue] += 1;
  CHECK_THROWS_AS(report::fill_accounting(in, p, sizes, out), InternalError);
}

TEST_CASE("lanes are lost where some of a warp work, not where none does") {
  InstructionCount count;
  CHECK(lost_lanes(count) == 0);
  count.executed = 4;
  count.active_lanes = 4 * 32;
  CHECK(lost_lanes(count) == 0);  // a branch that no lane takes
  count.executed_on = 2;
  count.enabled_lanes = 2 * 32;
  CHECK(lost_lanes(count) == 0);  // nor here: whole warps take it
  count.enabled_lanes = 2 * 8;
  CHECK(lost_lanes(count) == 2 * 24);
  count.executed_on = 0;
  count.enabled_lanes = 0;
  count.active_lanes = 4 * 8;  // no lane takes it of those that have come here
  CHECK(lost_lanes(count) == 4 * 24);
}

TEST_CASE("verdicts from the counters of one run are told apart") {
  const GpuModel gpu = testing::small_gpu();
  const KernelTrace trace = testing::small_trace();
  TimingResult timing = testing::small_timing();
  const auto kind = [&] { return predict(gpu, trace, timing).bottleneck; };

  SECTION("latency, with who waits") {
    const Bottleneck b = kind();
    CHECK(b.kind == CauseKind::Latency);
    CHECK_THAT(b.sentence, Contains("waits for global memory") && Contains("FFMA"));
  }
  SECTION("HBM") {
    timing.counters.memory.dram_read_bytes = 180000;
    CHECK(kind().kind == CauseKind::Dram);
  }
  SECTION("L2") {
    timing.counters.memory.read_sectors = 14000;
    CHECK(kind().kind == CauseKind::L2);
  }
  SECTION("shared memory") {
    timing.counters.l1_data_cycles = 7000;
    timing.counters.l1_data_wavefronts = 40;
    const Bottleneck b = kind();
    CHECK(b.kind == CauseKind::Shared);
    CHECK_THAT(b.sentence, Contains("LDS"));
  }
  SECTION("L1") {
    timing.counters.l1_data_cycles = 7000;
    const Bottleneck b = kind();
    CHECK(b.kind == CauseKind::L1);
    CHECK_THAT(b.sentence, Contains("LDG"));
  }
  SECTION("issue") {
    timing.counters.issue_active_cycles = 26000;
    CHECK(kind().kind == CauseKind::Issue);
  }
  SECTION("a pipe") {
    timing.counters.pipe_cycles[static_cast<std::size_t>(Pipe::Fma)] = 30000;
    CHECK(kind().kind == CauseKind::PipeFma);
  }
  SECTION("launch") {
    timing.elapsed_cycles = 300;
    for (BlockSpan& span : timing.spans) span.end = span.start = 100;
    timing.spans.pop_back();
    CHECK(kind().kind == CauseKind::Launch);
  }
  SECTION("idle SMs") {
    for (BlockSpan& span : timing.spans) span.sm = 0;
    CHECK(kind().kind == CauseKind::Tail);
  }
  SECTION("a queue") {
    timing.counters.stalls[static_cast<std::size_t>(Stall::LgThrottle)] = 400000;
    CHECK(kind().kind == CauseKind::L1);
  }
}

TEST_CASE("issue is named first if it has more than half of the time") {
  report::CauseSizes sizes;
  sizes[CauseKind::Issue] = 45;
  sizes[CauseKind::Tail] = 30;
  sizes[CauseKind::Launch] = 25;
  CHECK(report::named_order(sizes, 100) ==
        std::vector<CauseKind>{CauseKind::Tail, CauseKind::Issue, CauseKind::Launch});
  sizes[CauseKind::Issue] = 60;
  CHECK(report::named_order(sizes, 115).front() == CauseKind::Issue);
  CHECK(report::named_order(report::CauseSizes{}, 100).empty());
}

TEST_CASE("a launch without any floating-point work or time has no infinite numbers") {
  TimingResult timing;
  KernelTrace trace = testing::small_trace();
  trace.classes.clear();
  const Prediction p = predict(testing::small_gpu(), trace, timing);
  CHECK(p.roofline.precision == std::string("none"));
  for (const auto& [name, value] : p.metrics) {
    INFO(name);
    CHECK(std::isfinite(value));
  }
}
