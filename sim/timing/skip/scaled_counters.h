// Event counts of a part of a launch, scaled to the part that was left out.
#pragma once

#include "timing/memory/l2_traffic.h"
#include "timing/result.h"
#include "trace/coalesce.h"
#include "trace/trace.h"

namespace forewarp {

/// a + (b - c) * factor for every event count; b is not earlier than c.
void add_scaled(TimingCounters& a, const TimingCounters& b, const TimingCounters& c, double factor);

/// Puts what passed by L2 in place of what was scaled up since `before`.
void set_traffic(MemoryCounters&, const MemoryCounters& before, const L2Traffic&);

/// Sectors that loads and stores ask of L1 in a whole launch, and boxes of L2.
struct AccessSectors {
  std::uint64_t loads = 0, stores = 0, box_loads = 0, box_stores = 0;
};
AccessSectors traced_sectors(const KernelTrace&, const CoalescedPatterns&);

/// Where a part of a launch was scaled up, what it asks of L1 is known all the same: L1 and L2 get their share of that.
/// A window in the middle of a loop has none of the stores at its end.
/// `misses_known`: misses are not scaled (set_traffic).
void set_sectors(TimingCounters&, const AccessSectors& known, bool misses_known);

}  // namespace forewarp
