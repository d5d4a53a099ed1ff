// The traffic of lines that are touched in L2 without time (MemorySystem::touch).
#pragma once

#include <cmath>
#include <cstdint>

namespace forewarp {

/// In sectors; hits and misses as MemoryCounters has them.
struct L2Traffic {
  std::uint64_t read = 0, written = 0;    ///< DRAM's
  std::uint64_t missed = 0, fetched = 0;  ///< not found at the first lookup; whole pieces fetched for them
  std::uint64_t fabric_hits = 0, fabric_misses = 0;

  L2Traffic& operator+=(const L2Traffic& o) {
    read += o.read, written += o.written, missed += o.missed, fetched += o.fetched;
    fabric_hits += o.fabric_hits, fabric_misses += o.fabric_misses;
    return *this;
  }
  L2Traffic operator-(const L2Traffic& o) const {
    return {read - o.read,       written - o.written,         missed - o.missed,
            fetched - o.fetched, fabric_hits - o.fabric_hits, fabric_misses - o.fabric_misses};
  }
  L2Traffic scaled(double by) const {
    const auto times = [by](std::uint64_t n) {
      return static_cast<std::uint64_t>(std::llround(static_cast<double>(n) * by));
    };
    return {times(read), times(written), times(missed), times(fetched), times(fabric_hits), times(fabric_misses)};
  }
};

}  // namespace forewarp
