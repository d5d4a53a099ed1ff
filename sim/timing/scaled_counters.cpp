#include "timing/scaled_counters.h"

#include <cmath>

namespace forewarp {

void add_scaled(TimingCounters& a, const TimingCounters& b, const TimingCounters& c, double factor) {
  const auto add = [factor](std::uint64_t& to, std::uint64_t later, std::uint64_t earlier) {
    to += static_cast<std::uint64_t>(std::llround(static_cast<double>(later - earlier) * factor));
  };
#define FW_ADD(field) add(a.field, b.field, c.field)
  FW_ADD(issue_active_cycles);
  FW_ADD(smsp_active_cycles);
  FW_ADD(sm_active_cycles);
  FW_ADD(warp_cycles);
  for (std::size_t i = 0; i < kStallReasons; ++i) FW_ADD(stalls[i]);
  FW_ADD(l1_load_sectors);
  FW_ADD(l1_load_hit_sectors);
  FW_ADD(l1_store_sectors);
  FW_ADD(l1_store_hit_sectors);
  FW_ADD(l1_tag_lookups);
  FW_ADD(l1_data_wavefronts);
  FW_ADD(shared_wavefronts);
  FW_ADD(l1_data_cycles);
  FW_ADD(icache_l0_misses);
  FW_ADD(icache_l1_misses);
  FW_ADD(icache_l2_misses);
  for (std::size_t i = 0; i < a.pipe_cycles.size(); ++i) FW_ADD(pipe_cycles[i]);
  FW_ADD(memory.read_requests);
  FW_ADD(memory.write_requests);
  FW_ADD(memory.atomic_requests);
  FW_ADD(memory.read_sectors);
  FW_ADD(memory.write_sectors);
  FW_ADD(memory.atomic_sectors);
  FW_ADD(memory.reduction_sectors);
  FW_ADD(memory.hit_sectors);
  FW_ADD(memory.miss_sectors);
  FW_ADD(memory.merged_requests);
  FW_ADD(memory.merged_sectors);
  FW_ADD(memory.fabric_hit_sectors);
  FW_ADD(memory.fabric_miss_sectors);
  FW_ADD(memory.fabric_sectors);
  FW_ADD(memory.dram_read_bytes);
  FW_ADD(memory.dram_write_bytes);
  FW_ADD(memory.row_hits);
  FW_ADD(memory.row_misses);
  FW_ADD(memory.row_conflicts);
  FW_ADD(memory.turnarounds);
  FW_ADD(memory.read_latency_cycles);
  FW_ADD(memory.read_replies);
#undef FW_ADD
}

}  // namespace forewarp
