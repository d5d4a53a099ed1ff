// Where the blocks in flight are on their ways.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/gpu/gpu.h"

namespace forewarp {

/// How far a block is, and its warps.
struct BlockProgress {
  std::uint64_t block = 0;    ///< linear index in the grid
  double done = 0;            ///< of its warp instructions
  std::vector<double> leads;  ///< by which its warps are ahead of that, in parts of their own ways
};

/// By SM, the oldest first.
std::vector<std::vector<BlockProgress>> blocks_in_flight(const Gpu&, const KernelTrace&);

}  // namespace forewarp
