// The tags of one SM's L1 data cache: sectored, write-through. A store allocates a line as a load does and hits if the
// line is present, with whatever sectors; loads find the sectors it wrote whole (kernels/micro l1_stores). Only
// presence is kept; the memory pipe decides what a hit or a miss costs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"
#include "timing/engine/host_lines.h"

namespace forewarp {

class L1Cache {
 public:
  /// `bytes` is what the shared-memory carve-out leaves; sets need not be a power of two.
  L1Cache(std::uint32_t bytes, int ways);

  struct Line {
    std::uint64_t tag = kNoLine;
    std::uint32_t used = 0;        ///< for least-recently-used replacement
    std::uint16_t miss = kNoMiss;  ///< miss entry while sectors are in flight
    std::uint8_t present = 0;      ///< sectors with data
  };
  static constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
  static constexpr std::uint16_t kNoMiss = 0xffff;

  /// The line if present, which counts as a use; else nullptr.
  Line* find(std::uint64_t line) {
    Line* set = set_of(line);
    for (int way = 0; way < ways_; ++way) {
      if (set[way].tag != line) continue;
      set[way].used = ++clock_;
      return &set[way];
    }
    return nullptr;
  }

  /// Evicts for a new line and returns it empty; nullptr if every way of its set waits for data.
  Line* allocate(std::uint64_t line) {
    Line* set = set_of(line);
    Line* victim = nullptr;
    for (int way = 0; way < ways_; ++way) {
      if (set[way].miss != kNoMiss) continue;
      if (set[way].tag == kNoLine) {
        victim = &set[way];
        break;
      }
      if (victim == nullptr || set[way].used < victim->used) victim = &set[way];
    }
    if (victim == nullptr) return nullptr;
    *victim = Line{line, ++clock_, kNoMiss, 0};
    return victim;
  }

  /// Prefetches the line's set into the host's caches.
  void prefetch(std::uint64_t line) const { __builtin_prefetch(lines_.data() + first_of(line)); }

  void clear();

 private:
  std::size_t first_of(std::uint64_t line) const {
    // Fibonacci hashing of the line number: strides of any power of two spread over the sets.
    const std::uint64_t hash = (line * 0x9E3779B97F4A7C15ull) >> 32;
    return ((hash * sets_) >> 32) * static_cast<std::uint64_t>(ways_);
  }
  Line* set_of(std::uint64_t line) { return &lines_[first_of(line)]; }

  HostLines<Line> lines_;
  std::uint64_t sets_;
  int ways_;
  std::uint32_t clock_ = 0;
};

}  // namespace forewarp
