// How long the rest of a launch takes, block by block, once its rate is known: each SM works on its blocks side by
// side and takes the next when one is done, so that unequal blocks and a last wave that is not full are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "timing/result.h"

namespace forewarp {

/// Warp instructions a cycle of one SM, by the blocks it holds: as many times one block's own rate as there are blocks,
/// up to what the SM (or what it shares with others) gives.
struct SmRate {
  double alone = 0;  ///< of one block by itself
  double most = 0;
  double with(std::size_t blocks) const {
    return blocks == 0 ? 0 : std::min(most, alone * static_cast<double>(blocks));
  }
};

/// The rate that a part of a launch shows. `later` and `earlier` bound it. What a warp waits for whatever the others do
/// (its scoreboards, its fixed latencies) limits a block by itself; what it waits for because others are there (pipes,
/// queues, not being selected) limits the SM.
SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     int warps_per_block);

/// Cycles until all is done. `in_flight[sm]`: instructions left of its blocks; `next(i)`: those of the i-th of
/// `waiting` blocks that have not been handed out.
double rest_cycles(std::vector<std::vector<double>> in_flight, std::uint64_t waiting, int blocks_per_sm, const SmRate&,
                   const std::function<double(std::uint64_t)>& next);

}  // namespace forewarp
