// One sentence: what limits the kernel, and the numbers that show it. The rules, in order: too little work for a
// launch, a unit near its limit, idle SMs, queues in front of a unit, latency that too few warps hide.
#include <algorithm>
#include <cmath>

#include "report/analysis.h"
#include "report/format.h"

namespace forewarp {

const char* bottleneck_name(BottleneckKind kind) {
  switch (kind) {
    case BottleneckKind::Launch:
      return "launch";
    case BottleneckKind::Tail:
      return "tail";
    case BottleneckKind::Dram:
      return "hbm";
    case BottleneckKind::L2:
      return "l2";
    case BottleneckKind::L1:
      return "l1";
    case BottleneckKind::SharedMemory:
      return "shared_memory";
    case BottleneckKind::Pipe:
      return "pipe";
    case BottleneckKind::Issue:
      return "issue";
    case BottleneckKind::Divergence:
      return "divergence";
    case BottleneckKind::Latency:
      return "latency";
    case BottleneckKind::Count:
      break;
  }
  return "?";
}

namespace report {

namespace {

constexpr double kLaunchShare = 40;  ///< percent of the cycles spent outside the blocks
constexpr double kBusy = 60;         ///< Nsight Compute's own threshold between "bound by" and "latency issues"
constexpr double kIdleSms = 35;      ///< percent of SM time without a block
constexpr double kQueueShare = 30;   ///< percent of warp-cycles spent in front of one unit's queue
constexpr double kFewLanes = 20;     ///< working lanes of 32
constexpr double kWasteful = 25;     ///< percent of sectors or wavefronts beyond need

struct Shared {
  double wavefronts = 0, conflicts = 0;
};

Shared shared_traffic(const Prediction& p) {
  Shared s;
  for (const MemoryRow& row : p.memory) {
    s.wavefronts += static_cast<double>(row.wavefronts);
    s.conflicts += static_cast<double>(row.conflicts);
  }
  return s;
}

/// "warps wait 45.0 % of their time for data from global memory (long_scoreboard), most at LDG.E R4, [R2.64]"
std::string waiting(const Prediction& p) {
  const auto stall =
      std::find_if(p.stalls.begin(), p.stalls.end(), [](const StallShare& s) { return s.reason != Stall::Selected; });
  if (stall == p.stalls.end()) return "warps hardly wait";
  std::string meaning = stall_meaning(stall->reason);
  if (meaning.starts_with("waited "))
    meaning = "in " + percent_text(stall->share_pct) + " of their time warps " + meaning;
  else
    meaning = "in " + percent_text(stall->share_pct) + " of its time a warp " + meaning;
  std::string text = meaning + " (" + stall_name(stall->reason) + ")";
  const auto spot =
      std::find_if(p.hot_spots.begin(), p.hot_spots.end(), [&](const HotSpot& h) { return h.reason == stall->reason; });
  if (spot != p.hot_spots.end()) text += ", most of all at " + address(spot->instruction) + " " + spot->text;
  return text;
}

std::string waste(const Prediction& p) {
  const double wasted = percent(static_cast<double>(p.wasted_sectors()), static_cast<double>(p.sectors()));
  return wasted < kWasteful ? ""
                            : "; " + percent_text(wasted) + " of the sectors that its accesses touch are not needed";
}

std::string occupancy_reason(const Inputs& in, const Prediction& p) {
  const double achieved = p.metrics.get("sm__warps_active.avg.pct_of_peak_sustained_active");
  std::string text = "occupancy is " + percent_text(achieved);
  if (p.occupancy.theoretical_pct < 99.5) {
    text += ", at most " + percent_text(p.occupancy.theoretical_pct) + " because of " + p.occupancy.limiter;
  }
  if (achieved < 0.7 * p.occupancy.theoretical_pct && p.waves.blocks < p.waves.blocks_per_wave) {
    text += ", and the grid's " + count(p.waves.blocks) + " blocks do not fill the " + count(p.waves.blocks_per_wave) +
            " places of " + count(static_cast<std::uint64_t>(in.model.chip.sm_count)) + " SMs";
  }
  return text;
}

Bottleneck busy_memory(const Inputs& in, const Prediction& p, const ThroughputTerm& term) {
  const MemoryCounters& m = in.timing.counters.memory;
  const std::string pct = percent_text(term.pct);
  if (term.metric.starts_with("dram")) {
    const double rate = ratio(static_cast<double>(m.dram_read_bytes + m.dram_write_bytes), in.seconds);
    return {BottleneckKind::Dram, "Bound by HBM bandwidth: it moves " + si(rate, "B/s") + ", " + pct + " of " +
                                      si(in.model.hbm.bytes_per_ns * 1e9, "B/s") + ", while " + waiting(p) + waste(p) +
                                      "."};
  }
  if (term.metric.starts_with("lts") || term.metric.starts_with("forewarp__xbar")) {
    const double rate = ratio(static_cast<double>(m.read_sectors + m.write_sectors) * kSectorBytes, in.seconds);
    return {BottleneckKind::L2, "Bound by the L2 cache: " + term.label + " at " + pct + " of the limit (" +
                                    si(rate, "B/s") + ", hit rate " +
                                    percent_text(p.metrics.get("lts__t_sector_hit_rate.pct")) + "), while " +
                                    waiting(p) + waste(p) + "."};
  }
  const Shared shared = shared_traffic(p);
  const auto global = static_cast<double>(in.timing.counters.l1_data_wavefronts);
  if (shared.wavefronts > global) {
    const double conflicts = percent(shared.conflicts, shared.wavefronts);
    const std::string banks =
        conflicts < kWasteful ? "" : "; " + percent_text(conflicts) + " of its wavefronts are bank conflicts";
    return {BottleneckKind::SharedMemory, "Bound by shared memory: " + term.label + " at " + pct +
                                              " of the limit with " +
                                              count(static_cast<std::uint64_t>(shared.wavefronts)) +
                                              " wavefronts, while " + waiting(p) + banks + "."};
  }
  return {BottleneckKind::L1, "Bound by the L1 cache and its load-store unit: " + term.label + " at " + pct +
                                  " of the limit, while " + waiting(p) + waste(p) + "."};
}

Bottleneck busy_compute(const Prediction& p, const ThroughputTerm& term) {
  const bool few = p.divergence.enabled_lanes < kFewLanes;
  const std::string lanes =
      few ? ", and only " + fixed(p.divergence.enabled_lanes, 1) + " of 32 lanes work in an instruction" : "";
  const std::string rest = " at " + percent_text(term.pct) + " of the limit, while " + waiting(p) + lanes + ".";
  if (few) return {BottleneckKind::Divergence, "Bound by instructions with idle lanes: " + term.label + rest};
  if (term.metric == "sm__issue_active" || term.metric == "sm__inst_executed")
    return {BottleneckKind::Issue, "Bound by instruction issue: " + term.label + rest};
  if (term.metric == "sm__inst_executed_pipe_lsu")
    return {BottleneckKind::L1, "Bound by the load-store unit: " + term.label + rest};
  return {BottleneckKind::Pipe, "Bound by an execution pipe: " + term.label + rest};
}

double stall_share(const Prediction& p, Stall reason) {
  const auto found =
      std::find_if(p.stalls.begin(), p.stalls.end(), [&](const StallShare& s) { return s.reason == reason; });
  return found == p.stalls.end() ? 0 : found->share_pct;
}

/// No unit is near its limit: names what warps wait for.
Bottleneck waiting_bound(const Inputs& in, const Prediction& p, const std::string& highest) {
  const double lg = stall_share(p, Stall::LgThrottle), mio = stall_share(p, Stall::MioThrottle);
  const double math = stall_share(p, Stall::MathPipeThrottle);
  if (lg > kQueueShare)
    return {BottleneckKind::L1,
            "Bound by the queue into the L1 cache: " + waiting(p) + waste(p) + "; " + highest + "."};
  if (mio > kQueueShare) {
    const Shared shared = shared_traffic(p);
    const double conflicts = percent(shared.conflicts, shared.wavefronts);
    const std::string banks =
        conflicts < kWasteful ? ""
                              : "; " + percent_text(conflicts) + " of the shared-memory wavefronts are bank conflicts";
    return {BottleneckKind::SharedMemory, "Bound by the queue of shared-memory and special instructions: " +
                                              waiting(p) + banks + "; " + highest + "."};
  }
  if (math > kQueueShare)
    return {BottleneckKind::Pipe, "Bound by an execution pipe: " + waiting(p) + "; " + highest + "."};
  const double divergent =
      percent(static_cast<double>(p.divergence.divergent), static_cast<double>(p.divergence.executed));
  if (p.divergence.enabled_lanes < kFewLanes && divergent > 10) {
    return {BottleneckKind::Divergence,
            "Held back by divergence: " + percent_text(divergent) + " of branches part the lanes and only " +
                fixed(p.divergence.enabled_lanes, 1) + " of 32 lanes work in an instruction; " + waiting(p) + "."};
  }
  return {BottleneckKind::Latency,
          "Bound by latency: " + waiting(p) + "; " + highest + "; " + occupancy_reason(in, p) + "."};
}

}  // namespace

Bottleneck find_bottleneck(const Inputs& in, const Prediction& p) {
  const LaunchSpec& launch = in.model.launch;
  const double fixed_cycles = launch.start_cycles + launch.block_start_cycles + launch.end_cycles;
  const double launch_share = percent(std::min(fixed_cycles, in.cycles), in.cycles);
  if (launch_share >= kLaunchShare) {
    return {BottleneckKind::Launch, "Too small for its launch: " + percent_text(launch_share) + " of its " +
                                        count(in.timing.elapsed_cycles) +
                                        " cycles are start and end of the kernel, not its blocks."};
  }
  const ThroughputTerm none{"", "nothing", 0};
  const ThroughputTerm& compute = p.compute.empty() ? none : p.compute.front();
  const ThroughputTerm& memory = p.memory_terms.empty() ? none : p.memory_terms.front();
  if (std::max(compute.pct, memory.pct) >= kBusy)
    return memory.pct >= compute.pct ? busy_memory(in, p, memory) : busy_compute(p, compute);
  if (p.waves.idle_sm_pct >= kIdleSms) {
    return {BottleneckKind::Tail, "Bound by idle SMs: " + percent_text(p.waves.idle_sm_pct) +
                                      " of the SM-time has no block, since " + count(p.waves.blocks) + " blocks make " +
                                      fixed(p.occupancy.waves, 2) + " waves of " + count(p.waves.blocks_per_wave) +
                                      " on " + count(static_cast<std::uint64_t>(p.sm_count)) + " SMs; " + waiting(p) +
                                      "."};
  }
  const ThroughputTerm& most = memory.pct >= compute.pct ? memory : compute;
  return waiting_bound(in, p, "the busiest unit is " + most.label + " at " + percent_text(most.pct));
}

}  // namespace report
}  // namespace forewarp
