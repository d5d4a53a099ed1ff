// Counters that need timing, from the raw sums of a simulated launch, with Nsight Compute's names, units and semantics.
#include <algorithm>
#include <initializer_list>

#include "report/analysis.h"

namespace forewarp::report {

namespace {

double number(std::uint64_t value) { return static_cast<double>(value); }

/// Sums that are a metric as they stand.
void add_counters(const TimingCounters& c, MetricSet& m) {
  const auto set = [&](const char* metric, std::uint64_t value) {
    if (*metric != '\0') m.set(metric, number(value));
  };
#define FW_SM_COUNTER(name, scope, metric, unit, meaning) set(metric, c.name);
#define FW_MEMORY_COUNTER(name, scope, metric, unit, meaning) set(metric, c.memory.name);
#include "timing/counters.def"
}

void add_time(const Inputs& in, MetricSet& m) {
  const TimingCounters& c = in.timing.counters;
  m.set("gpc__cycles_elapsed.max", number(in.timing.elapsed_cycles));
  m.set("gpu__time_duration.sum", in.seconds * 1e9);
  m.set("sm__cycles_elapsed.avg", number(in.timing.elapsed_cycles));
  m.set("smsp__cycles_elapsed.avg.per_second", in.model.chip.sm_clock_mhz * 1e6);
  m.set("sm__cycles_active.avg", ratio(number(c.sm_active_cycles), in.sms));
  m.set("smsp__cycles_active.avg", ratio(number(c.smsp_active_cycles), in.sub_partitions));
}

void add_scheduler(const Inputs& in, MetricSet& m) {
  const TimingCounters& c = in.timing.counters;
  const double issued = number(c.issue_active_cycles);
  const double active = number(c.smsp_active_cycles);
  const double eligible = number(c.stalls[static_cast<std::size_t>(Stall::Selected)] +
                                 c.stalls[static_cast<std::size_t>(Stall::NotSelected)]);
  // Warps count for the SM as soon as they have a slot, for their sub-partition once it has them.
  double warps = 0;
  for (const std::uint64_t stall : c.stalls) warps += number(stall);
  double executed = 0;
  for (const InstructionCount& t : in.totals) executed += number(t.executed);
  m.set("sm__warps_active.avg.pct_of_peak_sustained_active",
        percent(number(c.warp_cycles), number(c.sm_active_cycles) * in.model.occupancy.max_warps));
  m.set("sm__warps_active.avg.per_cycle_active", ratio(number(c.warp_cycles), number(c.sm_active_cycles)));
  m.set("smsp__warps_active.avg.per_cycle_active", ratio(warps, active));
  m.set("smsp__warps_eligible.avg.per_cycle_active", ratio(eligible, active));
  m.set("smsp__issue_active.avg.per_cycle_active", ratio(issued, active));
  m.set("smsp__issue_inst0.avg.pct_of_peak_sustained_active", active == 0 ? 0 : 100 - percent(issued, active));
  m.set("smsp__inst_issued.sum", issued);
  m.set("sm__inst_executed.avg.per_cycle_active", ratio(executed, number(c.sm_active_cycles)));
  m.set("sm__inst_executed.avg.per_cycle_elapsed", executed / (in.sms * in.cycles));
  m.set("smsp__average_warp_latency_per_inst_issued.ratio", ratio(warps, issued));
  const auto stalled = [&](Stall reason) { return number(c.stalls[static_cast<std::size_t>(reason)]); };
  for (std::size_t r = 0; r < kStallReasons; ++r) {
    const auto reason = static_cast<Stall>(r);
    if (reason == Stall::Products) continue;
    const std::string name = stall_name(reason);
    const double waiting = stalled(reason) + (reason == Stall::Barrier ? stalled(Stall::Products) : 0);
    m.set("smsp__average_warps_issue_stalled_" + name + "_per_issue_active.ratio", ratio(waiting, issued));
  }
}

void add_caches(const Inputs& in, MetricSet& m) {
  const TimingCounters& c = in.timing.counters;
  const MemoryCounters& mem = c.memory;
  // What atomics and reductions ask of L2 counts as missed (kernels/micro l2, l2_modify).
  const double to_l2 = m.get("l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum") +
                       m.get("l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum");
  // A load's sector that an earlier miss already requested counts as a hit: on an H200 the misses are the sectors that
  // came from L2 and the stores that went there.
  const double l1 = number(c.l1_load_sectors + c.l1_store_sectors) + to_l2;
  const double load_misses = std::min(number(mem.read_sectors), number(c.l1_load_sectors));
  const double l1_hits = number(c.l1_load_sectors) - load_misses + number(c.l1_store_hit_sectors);
  m.set("l1tex__t_sector_hit_rate.pct", percent(l1_hits, l1));
  m.set("l1tex__t_sectors_lookup_hit.sum", l1_hits);
  m.set("l1tex__t_sectors_lookup_miss.sum", l1 - l1_hits);
  m.set("l1tex__m_xbar2l1tex_read_sectors.sum", number(mem.read_sectors + mem.atomic_sectors));
  m.set("l1tex__m_l1tex2xbar_write_bytes.sum",
        number(mem.write_sectors + mem.atomic_sectors + mem.reduction_sectors) * kSectorBytes);
  m.set("lts__t_sectors_srcunit_tex_op_read.sum", number(mem.read_sectors - mem.merged_sectors));
  m.set("lts__t_sectors_srcunit_tex.sum", number(mem.slice_sectors()));
  m.set("lts__t_requests_srcunit_tex.sum",
        number(mem.read_requests - mem.merged_requests + mem.write_requests + mem.atomic_requests));
  // Lookups for the other partition count as well, and those that merge partly written sectors; sectors fetched along
  // with missed ones count in neither.
  const std::uint64_t besides = mem.fabric_hit_sectors + mem.fabric_miss_sectors + mem.merge_sectors;
  m.set("lts__t_sector_hit_rate.pct",
        percent(number(mem.hit_sectors + mem.fabric_hit_sectors), number(mem.slice_sectors() + besides)));
  const double dram = number(mem.dram_read_bytes + mem.dram_write_bytes);
  m.set("dram__bytes.sum", dram);
  m.set("dram__bytes.sum.per_second", ratio(dram, in.seconds));
  m.set("dram__bytes_read.sum.per_second", ratio(number(mem.dram_read_bytes), in.seconds));
  m.set("dram__bytes_write.sum.per_second", ratio(number(mem.dram_write_bytes), in.seconds));
}

double largest(const std::vector<ThroughputTerm>& terms, std::initializer_list<std::string_view> prefixes) {
  double most = 0;
  for (const ThroughputTerm& t : terms)
    for (const std::string_view prefix : prefixes)
      if (t.metric.starts_with(prefix)) most = std::max(most, t.pct);
  return most;
}

void add_throughputs(const Inputs& in, MetricSet& m) {
  const std::vector<ThroughputTerm> compute = compute_throughputs(in);
  const std::vector<ThroughputTerm> memory = memory_throughputs(in);
  const std::string elapsed = ".avg.pct_of_peak_sustained_elapsed";
  for (const auto* terms : {&compute, &memory})
    for (const ThroughputTerm& t : *terms) m.set(t.metric + elapsed, t.pct);
  m.set("sm__throughput" + elapsed, largest(compute, {"sm__"}));
  m.set("gpu__compute_memory_throughput" + elapsed, largest(memory, {"l1tex__", "lts__", "dram__"}));
  m.set("l1tex__throughput" + elapsed, largest(memory, {"l1tex__"}));
  m.set("lts__throughput" + elapsed, largest(memory, {"lts__"}));
}

/// Terms that the SpeedOfLight roofline sections multiply.
void add_roofline_terms(const Inputs& in, MetricSet& m) {
  struct Term {
    OperationClass operation;
    const char* name;
  };
  for (const Term& t :
       {Term{OperationClass::Fadd, "fadd"}, Term{OperationClass::Fmul, "fmul"}, Term{OperationClass::Ffma, "ffma"},
        Term{OperationClass::Dadd, "dadd"}, Term{OperationClass::Dmul, "dmul"}, Term{OperationClass::Dfma, "dfma"},
        Term{OperationClass::Hadd, "hadd"}, Term{OperationClass::Hmul, "hmul"}, Term{OperationClass::Hfma, "hfma"}}) {
    double threads = 0;
    for (std::size_t i = 0; i < in.totals.size(); ++i)
      if (in.kernel.instructions[i].operation == t.operation) threads += number(in.totals[i].enabled_lanes);
    m.set(std::string("smsp__sass_thread_inst_executed_op_") + t.name + "_pred_on.sum.per_cycle_elapsed",
          threads / in.cycles);
  }
  for (const auto& [pipe, name] : {std::pair{Pipe::Fma, "ffma"}, std::pair{Pipe::Fp64, "dfma"}}) {
    const PipeSpec& spec = in.model.pipe(pipe);
    if (spec.interval <= 0) continue;
    m.set(std::string("sm__sass_thread_inst_executed_op_") + name + "_pred_on.sum.peak_sustained",
          (spec.per_sm ? in.sms : in.sub_partitions) * kWarpLanes / spec.interval);
  }
}

}  // namespace

void add_timed_metrics(const Inputs& in, MetricSet& m) {
  add_time(in, m);
  add_counters(in.timing.counters, m);
  add_scheduler(in, m);
  add_caches(in, m);
  add_throughputs(in, m);
  add_roofline_terms(in, m);
}

void add_launch_metrics(const Inputs& in, MetricSet& m) {
  const Occupancy& o = in.occupancy;
  const LaunchInfo& launch = in.trace.launch;
  m.set("launch__registers_per_thread", in.occupancy.registers_per_thread);
  m.set("launch__grid_size", number(launch.grid.count()));
  m.set("launch__block_size", number(launch.block.count()));
  m.set("launch__thread_count", number(launch.grid.count() * launch.block.count()));
  m.set("launch__shared_mem_per_block_static", in.kernel.static_shared_bytes);
  m.set("launch__shared_mem_per_block_dynamic", launch.dynamic_shared_bytes);
  m.set("launch__shared_mem_per_block_allocated", o.shared_bytes_per_block);
  m.set("launch__shared_mem_config_size", o.shared_config_bytes);
  m.set("launch__occupancy_limit_blocks", o.limit_blocks);
  m.set("launch__occupancy_limit_registers", o.limit_registers);
  m.set("launch__occupancy_limit_shared_mem", o.limit_shared);
  m.set("launch__occupancy_limit_warps", o.limit_warps);
  m.set("launch__waves_per_multiprocessor", o.waves);
  if (const std::uint64_t together = launch.cluster.count(); together > 0) {
    m.set("launch__cluster_size", number(together));
    m.set("launch__cluster_max_active", number(blocks_at_once(in.model, o.blocks_per_sm, together) / together));
  }
  m.set("sm__maximum_warps_per_active_cycle_pct", o.theoretical_pct);
  m.set("sm__maximum_warps_avg_per_active_cycle", o.theoretical_pct / 100 * in.model.occupancy.max_warps);
}

void add_own_metrics(const Prediction& p, MetricSet& m) {
  const Roofline& r = p.roofline;
  for (const RooflineWork& w : r.work) m.set(std::string("forewarp__operations_") + w.name + ".sum", w.operations);
  for (const RooflineLevel& level : r.levels) {
    std::string name = level.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c); });
    m.set("forewarp__roofline_bytes_" + name + ".sum", level.bytes);
    m.set("forewarp__roofline_intensity_" + name, level.intensity);
    m.set("forewarp__roofline_bytes_per_second_" + name, level.bytes_per_second);
    m.set("forewarp__roofline_peak_bytes_per_second_" + name, level.peak_bytes_per_second);
  }
  m.set("forewarp__roofline_attained_per_second", r.attained);
  m.set("forewarp__roofline_ceiling_per_second", r.ceiling);
  m.set("forewarp__roofline_attained_of_ceiling.pct", r.attained_pct);
  m.set("forewarp__wasted_sectors.sum", static_cast<double>(p.wasted_sectors()));
  m.set("forewarp__wasted_sectors.pct",
        percent(static_cast<double>(p.wasted_sectors()), static_cast<double>(p.sectors())));
  m.set("forewarp__idle_lanes.pct", p.divergence.idle_lane_pct);
  m.set("forewarp__divergent_branches.pct",
        percent(static_cast<double>(p.divergence.divergent), static_cast<double>(p.divergence.executed)));
  m.set("forewarp__waves_full", static_cast<double>(p.waves.full_waves));
  m.set("forewarp__waves_last_blocks", static_cast<double>(p.waves.last_wave_blocks));
  m.set("forewarp__waves_last_fill.pct", p.waves.last_wave_fill_pct);
  m.set("forewarp__waves_tail.pct", p.waves.tail_pct);
  m.set("forewarp__idle_sms.pct", p.waves.idle_sm_pct);
  m.set("forewarp__cycles_uncertainty.pct", p.coverage.uncertainty_pct());
}

}  // namespace forewarp::report
