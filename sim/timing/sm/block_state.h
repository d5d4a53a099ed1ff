// Where a block stands that does not begin at its start: how far its warps are, and what its barriers have counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timing/sm/phase_barriers.h"

namespace forewarp {

/// A barrier of a block's warps.
struct BlockBarrier {
  std::uint16_t arrived = 0;  ///< warps
  std::uint16_t warps = 0;    ///< that it is for; 0: all that live

  bool full(int live_warps) const { return arrived > 0 && arrived >= (warps != 0 ? warps : live_warps); }
};
using BlockBarriers = std::array<BlockBarrier, 16>;

struct BlockState {
  std::vector<std::uint64_t> behind;  ///< instructions of each warp
  BlockBarriers barriers{};
  PhaseBarriers phases;
};

}  // namespace forewarp
