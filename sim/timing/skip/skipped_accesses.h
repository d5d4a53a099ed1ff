// What skipped loop iterations would have read and written, so that L2 holds it afterwards and DRAM traffic is counted
// for it. Warps of one L2 partition that walk over the same sectors in the same steps are counted once: the later ones
// would have hit.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/memory/memory.h"
#include "timing/memory/touch_lists.h"
#include "timing/skip/steady_traffic.h"

namespace forewarp {

class SkippedAccesses {
 public:
  SkippedAccesses(MemorySystem& memory, Crew& crew) : memory_(memory), lists_(crew) {}

  /// Sectors of a line that are accessed in each of so many iterations, moving by `step` bytes from one to the next.
  /// `address`: where in the line the access begins, or the line's start.
  void add(std::uint64_t address, std::int64_t step, std::uint8_t sectors, bool write, std::uint16_t sm,
           std::uint32_t iterations, std::uint8_t fetch = 0);

  /// A line that is accessed in one of the iterations: for accesses that do not move in equal steps.
  void add_once(std::uint64_t line, std::uint8_t sectors, bool write, std::uint16_t sm, std::uint32_t iteration,
                std::uint8_t fetch = 0);

  /// Touches L2, which holds so many lines, iteration by iteration, from the one that is due next.
  L2Traffic apply(std::uint64_t l2_lines);

 private:
  struct Walk {
    std::uint64_t address = 0;  ///< in the first of the sectors
    std::int64_t step = 0;
    std::uint32_t iterations = 0;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;  ///< from that sector on; bit 0 is set
    bool write = false;
    std::uint8_t partition = 0;
    std::uint8_t fetch = 0;  ///< LineSectors::fetch
  };
  struct Single {
    std::uint64_t line = 0;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;
    bool write = false;
    std::uint8_t fetch = 0;
  };
  void grow();
  std::size_t find(const Walk&) const;
  std::uint64_t gather_walks(std::uint32_t iteration);
  void gather(const Walk&, std::uint64_t sector);
  L2Traffic touch_gathered();

  MemorySystem& memory_;
  std::vector<std::vector<Single>> singles_;  ///< by iteration
  std::vector<Walk> walks_;
  std::uint32_t most_iterations_ = 0;
  std::vector<std::uint32_t> slots_;  ///< open addressing: index + 1, 0 = empty
  std::vector<Single> due_;           ///< of the iteration under way
  TouchLists lists_;
};

}  // namespace forewarp
