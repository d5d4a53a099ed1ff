// A first-in first-out resource that serves so many units a cycle: a port, a wire, a tag pipe. Because callers come in
// the order of simulated time, its queue is fully described by the time at which it is next free. Times are fixed
// point, 1/1024 cycle, so rates that do not divide a cycle keep their exact throughput.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "base/types.h"

namespace forewarp {

using FineCycle = std::uint64_t;
inline constexpr int kFineBits = 10;

constexpr FineCycle to_fine(Cycle c) { return c << kFineBits; }
constexpr Cycle fine_floor(FineCycle f) { return f >> kFineBits; }
constexpr Cycle fine_ceil(FineCycle f) { return (f + ((FineCycle{1} << kFineBits) - 1)) >> kFineBits; }

class RateServer {
 public:
  /// Joins the queue at `arrival`; returns when service starts.
  FineCycle take(FineCycle arrival, FineCycle cost) {
    const FineCycle start = std::max(arrival, free_);
    free_ = start + cost;
    return start;
  }
  FineCycle free() const { return free_; }
  /// Work of others joins the queue.
  void delay(FineCycle cost) { free_ += cost; }

 private:
  FineCycle free_ = 0;
};

/// Cost of one unit at so many units a cycle.
inline FineCycle fine_cost(double units_per_cycle, double units = 1) {
  FW_CHECK(units_per_cycle > 0, "a rate of the memory system is not positive");
  return static_cast<FineCycle>(std::llround(units * (1 << kFineBits) / units_per_cycle));
}

/// Cost of 0 to 4 sectors on a data path.
using SectorCost = std::array<FineCycle, 5>;

inline SectorCost sector_cost(double bytes_per_cycle) {
  SectorCost cost{};
  for (int n = 1; n <= 4; ++n) cost[static_cast<std::size_t>(n)] = fine_cost(bytes_per_cycle, n * kSectorBytes);
  return cost;
}

}  // namespace forewarp
