// How lines of code get from a sub-partition's instruction cache to its warps: one after another, in the order in which
// they are asked for. A jump asks for the line it goes to, which brings the one behind it, and waits; lines in sequence
// are asked for ahead. Where many warps loop over a few instructions this is what they wait for, and it is the same
// for the oldest block as for others (kernels/micro loops).
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
  /// A warp goes on somewhere else: from `at` on it asks for that line, and no longer for others.
  void jump(int slot, Cycle at) {
    const auto s = static_cast<std::size_t>(slot);
    wanted_[s] = at;
    lines_[s] = 0;
    asking_ |= 1u << slot;
    jumped_ |= 1u << slot;
    waiting_ |= 1u << slot;
    plan();
  }
  /// A warp goes on to the line behind the one it was at. Has that been served?
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

  /// When the next line is served; kNever: nobody asks.
  Cycle next() const { return next_; }
  /// Slots whose warp is at a line that has not been served.
  std::uint32_t waiting() const { return waiting_; }
  /// From when a warp has the line that it is at, once that has been served.
  Cycle arrival(int slot, const InstructionCacheSpec& spec) const {
    // Those it has ahead came one interval after another, or later: then this one has been here for long.
    const auto s = static_cast<std::size_t>(slot);
    return arrival_[s] - static_cast<Cycle>(spec.feed_interval_cycles * (lines_[s] - 1));
  }

  /// Serves whoever has asked first, at next(). Returns whose line that was.
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

  std::array<Cycle, kWarpSlots> wanted_{};   ///< since when, or from when on, the next line is asked for
  std::array<Cycle, kWarpSlots> arrival_{};  ///< of the last line served
  std::array<int, kWarpSlots> lines_{};      ///< served and not left yet, the one that the warp is at included
  std::uint32_t asking_ = 0;                 ///< slots with room for a line more
  std::uint32_t jumped_ = 0;                 ///< of those, the ones whose next line is where a jump goes
  std::uint32_t waiting_ = 0;                ///< slots whose warp is at a line that has not been served
  Cycle free_ = 0, next_ = kNever;
  int first_ = 0;  ///< who is served next
};

}  // namespace forewarp
