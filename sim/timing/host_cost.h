// What a simulation costs the machine that runs it, in processor seconds at a nominal speed (FINDINGS.md: what a
// prediction costs).
#pragma once

#include "timing/result.h"

namespace forewarp {

/// For a warp instruction, a line looked up in L1, a request below it, a sector of an atomic operation and one of DRAM.
inline double seconds_of(const TimingCounters& c) {
  return static_cast<double>(c.instructions_issued) / 6.2e6 + static_cast<double>(c.l1_tag_lookups) / 10e6 +
         static_cast<double>(c.memory.read_requests + c.memory.write_requests) / 1.6e6 +
         static_cast<double>(c.memory.atomic_sectors + c.memory.reduction_sectors) / 2.8e6 +
         static_cast<double>(c.memory.dram_read_bytes + c.memory.dram_write_bytes) / kSectorBytes / 1.2e6;
}

/// For a line of BlockFootprint::work().
inline constexpr double kSecondsALine = 1 / 17e6;

}  // namespace forewarp
