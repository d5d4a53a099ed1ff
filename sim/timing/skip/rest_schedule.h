// How long the rest of a launch takes, block by block, once its rate is known: each SM works on its blocks side by
// side, and takes the next when one is done, so that unequal blocks, blocks that end one after another and a last wave
// that is not full are seen.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "timing/result.h"

namespace forewarp {

/// Warp instructions a cycle of an SM: no more than its blocks do with nobody in their way, nor than it gives when it
/// is full.
struct SmRate {
  double alone = 0;  ///< of one block
  double most = 0;
  std::vector<double> shares = {};  ///< of the oldest block of an SM in it, the next, ...; empty: as much each
  std::vector<double> times = {};   ///< a factor of both for each SM; empty: 1

  double share(std::size_t k) const { return k < shares.size() ? shares[k] : 1.0; }
  double of(std::size_t sm) const { return sm < times.size() ? times[sm] : 1.0; }
};

/// A block that has still to run, or to run on.
struct RestBlock {
  std::uint64_t block = 0;
  double all = 0, left = 0;        ///< instructions
  std::vector<double> leads = {};  ///< by which its warps are ahead of it, in parts of their own ways; empty: none is

  double done() const { return 1 - left / all; }
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
/// out. None is faster than it can
/// go by itself; what those leave of their shares the younger ones have.
RestTime schedule_rest(std::vector<std::vector<RestBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate&, const std::function<RestBlock(std::uint64_t)>& next);

/// What is done from a time on and before another.
std::vector<RestPart> parts_between(std::span<const RestPart>, double from, double until);

/// `counters` holds `before` and the rest's events in proportion to its instructions: puts the schedule's cycles of SMs
/// and warps in place of those. What warps wait for by themselves stays in proportion; what they wait for because
/// others are there takes up what remains.
void set_residence(TimingCounters& counters, const TimingCounters& before, const RestTime&, double warps_per_block);

/// Warps in flight of a block in flight, in the mean: some may end before the others. `held`: places for blocks that
/// were taken on an SM with any.
double observed_warps(const TimingCounters& later, const TimingCounters& earlier, int warps_per_block, double held);

}  // namespace forewarp
