// Meanings of the metrics that need timing; exact metrics have theirs in the table of metrics.cpp, sums in
// timing/counters.def.
#include "counters/metrics.h"

namespace forewarp {
namespace {

struct Row {
  const char* name;
  const char* unit;
  const char* meaning;
};

constexpr Row kTimed[] = {
    {"gpc__cycles_elapsed.max", "cycle", "SM clock cycles from launch to the last block's end"},
    {"gpu__time_duration.sum", "ns", "duration of the launch on the GPU"},
    {"sm__cycles_active.avg", "cycle", "cycles with a warp on the SM, mean over SMs"},
    {"sm__cycles_elapsed.avg", "cycle", "SM clock cycles of the launch, mean over SMs"},
    {"smsp__cycles_active.avg", "cycle", "cycles with a warp on the sub-partition, mean over sub-partitions"},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "%",
     "achieved occupancy: warps on an active SM, of its limit"},
    {"sm__warps_active.avg.per_cycle_active", "warp", "warps on an SM, mean over its active cycles"},
    {"sm__maximum_warps_avg_per_active_cycle", "warp", "warps an SM could hold by its limits"},
    {"smsp__warps_active.avg.per_cycle_active", "warp", "warps on a sub-partition, mean over its active cycles"},
    {"smsp__warps_eligible.avg.per_cycle_active", "warp", "warps that could issue, mean over active cycles"},
    {"smsp__issue_active.avg.per_cycle_active", "inst/cycle", "instructions issued a cycle and sub-partition"},
    {"smsp__inst_issued.sum", "inst", "warp instructions issued"},
    {"sm__inst_executed.avg.per_cycle_active", "inst/cycle", "instructions executed a cycle and SM, while active"},
    {"sm__inst_executed.avg.per_cycle_elapsed", "inst/cycle", "instructions executed a cycle and SM, of all cycles"},
    {"smsp__average_warp_latency_per_inst_issued.ratio", "cycle",
     "cycles a warp is resident for each instruction it issues"},
    {"smsp__average_warps_issue_stalled_<reason>_per_issue_active.ratio", "",
     "warps that wait for the reason, for each issuing cycle; barrier: for a warpgroup's products, too"},
    {"l1tex__t_sector_hit_rate.pct", "%", "sectors found in L1, of those looked up"},
    {"l1tex__t_sectors_lookup_<hit|miss>.sum", "sector", "sectors found in L1, and not"},
    {"l1tex__m_xbar2l1tex_read_sectors.sum", "sector", "sectors that came from L2 to L1"},
    {"l1tex__m_l1tex2xbar_write_bytes.sum", "byte", "bytes that went from L1 to L2"},
    {"lts__t_sectors_srcunit_tex_op_read.sum", "sector", "sectors that the SMs read from L2"},
    {"lts__t_sectors_srcunit_tex.sum", "sector", "sectors asked of L2 by the SMs, all kinds"},
    {"lts__t_requests_srcunit_tex.sum", "request", "requests to L2 by the SMs"},
    {"lts__t_sector_hit_rate.pct", "%", "sectors found in L2, of those looked up"},
    {"dram__bytes.sum", "byte", "HBM traffic"},
    {"dram__bytes.sum.per_second", "byte/s", "HBM traffic a second"},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "HBM traffic, of its peak"},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "busiest unit of the SM, of its peak"},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%",
     "busiest unit of the memory system, of its peak"},
    {"<l1tex|lts>__throughput.avg.pct_of_peak_sustained_elapsed", "%", "busiest part of L1 or L2, of its peak"},
    {"sm__maximum_warps_per_active_cycle_pct", "%", "theoretical occupancy"},
    {"launch__registers_per_thread", "register/thread", "registers as the driver allocates them"},
    {"launch__occupancy_limit_<blocks|registers|shared_mem|warps>", "block",
     "blocks an SM could hold by this limit alone"},
    {"launch__waves_per_multiprocessor", "", "blocks of the grid over the blocks that the GPU holds at once"},
    {"launch__cluster_<size|max_active>", "", "blocks of a cluster, and clusters that the GPU holds at once"},
    {"launch__<grid_size|block_size|thread_count>", "", "shape of the launch"},
    {"launch__shared_mem_per_block_<static|dynamic|allocated>", "byte/block", "shared memory of a block"},
    {"launch__shared_mem_config_size", "byte", "shared memory that the SM is set up for"},
    {"forewarp__operations_<fp32|fp16|fp64>.sum", "FLOP",
     "floating-point operations; halves that only load a constant or widen are not counted"},
    {"forewarp__operations_tensor_<type>.sum", "op", "operations of matrix instructions"},
    {"forewarp__wasted_sectors.<sum|pct>", "sector, %", "sectors beyond what the lanes' bytes would fill"},
    {"forewarp__idle_lanes.pct", "%", "lanes of executed instructions that did nothing"},
    {"forewarp__divergent_branches.pct", "%", "branches whose threads went different ways"},
    {"forewarp__roofline_<term>", "", "position on the roofline: operations, bytes, intensity, ceilings"},
    {"forewarp__waves_<term>, forewarp__idle_sms.pct", "", "how blocks fill the GPU wave after wave"},
    {"forewarp__cycles_uncertainty.pct", "%",
     "half of the 95 % confidence interval of the elapsed cycles, from what was extrapolated"},
};

}  // namespace

std::vector<MetricDescription> describe_metrics() {
  std::vector<MetricDescription> all;
  for (const ExactMetric& metric : exact_metric_table())
    all.push_back({metric.name, metric.unit, metric.meaning, true});
  const auto counter = [&](const char* metric, const char* unit, const char* meaning) {
    if (*metric != '\0') all.push_back({metric, unit, meaning, false});
  };
#define FW_SM_COUNTER(name, scope, metric, unit, meaning) counter(metric, unit, meaning);
#define FW_MEMORY_COUNTER(name, scope, metric, unit, meaning) counter(metric, unit, meaning);
#include "timing/counters.def"
  for (const Row& row : kTimed) all.push_back({row.name, row.unit, row.meaning, false});
  return all;
}

}  // namespace forewarp
