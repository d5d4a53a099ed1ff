#include "hardware/sm_clock.h"

#include <algorithm>
#include <cmath>

namespace forewarp {

std::vector<std::string> at_sm_clock(const GpuModel& m, double mhz) {
  const double slower = m.chip.sm_clock_mhz / mhz;
  std::vector<std::string> changes{leaf_change("chip.sm_clock_mhz", mhz),
                                   leaf_change("l2.clock_ratio", m.l2.clock_ratio * slower)};
  const auto rate = [&](const char* leaf, int a_cycle) {
    if (a_cycle > 0) changes.push_back(leaf_change(leaf, std::max(1.0, std::round(a_cycle * slower))));
  };
  const auto latency = [&](const char* leaf, int cycles) {
    changes.push_back(leaf_change(leaf, std::round(cycles / slower)));
  };
  const CrossbarSpec& x = m.crossbar;
  rate("crossbar.gpc_response_bytes_per_cycle", x.gpc_response_bytes_per_cycle);
  rate("crossbar.gpc_fanout_bytes_per_cycle", x.gpc_fanout_bytes_per_cycle);
  rate("crossbar.cpc_write_bytes_per_cycle", x.cpc_write_bytes_per_cycle);
  rate("crossbar.slice_write_bytes_per_cycle", x.slice_write_bytes_per_cycle);
  rate("crossbar.fabric_bytes_per_cycle", x.fabric_bytes_per_cycle);
  latency("crossbar.request_cycles", x.request_cycles);
  latency("crossbar.response_cycles", x.response_cycles);
  latency("crossbar.far_cycles", x.far_cycles);
  latency("crossbar.slice_cycles", x.slice_cycles);
  latency("crossbar.copy_cycles", x.copy_cycles);
  latency("l2.hit_cycles", m.l2.hit_cycles);
  latency("l2.coalescer_cycles", m.l2.coalescer_cycles);
  return changes;
}

}  // namespace forewarp
