// What one launch may cost the machine that predicts it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace forewarp {

/// Seconds of a processor are turned into work at nominal rates, so that a result does not depend on the machine.
struct Effort {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  double seconds = 10;
  bool exact = false;  ///< every block is followed, however long that takes
  /// Half of the 95 % interval of a launch's cycles, of these: it is simulated on until that is as narrow or the
  /// seconds are spent.
  double precision = 1;
  /// Of the seconds, what is kept for the verdict, which simulates the launch again without one cause or another.
  double for_verdict = 0.15;

  // Warp instructions a second: of values or counts alone, and of a trace; how often what depends on the block is
  // followed through one (Shadow::followed()); and sectors that are copied. These are no reason to count fewer blocks.
  static constexpr double kCounted = 40e6, kTraced = 60e6, kFollowed = 12e6, kCopied = 13e6;
  // Shares of the time: what following leaves is for timing, and what that leaves as well for the verdict.
  static constexpr double kForValues = 0.4, kForBlocks = 0.6, kForTraces = 0.06, kLeastForTiming = 0.3;

  std::uint64_t value_instructions() const { return work(kCounted * kForValues); }
  std::uint64_t counted_instructions() const { return exact ? kUnlimited : work(kCounted * kForBlocks); }
  std::uint64_t traced_instructions() const { return work(kTraced * kForTraces); }
  /// Seconds that are left for timing a launch which was traced for so many.
  double seconds_left(double traced) const {
    return std::max((1 - for_verdict) * seconds - traced, kLeastForTiming * seconds);
  }
  /// Of one block, before it counts as one that never ends; 0: no limit.
  std::uint64_t block_instructions() const { return exact ? 0 : work(kCounted); }
  /// Of the blocks that are kept; the rest is for buffers and timing.
  std::uint64_t trace_bytes() const { return memory_bytes / 4; }

 private:
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
  std::uint64_t work(double a_second) const {
    const double all = seconds * a_second;
    return all >= 1e18 ? std::uint64_t{1'000'000'000'000'000'000} : all < 1 ? 1 : static_cast<std::uint64_t>(all);
  }
};

}  // namespace forewarp
