// Skipping iterations: the part of an SM that the steady-state engine uses.
#include <algorithm>

#include "timing/sm.h"

namespace forewarp {

void Sm::add_loop_progress(const std::vector<std::vector<PathLoop>>& loops, LoopProgress& total) const {
  for (const Warp& warp : warps_) {
    if (!warp.alive) continue;
    const PathLoop& loop = loops[warp.cls][warp.path];
    const auto run = static_cast<std::uint32_t>(warp.run - warp.runs_begin);
    ++total.warps;
    if (loop.period == 0 || run < loop.first_run || run >= loop.first_run + loop.period * loop.iterations) {
      total.all_inside = false;
      continue;
    }
    const std::uint32_t iteration = (run - loop.first_run) / loop.period;
    total.iterations += iteration;
    total.least_remaining = std::min(total.least_remaining, loop.iterations - iteration - 1);
    total.instructions = std::max(total.instructions, loop.instructions);
  }
}

void Sm::skip_iterations(const std::vector<std::vector<PathLoop>>& loops, std::uint32_t count, MemorySystem& memory) {
  (void)memory;
  for (Warp& warp : warps_) {
    if (!warp.alive) continue;
    const PathLoop& loop = loops[warp.cls][warp.path];
    warp.run += std::size_t{count} * loop.period;
    warp.access += std::size_t{count} * loop.accesses;
  }
}

}  // namespace forewarp
