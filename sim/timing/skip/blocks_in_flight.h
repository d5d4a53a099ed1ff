// Where the blocks in flight are on their ways, and where they would be at another time.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
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

/// What warps have not asked for yet of the first so many of `steps` equal parts of their block's way; a block has gone
/// as far as its warps in the mean, rounded up. L2 is touched for it, for at most so many lines.
L2Traffic catch_up(Gpu&, const LaunchContext&, std::uint32_t steps, std::uint64_t most_lines);

/// Places warps of blocks in the middle of their ways.
class BlockCuts {
 public:
  explicit BlockCuts(const LaunchContext& context) : context_(context) {}

  /// Blocks can begin anywhere: what their warps wait for of each other are barriers of the whole block, one after the
  /// other, and nothing that others count (barriers in shared memory, a cluster's, groups of warps).
  bool possible() const;
  /// Instructions that each warp of a block has behind it when the block has so much of its way behind it, with some
  /// ahead of others if `leads` says so of as many, but none more than a barrier.
  std::vector<std::uint64_t> at(std::uint32_t cls, double done, std::span<const double> leads);

 private:
  using Arrivals = std::vector<std::vector<std::uint64_t>>;  ///< by warp: instructions before each barrier of its way
  const Arrivals& arrivals(std::uint32_t cls);

  const LaunchContext& context_;
  std::unordered_map<std::uint32_t, Arrivals> arrivals_;  ///< by class, the last that were asked for
};

}  // namespace forewarp
