// The lines a block touches below L1, class by class: what skipped blocks would have read and written, so that L2 is
// as full and as dirty afterwards as if they had run, and DRAM traffic is counted for them.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/skipped_accesses.h"
#include "timing/sm.h"

namespace forewarp {

class BlockFootprint {
 public:
  /// Most lines that one block may touch for its class to be gathered; beyond it touching blocks costs too much.
  static constexpr std::uint64_t kMostLines = 1 << 16;

  explicit BlockFootprint(const LaunchContext&);

  /// Mean over the grid; ~0 if a class touches more than kMostLines.
  std::uint64_t lines_per_block() const { return lines_per_block_; }

  /// Touches L2 for blocks first ... first + count - 1.
  SkippedAccesses::Traffic touch(std::uint64_t first, std::uint64_t count, MemorySystem&) const;

 private:
  struct Line {
    std::uint64_t line = 0;   ///< of the class's representative
    std::uint32_t slope = 0;
    std::uint8_t sectors = 0;
    bool write = false;
  };
  std::vector<Line> gather(const BlockClass&) const;

  LaunchContext context_;
  std::vector<std::vector<Line>> by_class_;
  std::uint64_t lines_per_block_ = 0;
};

}  // namespace forewarp
