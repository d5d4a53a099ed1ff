// Instruction fetch: an L0 in each sub-partition that prefetches in sequence, an L1 per SM, a cache per GPC, and L2
// behind. Kernels are small, so every level keeps one arrival time per line of code. Long straight-line code is limited
// by the interval between lines into a sub-partition, out of L2 and out of memory (icache.*_line_cycles, from
// kernels/micro code_size).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"

namespace forewarp {

struct InstructionCacheCounters {
  std::uint64_t l0_misses = 0, l1_misses = 0, l2_misses = 0;
};

/// One level: sets of a few lines, of which the least recently used leaves.
class InstructionCacheLevel {
 public:
  InstructionCacheLevel(std::uint32_t code_lines, int capacity_lines, int ways)
      : arrival_(code_lines, kNever),
        seen_(code_lines, 0),
        ways_(static_cast<std::uint32_t>(std::clamp(capacity_lines, 1, ways))),
        sets_(std::max(1u, static_cast<std::uint32_t>(capacity_lines) / ways_)),
        slots_(std::size_t{ways_} * sets_, kEmpty),
        evicts_(code_lines > ways_ * sets_) {}

  bool holds(std::uint32_t line) const { return arrival_[line] != kNever; }
  /// Whether the line has ever been in this level.
  bool seen(std::uint32_t line) const { return seen_[line] != 0; }
  Cycle arrival(std::uint32_t line) const { return arrival_[line]; }
  void touch(std::uint32_t line) {
    if (!evicts_) return;
    std::uint32_t* set = set_of(line);
    std::uint32_t* at = std::find(set, set + ways_, line);
    if (at != set + ways_) std::rotate(set, at, at + 1);
  }
  void insert(std::uint32_t line, Cycle at) {
    arrival_[line] = at;
    seen_[line] = 1;
    if (!evicts_) return;
    std::uint32_t* set = set_of(line);
    if (set[ways_ - 1] != kEmpty) arrival_[set[ways_ - 1]] = kNever;
    std::rotate(set, set + ways_ - 1, set + ways_);
    set[0] = line;
  }
  void drop(std::uint32_t line) {
    arrival_[line] = kNever;
    if (!evicts_) return;
    std::uint32_t* set = set_of(line);
    std::uint32_t* at = std::find(set, set + ways_, line);
    if (at == set + ways_) return;
    std::rotate(at, at + 1, set + ways_);
    set[ways_ - 1] = kEmpty;
  }

 private:
  static constexpr std::uint32_t kEmpty = 0xffffffffu;
  std::uint32_t* set_of(std::uint32_t line) { return &slots_[std::size_t{line % sets_} * ways_]; }

  std::vector<Cycle> arrival_;      ///< by line of code; kNever: not here
  std::vector<std::uint8_t> seen_;  ///< by line of code
  std::uint32_t ways_, sets_;
  std::vector<std::uint32_t> slots_;  ///< lines of each set, most recently used first
  bool evicts_;                       ///< the code does not fit
};

/// The level that the SMs of a GPC share.
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
        launch_lines_(static_cast<std::uint32_t>(spec.launch_bytes / spec.line_bytes)),
        l1_(code_lines, spec.l1_bytes / spec.line_bytes, spec.ways),
        l0_(static_cast<std::size_t>(sub_partitions),
            L0{InstructionCacheLevel(code_lines, spec.l0_bytes / spec.line_bytes, spec.ways), {}}) {}

  /// Warm caches: an earlier run of the same code fetched `lines` in this order.
  void preload(std::span<const std::uint32_t> lines) {
    preloaded_ = true;
    for (const std::uint32_t line : lines) {
      l1_.insert(line, 0);
      for (L0& l0 : l0_) l0.cache.insert(line, 0);
    }
  }

  /// Cycle from which `line` can be decoded in a sub-partition. On a miss, requests it and the lines after it.
  Cycle fetch(int sub_partition, std::uint32_t line, Cycle now, SharedInstructionCache& gpc,
              InstructionCacheCounters& counters) {
    L0& l0 = l0_[static_cast<std::size_t>(sub_partition)];
    Cycle ready;
    if (!started_ && preloaded_) {
      started_ = true;
      open_at_ = now + static_cast<Cycle>(spec_.warm_first_cycles);
    }
    if (l0.cache.holds(line)) {
      ready = std::max(l0.cache.arrival(line), open_at_);
      l0.cache.touch(line);
    } else {
      ++counters.l0_misses;
      // A jump cancels the prefetches.
      for (const std::uint32_t ahead : l0.ahead)
        if (l0.cache.holds(ahead) && l0.cache.arrival(ahead) > now + static_cast<Cycle>(spec_.l1_hit_cycles))
          l0.cache.drop(ahead);
      l0.ahead.clear();
      l0.port_free = now;
      ready = from_l1(l0, line, now, gpc, counters);
      l0.cache.insert(line, ready);
    }
    if (!l0.ahead.empty() && l0.cache.holds(l0.ahead.back()) && l0.cache.arrival(l0.ahead.back()) <= now)
      l0.ahead.clear();
    const std::uint32_t last = std::min(code_lines_ - 1, line + static_cast<std::uint32_t>(spec_.prefetch_lines));
    for (std::uint32_t ahead = line + 1; ahead <= last; ++ahead) {
      if (l0.cache.holds(ahead)) continue;
      l0.cache.insert(ahead, from_l1(l0, ahead, now, gpc, counters));
      l0.ahead.push_back(ahead);
    }
    return ready;
  }

 private:
  struct L0 {
    InstructionCacheLevel cache;
    std::vector<std::uint32_t> ahead;  ///< lines prefetched since the last jump, possibly in flight
    Cycle port_free = 0;               ///< when the SM's cache may send it the next line
  };

  Cycle from_l1(L0& l0, std::uint32_t line, Cycle now, SharedInstructionCache& gpc,
                InstructionCacheCounters& counters) {
    if (!l1_.holds(line)) {
      ++counters.l1_misses;
      const Cycle first = started_ ? 0 : static_cast<Cycle>(spec_.first_cycles);
      started_ = true;
      l1_.insert(line, from_gpc(line, now, gpc, counters) + first + static_cast<Cycle>(spec_.l2_hit_cycles));
    } else {
      l1_.touch(line);
    }
    const Cycle start = std::max({l0.port_free, l1_.arrival(line), now});
    l0.port_free = start + static_cast<Cycle>(spec_.l1_line_cycles);
    return start + static_cast<Cycle>(spec_.l1_hit_cycles);
  }

  /// Cycle in which the GPC's cache has the line.
  Cycle from_gpc(std::uint32_t line, Cycle now, SharedInstructionCache& gpc, InstructionCacheCounters& counters) {
    if (gpc.gpc.holds(line)) {
      gpc.gpc.touch(line);
      return std::max(gpc.gpc.arrival(line), now);
    }
    if (line < launch_lines_ && !gpc.gpc.seen(line)) {
      ++counters.l2_misses;
      gpc.gpc.insert(line, 0);
      return now;
    }
    const std::uint32_t last = std::min(code_lines_ - 1, line + static_cast<std::uint32_t>(spec_.stream_lines));
    for (std::uint32_t wanted = line; wanted <= last; ++wanted) {
      if (gpc.gpc.holds(wanted)) continue;
      ++counters.l2_misses;
      // The first line takes the full latency, each line streamed behind it one interval.
      const int interval = gpc.gpc.seen(wanted) ? spec_.l2_line_cycles : spec_.memory_line_cycles;
      const Cycle start = std::max(gpc.port_free, now);
      gpc.port_free = start + static_cast<Cycle>(interval);
      gpc.gpc.insert(wanted, start + static_cast<Cycle>(spec_.memory_cycles));
    }
    return std::max(gpc.gpc.arrival(line), now);
  }

  InstructionCacheSpec spec_;
  std::uint32_t code_lines_, launch_lines_;
  InstructionCacheLevel l1_;
  std::vector<L0> l0_;
  bool started_ = false, preloaded_ = false;
  Cycle open_at_ = 0;  ///< a preloaded cache delivers nothing before this
};

}  // namespace forewarp
