// The port that delivers lines of code from a sub-partition's instruction cache to its warps: first come, first served.
// A jump requests its target line, which brings the next one along, and waits; lines in sequence are requested ahead.
// Where many warps run short loops this is what they wait for, and the oldest block has no priority (kernels/micro
// loops).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "timing/sm/warp.h"

namespace forewarp {

/// Of one sub-partition, by warp slot.
class LineFeed {
 public:
  /// A warp jumps: from `at` on it requests the target line, and no others.
  void jump(int slot, Cycle at) {
    const auto s = static_cast<std::size_t>(slot);
    wanted_[s] = at;
    lines_[s] = 0;
    asking_ |= 1u << slot;
    jumped_ |= 1u << slot;
    waiting_ |= 1u << slot;
    plan();
  }
  /// A warp moves on to the next line. Returns whether that has been served.
  bool step(int slot, const InstructionCacheSpec& spec) {
    const auto s = static_cast<std::size_t>(slot);
    if (lines_[s]-- == spec.feed_lines) {
      asking_ |= 1u << slot;
      plan();
    }
    if (lines_[s] == 0) waiting_ |= 1u << slot;
    return lines_[s] != 0;
  }
  /// A warp has ended.
  void leave(int slot) {
    asking_ &= ~(1u << slot);
    waiting_ &= ~(1u << slot);
    plan();
  }

  /// When the next line is served; kNever if none is requested.
  Cycle next() const { return next_; }
  /// Slots whose warp waits for its current line.
  std::uint32_t waiting() const { return waiting_; }
  /// When the warp's current line arrives, once it has been served.
  Cycle arrival(int slot, const InstructionCacheSpec& spec) const {
    // The lines ahead arrived at least one interval apart; if more, this one has been here for a while.
    const auto s = static_cast<std::size_t>(slot);
    return arrival_[s] - static_cast<Cycle>(spec.feed_interval_cycles * (lines_[s] - 1));
  }

  /// Serves the first request, at next(). Returns its slot.
  int serve(const InstructionCacheSpec& spec) {
    const int slot = first_;
    const auto s = static_cast<std::size_t>(slot);
    const int lines = (jumped_ >> slot & 1u) != 0 ? spec.jump_lines : 1;
    const Cycle last = next_ + static_cast<Cycle>(spec.feed_interval_cycles * (lines - 1));
    free_ = next_ + static_cast<Cycle>(lines * spec.feed_line_cycles);
    arrival_[s] = last + static_cast<Cycle>(spec.feed_cycles);
    wanted_[s] = last + static_cast<Cycle>(spec.feed_interval_cycles);
    lines_[s] += lines;
    jumped_ &= ~(1u << slot);
    waiting_ &= ~(1u << slot);
    if (lines_[s] >= spec.feed_lines) asking_ &= ~(1u << slot);
    plan();
    return slot;
  }

 private:
  void plan() {
    next_ = kNever;
    for (std::uint32_t mask = asking_; mask != 0; mask &= mask - 1) {
      const int slot = std::countr_zero(mask);
      if (wanted_[static_cast<std::size_t>(slot)] >= next_) continue;
      next_ = wanted_[static_cast<std::size_t>(slot)];
      first_ = slot;
    }
    if (next_ != kNever) next_ = std::max(next_, free_);
  }

  std::array<Cycle, kWarpSlots> wanted_{};   ///< when the next line is or was requested
  std::array<Cycle, kWarpSlots> arrival_{};  ///< of the last line served
  std::array<int, kWarpSlots> lines_{};      ///< lines served and not yet left, the current one included
  std::uint32_t asking_ = 0;                 ///< slots with room for another line
  std::uint32_t jumped_ = 0;                 ///< of those, the ones whose next line is a jump target
  std::uint32_t waiting_ = 0;                ///< slots whose warp waits for its current line
  Cycle free_ = 0, next_ = kNever;
  int first_ = 0;  ///< who is served next
};

}  // namespace forewarp
