// What blocks that are left out would have read and written below L1, in the order in which their wave would have: L2
// is as full and as dirty afterwards as if they had run, and their DRAM traffic is counted rather than scaled.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "timing/skipped_accesses.h"
#include "timing/sm.h"

namespace forewarp {

class BlockFootprint {
 public:
  /// Parts into which a block's stay is cut: the blocks of a wave take turns part by part.
  static constexpr std::uint32_t kSteps = 128;

  /// `wave`: blocks that run side by side.
  BlockFootprint(const LaunchContext&, std::uint64_t wave);

  /// At most so many lines are touched by a block, in the mean over the grid.
  std::uint64_t lines_per_block() const { return lines_per_block_; }
  /// From now on only what is written counts.
  void keep_writes();

  /// Touches L2 for blocks first ... first + count - 1.
  SkippedAccesses::Traffic touch(std::uint64_t first, std::uint64_t count, MemorySystem&);
  /// The same for what blocks in flight have still before them.
  SkippedAccesses::Traffic finish(std::span<const BlockProgress>, MemorySystem&);

 private:
  struct Line {
    std::uint64_t line = 0;  ///< of the class's representative
    std::uint32_t slope = 0;
    std::uint8_t sectors = 0;
    bool write = false;
    bool full = true;  ///< writes: every byte of the sectors, else `bytes` of them
    std::uint8_t bytes = 0;
  };
  /// A class's lines in order of time; begin[s] is the first of step s.
  struct Footprint {
    std::vector<Line> lines;
    std::vector<std::uint32_t> begin;
  };
  struct Running {
    const Footprint* footprint = nullptr;
    std::uint32_t from_step = 0;
    std::uint16_t sm = 0;
    std::vector<std::uint64_t> shifts;  ///< lines by which each slope moves the block
  };
  Footprint gather(const BlockClass&) const;
  static void drop_reads(Footprint&);
  void count_lines();
  const Footprint& footprint(std::uint32_t cls);
  Running start(std::uint64_t block, std::uint32_t from_step, std::uint16_t sm);
  SkippedAccesses::Traffic run(std::span<const Running>, MemorySystem&) const;

  std::uint64_t waves_until_repeat() const;

  LaunchContext context_;
  std::uint64_t wave_ = 1;
  std::vector<std::uint16_t> sm_of_;  ///< of each block of the first wave; later waves are taken to follow it
  std::uint64_t lines_per_block_ = 0;
  bool writes_only_ = false;
  std::unordered_map<std::uint32_t, Footprint> by_class_;
};

}  // namespace forewarp
