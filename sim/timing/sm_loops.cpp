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
    total.iteration_instructions += loop.instructions;
    total.least_remaining = std::min(total.least_remaining, loop.iterations - iteration - 1);
  }
}

void Sm::skip_iterations(const std::vector<std::vector<PathLoop>>& loops, std::uint32_t count, SkippedAccesses& skipped) {
  for (Warp& warp : warps_) {
    if (!warp.alive) continue;
    const PathLoop& loop = loops[warp.cls][warp.path];
    const std::vector<std::int64_t>& shifts = blocks_[warp.block_slot].shifts;
    for (std::uint32_t a = 0; a < loop.accesses; ++a) {
      const Access& access = warp.access[a];
      const AccessPattern& pattern = context_.trace.patterns[access.pattern];
      if (pattern.space == MemorySpace::Shared || pattern.lanes == 0) continue;
      const auto step = static_cast<std::int64_t>(warp.access[a + loop.accesses].base - access.base);
      const std::uint64_t base = access.base / kLineBytes + static_cast<std::uint64_t>(shifts[access.slope]);
      for (const LineSectors& line : context_.patterns.lines(access.pattern))
        skipped.add((base + static_cast<std::uint64_t>(std::int64_t{line.line})) * kLineBytes + access.base % kLineBytes, step,
                    line.sectors, pattern.kind == MemoryKind::Store || pattern.kind == MemoryKind::Reduction, id_);
    }
    warp.run += std::size_t{count} * loop.period;
    warp.access += std::size_t{count} * loop.accesses;
  }
}

}  // namespace forewarp
