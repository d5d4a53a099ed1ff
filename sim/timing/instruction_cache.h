// Instruction supply: a small cache in each sub-partition that prefetches in sequence, one for the SM, one for the
// GPC, and L2 behind. Kernels are small, so every level keeps one arrival time per line of code.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"

namespace forewarp {

struct InstructionCacheCounters {
  std::uint64_t l0_misses = 0, l1_misses = 0, l2_misses = 0;
};

/// One level. Lines leave in order of arrival once the level is full.
class InstructionCacheLevel {
 public:
  InstructionCacheLevel(std::uint32_t code_lines, int capacity_lines)
      : arrival_(code_lines, kNever), ring_(static_cast<std::size_t>(std::max(1, capacity_lines)), kEmpty) {}

  bool holds(std::uint32_t line) const { return arrival_[line] != kNever; }
  Cycle arrival(std::uint32_t line) const { return arrival_[line]; }
  void insert(std::uint32_t line, Cycle at) {
    std::uint32_t& slot = ring_[next_];
    if (slot != kEmpty) arrival_[slot] = kNever;
    slot = line;
    arrival_[line] = at;
    next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffffu;
  std::vector<Cycle> arrival_;       ///< by line of code; kNever: not here
  std::vector<std::uint32_t> ring_;  ///< lines in order of insertion
  std::size_t next_ = 0;
};

/// The levels that SMs of a GPC share.
struct SharedInstructionCache {
  InstructionCacheLevel gpc;
  Cycle port_free = 0;
};

/// One SM's L1 and its sub-partitions' L0s.
class InstructionFetch {
 public:
  InstructionFetch(const InstructionCacheSpec& spec, int sub_partitions, std::uint32_t code_lines)
      : spec_(spec),
        code_lines_(code_lines),
        l1_(code_lines, spec.l1_bytes / spec.line_bytes),
        l0_(static_cast<std::size_t>(sub_partitions), InstructionCacheLevel(code_lines, spec.l0_bytes / spec.line_bytes)) {}

  /// Cycle from which `line` can be decoded in a sub-partition; requests it, and lines after it, if it is not there.
  Cycle fetch(int sub_partition, std::uint32_t line, Cycle now, SharedInstructionCache& gpc, InstructionCacheCounters& counters) {
    InstructionCacheLevel& l0 = l0_[static_cast<std::size_t>(sub_partition)];
    Cycle ready;
    if (l0.holds(line)) {
      ready = l0.arrival(line);
    } else {
      ++counters.l0_misses;
      ready = from_l1(line, now, gpc, counters);
      l0.insert(line, ready);
    }
    const std::uint32_t last = std::min(code_lines_ - 1, line + static_cast<std::uint32_t>(spec_.prefetch_lines));
    for (std::uint32_t ahead = line + 1; ahead <= last; ++ahead)
      if (!l0.holds(ahead)) l0.insert(ahead, from_l1(ahead, now, gpc, counters));
    return ready;
  }

 private:
  Cycle from_l1(std::uint32_t line, Cycle now, SharedInstructionCache& gpc, InstructionCacheCounters& counters) {
    if (!l1_.holds(line)) {
      ++counters.l1_misses;
      const std::uint32_t last = std::min(code_lines_ - 1, line + static_cast<std::uint32_t>(spec_.stream_lines));
      for (std::uint32_t wanted = line; wanted <= last; ++wanted) {
        if (gpc.gpc.holds(wanted)) continue;
        ++counters.l2_misses;
        // Lines come one after another; the first costs the whole way, those streamed behind it an interval each.
        const Cycle start = std::max(gpc.port_free, now);
        gpc.port_free = start + static_cast<Cycle>(spec_.memory_line_cycles);
        gpc.gpc.insert(wanted, start + static_cast<Cycle>(spec_.memory_cycles));
      }
      const Cycle arrival = std::max(gpc.gpc.arrival(line), now) + static_cast<Cycle>(spec_.l2_hit_cycles);
      l1_.insert(line, arrival);
    }
    // One line a cycle goes to the sub-partitions.
    const Cycle start = std::max({port_free_, l1_.arrival(line), now});
    port_free_ = start + 1;
    return start + static_cast<Cycle>(spec_.l1_hit_cycles);
  }

  InstructionCacheSpec spec_;
  std::uint32_t code_lines_;
  InstructionCacheLevel l1_;
  std::vector<InstructionCacheLevel> l0_;
  Cycle port_free_ = 0;
};

}  // namespace forewarp
