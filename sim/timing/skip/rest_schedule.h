// How long the rest of a launch takes, block by block, once its rate is known: each SM works on its blocks side by
// side, the older ones first, and takes the next when one is done, so that unequal blocks, blocks that end one after
// another and a last wave that is not full are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "timing/result.h"

namespace forewarp {

/// How far a block in flight is.
struct BlockProgress {
  std::uint64_t block = 0;  ///< linear index in the grid
  std::uint16_t sm = 0;
  double done = 0;  ///< of its warp instructions
};

/// Warp instructions a cycle of one SM: those of one block that nobody is in the way of, and what the SM (or what it
/// shares with others) gives when it holds as many blocks as it was seen to.
struct SmRate {
  double alone = 0;
  double most = 0;
  /// What the oldest block of an SM, the next, ... get of it, where all want more; empty: as much each.
  std::vector<double> shares;
  /// What the SM gives when it holds one block, two, ... and few others are busy; with more than are listed, `most`.
  std::vector<double> by_blocks;
  /// What is left of that when as many blocks are there as fill one SM, two, ..., since they share L2 and memory; with
  /// more, the last; empty: all.
  std::vector<double> by_sms;

  double with(std::size_t blocks) const {
    return blocks > 0 && blocks <= by_blocks.size() ? by_blocks[blocks - 1] : most;
  }

  /// What is left when so many are full.
  double left(std::size_t full) const {
    return by_sms.empty() ? 1 : by_sms[std::clamp<std::size_t>(full, 1, by_sms.size()) - 1];
  }
};

struct SmShape {
  int warps_per_block = 0, blocks = 0, sub_partitions = 0;  ///< `blocks`: at most
  std::uint64_t sms = 0;                                    ///< with any blocks
};

/// Instructions a cycle of an SM when so few are busy, with one block and with as many as it has room for.
struct FewSms {
  std::uint64_t sms = 0;
  double alone = 0, full = 0;  ///< full 0: not known, as when all are busy
};

/// The rate that a part of a launch shows. `later` and `earlier` bound it. `held`: places for blocks that were taken on
/// an SM with any, in the mean. With other numbers of blocks an SM gives what a queue would that the warps of a
/// sub-partition go round, and with other numbers of SMs busy what one would that they go round; both give what was
/// seen here, and what was with few SMs.
SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     const SmShape&, double held, const FewSms&);

/// How far blocks of one SM came side by side, from the oldest on: of the SMs that hold the most blocks, and the same
/// ones at both times. Empty where most do not.
std::vector<double> observed_shares(std::span<const BlockProgress> later, std::span<const BlockProgress> earlier);

/// A block that has still to run, or to run on.
struct RestBlock {
  std::uint64_t block = 0;
  double all = 0, left = 0;  ///< instructions
};

/// A block goes from one part of its way (0: its start, 1: its end) to another at an even rate.
struct RestPart {
  std::uint64_t block = 0;
  double from = 0, to = 0, at = 0, until = 0;
  std::uint16_t sm = 0;

  /// Where it is at a time.
  double position(double time) const {
    return time <= at ? from : time >= until ? to : from + (to - from) * (time - at) / (until - at);
  }
};

/// What the rest takes.
struct RestTime {
  double cycles = 0;            ///< until all is done
  double block_cycles = 0;      ///< blocks in flight, summed over cycles
  double sm_cycles = 0;         ///< SMs with a block in flight, summed
  std::vector<RestPart> parts;  ///< in the order in which they end
};

/// `in_flight[sm]`: its blocks, the oldest first; `next(i)`: the i-th of `waiting` blocks that have not been handed
/// out. An SM's blocks share its rate as observed, none faster than it can go by itself: where the scheduler decides,
/// the older ones come first (sm_issue.cpp), where queues do, all come in turn. Fewer blocks than were seen give less.
RestTime schedule_rest(std::vector<std::vector<RestBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate&, const std::function<RestBlock(std::uint64_t)>& next);

/// What is done from a time on and before another.
std::vector<RestPart> parts_between(std::span<const RestPart>, double from, double until);

/// `counters` holds `before` and the rest's events in proportion to its instructions: puts the schedule's cycles of SMs
/// and warps in place of those. What warps wait for by themselves stays in proportion; what they wait for because
/// others are there takes up what remains.
void set_residence(TimingCounters& counters, const TimingCounters& before, const RestTime&, double warps_per_block);

/// Warps in flight of a block in flight, in the mean: some may end before the others. `held` as for observed_rate().
double observed_warps(const TimingCounters& later, const TimingCounters& earlier, int warps_per_block, double held);

}  // namespace forewarp
