// How long the rest of a launch takes, block by block, once its rate is known: each SM works on its blocks side by
// side, the older ones first, and takes the next when one is done, so that unequal blocks, blocks that end one after
// another and a last wave that is not full are seen.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "timing/result.h"

namespace forewarp {

/// Warp instructions a cycle of one SM: those of one block by itself, and what the SM (or what it shares with others)
/// gives at most.
struct SmRate {
  double alone = 0;
  double most = 0;
};

/// The rate that a part of a launch shows. `later` and `earlier` bound it. What a warp waits for whatever the others do
/// (its scoreboards, its fixed latencies) limits a block by itself; what it waits for because others are there (pipes,
/// queues, not being selected) limits the SM.
SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     int warps_per_block);

/// What the rest takes.
struct RestTime {
  double cycles = 0;        ///< until all is done
  double block_cycles = 0;  ///< blocks in flight, summed over cycles
  double sm_cycles = 0;     ///< SMs with a block in flight, summed
};

/// `in_flight[sm]`: instructions left of its blocks, the oldest first; `next(i)`: those of the i-th of `waiting` blocks
/// that have not been handed out. An SM serves older blocks first (sm_issue.cpp): each goes as fast as it can by itself
/// while the SM's rate lasts, and what is left goes to the next.
RestTime schedule_rest(std::vector<std::vector<double>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate&, const std::function<double(std::uint64_t)>& next);

/// `counters` holds `before` and the rest's events in proportion to its instructions: puts the schedule's cycles of SMs
/// and warps in place of those. What warps wait for by themselves stays in proportion; what they wait for because
/// others are there takes up what remains.
void set_residence(TimingCounters& counters, const TimingCounters& before, const RestTime&, int warps_per_block);

}  // namespace forewarp
