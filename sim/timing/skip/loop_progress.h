// How fast the blocks in flight go round their loops, and how far each may be moved on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace forewarp {

/// Where a block in flight is in its loop.
struct BlockLoop {
  std::uint64_t linear = 0;   ///< index in the grid: of those of an SM the least is the oldest
  std::uint64_t cluster = 0;  ///< blocks with the same one wait for each other
  std::uint32_t cls = 0;
  std::uint16_t sm = 0, slot = 0;
  std::uint32_t sm_warps = 0;  ///< warps on its SM
  double position = 0;         ///< iterations begun, mean of its warps, with the part of the last one
  std::vector<double> parts;   ///< the same of its warps in one loop, in another, ...
  std::uint32_t least_remaining =
      ~std::uint32_t{0};                     ///< whole iterations that the first of its warps to leave has left
  std::uint64_t iteration_instructions = 0;  ///< of one iteration of every warp
  std::uint32_t phase_period = 1;            ///< iterations after which its barriers in shared memory come round
};

/// Where all are. Blocks come in the same order as long as none starts or ends.
struct LoopProgress {
  std::vector<BlockLoop> blocks;
  std::uint64_t iteration_instructions = 0;
};

/// Iterations by which each block moved on from one look to the next.
std::vector<double> moved_between(const LoopProgress& earlier, const LoopProgress& later);

/// Do the warps of each block go round as often, whatever loops they are in? Where a part of them multiplies and the
/// rest does arithmetic of its own, no number of iterations moves all of them on.
bool keep_step(const LoopProgress& earlier, const LoopProgress& later);

/// What each block is to be reckoned to move on in the time in which `moved` was seen: the mean of the blocks of its
/// class on SMs that hold as many warps, and by as much more as the blocks of its SM will go on to gain on these. That
/// an SM was ahead by a little need not last: one that leads fetches for the others, and they catch up. What they
/// gained lasts as far as they gained it in both halves of that time alike. Where the older blocks of an SM outrun the
/// younger, since they issue first, those that are as old among the blocks of their SM have the share of the mean that
/// they had in `in_all`, what was seen in a longer time that ends with this one: one or two iterations say little of
/// it.
std::vector<double> steady_moves(const LoopProgress&, std::span<const double> moved,
                                 std::span<const double> in_second_half, std::span<const double> in_all);

/// The blocks of a cluster wait for each other: all of them move on by as many iterations as the one that moves least.
void keep_clusters_together(const LoopProgress&, std::span<std::uint32_t> counts);

}  // namespace forewarp
