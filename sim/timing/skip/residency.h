// What a window shows of how SMs share their rate among blocks, and what they give when they hold fewer.
#pragma once

#include <span>
#include <vector>

#include "timing/result.h"
#include "timing/skip/fluid.h"

namespace forewarp {

struct SmShape {
  int warps_per_block = 0, blocks = 0, sub_partitions = 0;  ///< `blocks`: at most
};

/// How far a block in flight is.
struct BlockProgress {
  std::uint64_t block = 0;
  std::uint16_t sm = 0;
  double done = 0;  ///< part of its instructions
};

/// The rate in warp instructions a cycle that a time shows; `later` and `earlier` bound it. What a warp waits for
/// whatever the others do (its scoreboards, its fixed latencies) limits a block by itself; what it waits for because
/// others are there (pipes, queues, not being selected) limits the SM. With other numbers of blocks than it held it
/// gives what a queue would that the warps of a sub-partition go round and that gives what was seen when those that were
/// seen are there. `held`: places for blocks that were taken on an SM with any, in the mean.
SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, const SmShape&, double held);

/// How far blocks of one SM came side by side, from the oldest on: of the SMs that hold the most blocks, and the same
/// ones at both times. Empty where there are none.
std::vector<double> observed_shares(std::span<const BlockProgress> later, std::span<const BlockProgress> earlier);

}  // namespace forewarp
