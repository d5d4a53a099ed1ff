// What skipped loop iterations would have read and written, so that L2 holds it afterwards and DRAM traffic is counted
// for it. Warps that walk over the same lines in the same steps are counted once: the later ones would have hit.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/memory.h"

namespace forewarp {

class SkippedAccesses {
 public:
  /// A line that is accessed in each of the iterations, moving by `step` bytes from one to the next.
  void add(std::uint64_t address, std::int64_t step, std::uint8_t sectors, bool write, std::uint16_t sm);

  struct Traffic {
    std::uint64_t dram_read_bytes = 0, dram_write_bytes = 0;
  };
  /// Touches L2, iteration by iteration.
  Traffic apply(std::uint32_t iterations, MemorySystem& memory) const;

 private:
  struct Walk {
    std::uint64_t address = 0;
    std::int64_t step = 0;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;
    bool write = false;
  };
  void grow();
  std::size_t find(const Walk&) const;

  std::vector<Walk> walks_;
  std::vector<std::uint32_t> slots_;  ///< open addressing: index + 1, 0 = empty
};

}  // namespace forewarp
