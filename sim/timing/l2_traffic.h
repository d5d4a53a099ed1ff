// What data that passes by L2 without time moves, see MemorySystem::touch.
#pragma once

#include <cmath>
#include <cstdint>

#include "timing/memory.h"

namespace forewarp {

/// Sums of MemoryTouch, in sectors.
struct L2Traffic {
  std::uint64_t read = 0, written = 0;    ///< DRAM's
  std::uint64_t missed = 0, fetched = 0;  ///< as MemoryTouch
  std::uint64_t fabric_hits = 0, fabric_misses = 0;

  void add(const MemoryTouch& t) {
    read += static_cast<std::uint64_t>(t.read);
    written += static_cast<std::uint64_t>(t.written);
    missed += static_cast<std::uint64_t>(t.missed);
    fetched += static_cast<std::uint64_t>(t.fetched);
    fabric_hits += static_cast<std::uint64_t>(t.fabric_hits);
    fabric_misses += static_cast<std::uint64_t>(t.fabric_misses);
  }
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
