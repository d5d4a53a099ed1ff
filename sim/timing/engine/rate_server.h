// A FIFO resource with a fixed rate in units per cycle: a port, a wire, a tag pipe. Callers arrive in order of
// simulated time, so the time at which it is next free describes its whole queue. Times are fixed point, 1/1024 of a
// cycle, so rates that do not divide a cycle keep their exact throughput.
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

 private:
  FineCycle free_ = 0;
};

/// Cost of `units` at `units_per_cycle`.
inline FineCycle fine_cost(double units_per_cycle, double units = 1) {
  FW_CHECK(units_per_cycle > 0, "a rate of the memory system is not positive");
  return static_cast<FineCycle>(std::llround(units * (1 << kFineBits) / units_per_cycle));
}

/// Cost of 0 to 4 sectors, and of a header with them, on a data path.
using SectorCost = std::array<FineCycle, 6>;

inline SectorCost sector_cost(double bytes_per_cycle) {
  SectorCost cost{};
  for (std::size_t n = 1; n < cost.size(); ++n)
    cost[n] = fine_cost(bytes_per_cycle, static_cast<double>(n * kSectorBytes));
  return cost;
}

}  // namespace forewarp
