// Where the blocks in flight are in their loops and on their ways, and moving them on. The detailed model knows nothing
// of it: this reads the positions of its warps and places them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "timing/gpu/gpu.h"
#include "timing/memory/l2_traffic.h"
#include "timing/skip/block_progress.h"
#include "timing/skip/loop_progress.h"
#include "timing/skip/loops.h"

namespace forewarp {

/// Shows the warps in flight to use(warp) until it returns false; true if it never does.
template <class Use>
bool for_all_warps_in_flight(const Gpu& gpu, Use&& use) {
  for (std::uint16_t id = 0; id < gpu.sms(); ++id)
    for (const ResidentBlock block : gpu.sm(id).residents())
      for (const std::uint16_t index : block.warps)
        if (const Warp& warp = gpu.sm(id).warp(index); warp.alive && !use(warp)) return false;
  return true;
}

/// Tells apart in which of their loops the warps in flight are: the same as long as none goes on to another. None: one
/// of them is in no loop.
std::optional<std::uint64_t> loops_in_flight(const Gpu&, const Loops&);
/// Where blocks are in their loops, all being inside.
LoopProgress loop_progress(const Gpu&, const Loops&);
/// Moves each of the blocks on by so many iterations, a multiple of its phase_period, and its barriers in shared memory
/// by their phases. A block whose warps do not agree on those stays, and its count becomes 0; blocks of a cluster move
/// on as far as the one of them that moves least. L2 is touched for what they would have read and written, and L1 holds
/// what the last of them leave in it.
L2Traffic skip_iterations(Gpu&, const LaunchContext&, const Loops&, const LoopProgress&,
                          std::span<std::uint32_t> counts);
std::vector<BlockProgress> blocks_in_flight(const Gpu&, const KernelTrace&);
/// What warps have not asked for yet of the first so many of `steps` equal parts of their block's way; a block has gone
/// as far as its warps in the mean, rounded up. L2 is touched for it, for at most so many lines.
L2Traffic catch_up(Gpu&, const LaunchContext&, std::uint32_t steps, std::uint64_t most_lines);

}  // namespace forewarp
