#include "report/prediction.h"

#include <algorithm>

#include "base/error.h"
#include "report/accounting.h"
#include "report/analysis.h"
#include "report/opcode_states.h"

namespace forewarp {

namespace report {

Inputs::Inputs(const GpuModel& m, const Kernel& k, const KernelTrace& t, const Occupancy& o, const TimingResult& r)
    : model(m), kernel(k), trace(t), occupancy(o), timing(r), totals(t.totals()) {
  FW_CHECK(totals.size() <= kernel.instructions.size(), "the trace counts instructions that the kernel does not have");
  cycles = static_cast<double>(std::max<Cycle>(r.elapsed_cycles, 1));
  seconds = static_cast<double>(r.elapsed_cycles) / (m.chip.sm_clock_mhz * 1e6);
  sms = m.chip.sm_count;
  sub_partitions = sms * m.issue.sub_partitions;
}

}  // namespace report

double Prediction::cycles() const { return metrics.get("gpc__cycles_elapsed.max"); }
double Prediction::time_ns() const { return metrics.get("gpu__time_duration.sum"); }

std::uint64_t Prediction::wasted_sectors() const {
  std::uint64_t sum = 0;
  for (const MemoryRow& row : memory) sum += row.wasted_sectors();
  return sum;
}

std::uint64_t Prediction::sectors() const {
  std::uint64_t sum = 0;
  for (const MemoryRow& row : memory) sum += row.sectors;
  return sum;
}

Prediction build_prediction(const GpuModel& model, const Kernel& kernel, const KernelTrace& trace,
                            const Occupancy& occupancy, const TimingResult& timing, CacheState caches) {
  const report::Inputs in(model, kernel, trace, occupancy, timing);
  Prediction p;
  p.case_id = trace.launch.case_id;
  p.launch = trace.launch.launch_index;
  p.kernel = kernel.demangled.empty() ? kernel.name : kernel.demangled;
  p.grid = trace.launch.grid;
  p.block = trace.launch.block;
  p.cluster = trace.launch.cluster;
  p.gpu = model.name;
  p.gpu_title = model.title;
  p.gpu_changes = model.changes;
  p.leaves = model.leaves;
  p.sm_count = model.chip.sm_count;
  p.clock_mhz = model.chip.sm_clock_mhz;
  p.roofs = arithmetic_roofs(model);
  p.caches = caches;
  p.occupancy = occupancy;
  p.coverage = timing.coverage;
  const LaunchInfo& launch = trace.launch;
  p.coverage.counters_exact = (launch.inferred_blocks == 0 || !launch.counted.empty()) && !launch.inputs_incomplete;
  p.warnings = timing.warnings;
  report::add_state_warnings(in, p.warnings);
  p.memory = report::memory_rows(in);
  p.divergence = report::make_divergence(in);
  p.stalls = report::stall_shares(in);
  p.hot_spots = report::hot_spots(in);
  p.waves = report::make_waves(in);
  p.roofline = report::make_roofline(in);
  p.compute = report::compute_throughputs(in);
  p.memory_terms = report::memory_throughputs(in);
  p.metrics = exact_metrics(trace);
  report::add_launch_metrics(in, p.metrics);
  report::add_timed_metrics(in, p.metrics);
  report::add_own_metrics(p, p.metrics);
  p.accounting.method = "counters of the one run";
  report::fill_accounting(in, p, report::counted_sizes(in, p), p.accounting);
  p.bottleneck = report::verdict(in, p.accounting);
  p.instructions = report::instruction_rows(in);
  p.examples = report::access_examples(in);
  p.stream = report::warp_stream(in);
  p.choices = report::occupancy_choices(in);
  p.spans = report::drawn_spans(in);
  p.residency = report::residency(in);
  p.skipped = timing.skipped;
  p.costs = report::launch_costs(in);
  p.timeline = report::warp_timeline(in, p);
  return p;
}

}  // namespace forewarp
