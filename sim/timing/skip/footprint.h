// What parts of blocks read and write below L1, in the order of time: L2 is as full and as dirty afterwards as if they
// had run, and what they move to and from DRAM is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "timing/memory/l2_traffic.h"
#include "timing/memory/touch_lists.h"
#include "timing/skip/fluid.h"
#include "timing/sm/sm.h"

namespace forewarp {

class Footprint {
 public:
  /// The crew's threads share what is touched.
  Footprint(const LaunchContext& context, Crew& crew) : context_(context), lists_(crew) {}

  /// Touches L2 for parts of blocks, `from` and `to` counted in instructions.
  L2Traffic follow(std::span<const FluidPart>, MemorySystem&);
  /// Lines that a block touches, in the mean over the grid.
  double lines_per_block();

 private:
  /// The lines of a block's way, cut into so many equal parts: those of a part are touched at once.
  static constexpr std::uint32_t kSteps = 128;

  struct Line {
    std::uint64_t line = 0;  ///< of the class's representative
    std::uint32_t slope = 0;
    std::uint8_t sectors = 0;
    RequestKind kind = RequestKind::Read;
    std::uint8_t bytes = 0;  ///< of the sectors
  };
  /// A class's lines in order of time; begin[s] is the first of step s.
  struct Lines {
    std::vector<Line> lines;
    std::vector<std::uint32_t> begin;
    std::uint32_t at(double part) const;  ///< lines before that part of the way
  };
  struct Running {
    std::shared_ptr<const Lines> lines;
    std::uint32_t next = 0, end = 0;  ///< of its lines
    std::uint16_t sm = 0;
    std::vector<std::uint64_t> shifts;  ///< lines by which each slope moves the block
  };
  struct Due {
    const Running* block = nullptr;
    std::span<const Line> lines;
  };

  Lines gather(const BlockClass&) const;
  std::shared_ptr<const Lines> lines_of(std::uint32_t cls);
  L2Traffic touch_due(MemorySystem&);

  LaunchContext context_;
  double lines_per_block_ = -1;
  std::unordered_map<std::uint32_t, std::shared_ptr<const Lines>> by_class_;
  std::vector<Due> due_;
  std::size_t lines_due_ = 0;
  TouchLists lists_;
};

}  // namespace forewarp
