// Where the blocks in flight are on their ways.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/gpu/gpu.h"
#include "timing/memory/l2_traffic.h"
#include "timing/skip/rest_schedule.h"

namespace forewarp {

std::vector<BlockProgress> blocks_in_flight(const Gpu&, const KernelTrace&);

/// How far the warps of a block are ahead of it, in parts of their ways.
using Leads = std::vector<double>;
/// Those of the blocks in flight, by SM, the oldest block first.
std::vector<std::vector<Leads>> leads_in_flight(const Gpu&, const KernelTrace&);

/// What warps have not asked for yet of the way that their block has gone, which is as far as they are in the mean. L2
/// is touched for it, for at most so many lines.
L2Traffic catch_up(Gpu&, const LaunchContext&, std::uint64_t most_lines);

}  // namespace forewarp
