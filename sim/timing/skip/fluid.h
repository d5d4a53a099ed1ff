// Blocks as fluids: each SM works on its blocks side by side at the rate that was seen for as many, the older ones
// first where they were seen to be, and takes the next when one is done. So loops, whole waves, unequal blocks and the
// end of a launch are one case.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "timing/result.h"

namespace forewarp {

/// Work a cycle of one SM.
struct SmRate {
  double alone = 0;               ///< of a block that nobody is in the way of
  std::vector<double> by_blocks;  ///< of the SM when it holds one block, two, ...
  /// What the oldest block of an SM, the next, ... get of it, where all want more; empty: as much each.
  std::vector<double> shares;

  double with(std::size_t blocks) const { return by_blocks[std::min(blocks, by_blocks.size()) - 1]; }
};

struct FluidBlock {
  std::uint64_t block = 0;
  double all = 0, done = 0;  ///< work
  int slot = -1;             ///< of its SM; -1: it got one that was free
  double speed = 1;          ///< times the rate of others
  double from = 0, at = 0;   ///< what was done when its part under way began
};

/// A block goes from one point of its work to another at an even rate.
struct FluidPart {
  std::uint64_t block = 0;
  double from = 0, to = 0;  ///< of all its work: 0 to 1
  double at = 0, until = 0;
  std::uint16_t sm = 0;
};

class Fluid {
 public:
  /// `in_flight[sm]`: its blocks, the oldest first; `next(i)`: the i-th of `waiting` blocks that have not started.
  Fluid(std::vector<std::vector<FluidBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm, SmRate,
        std::function<FluidBlock(std::uint64_t)> next);

  /// Until a time, or until all is done. The parts of blocks are appended in the order in which they end.
  void advance(double until, std::vector<FluidPart>* parts = nullptr);

  bool over() const { return queue_.empty(); }
  double now() const { return now_; }
  double work() const { return work_; }                  ///< done so far
  double block_cycles() const { return block_cycles_; }  ///< blocks in flight, summed over cycles
  double sm_cycles() const { return sm_cycles_; }        ///< SMs with a block in flight, summed
  double first_idle() const { return first_idle_; }      ///< when a place stayed empty for the first time
  std::uint64_t started() const { return started_; }
  const std::vector<std::vector<FluidBlock>>& in_flight() const { return in_flight_; }

 private:
  /// A block of an SM ends.
  struct Event {
    double at = 0;
    std::size_t sm = 0;
    bool operator>(const Event& other) const { return at != other.at ? at > other.at : sm > other.sm; }
  };
  void pass(std::size_t sm, double until);
  void plan(std::size_t sm);
  void cut(std::size_t sm, FluidBlock&, std::vector<FluidPart>*) const;

  std::vector<std::vector<FluidBlock>> in_flight_;
  std::uint64_t waiting_, started_ = 0;
  SmRate rate_;
  std::function<FluidBlock(std::uint64_t)> next_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::vector<double> since_;
  std::vector<std::vector<double>> rates_;
  double now_ = 0, work_ = 0, block_cycles_ = 0, sm_cycles_ = 0, first_idle_ = -1;
};

}  // namespace forewarp
