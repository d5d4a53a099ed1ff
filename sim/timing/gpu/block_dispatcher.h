// Hands out thread blocks: x fastest, at most so many a cycle over the whole GPU, each to the SM that holds the
// fewest. Blocks that end are taken back one after another, several times more slowly than they are handed out, one of
// each SM in turn; their slots take the next ones a little later. As kernels/micro waves saw on an H200, blocks
// are dealt in levels, one to each SM: to both SMs of a TPC in turn, to all TPCs of a GPC, then to the next GPC (which
// SMs share a GPC: kernels/micro l2_drift). A grid that does not fill the GPU is spread evenly: its last level reaches
// the first SM of the first TPC of each GPC, of the second and so on, then the second SMs; some TPCs of the first GPC
// come before all others.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp {

class BlockDispatcher {
 public:
  BlockDispatcher(const GpuModel&, std::uint64_t blocks, int blocks_per_sm);

  struct Grant {
    std::uint64_t block = 0;
    int sm = -1;  ///< -1: nothing can be handed out now
  };
  Grant next(Cycle now);
  void finished(int sm, Cycle end);
  /// Cycle at which all that have ended are taken back: the launch is not over before.
  Cycle all_back() const;

  bool exhausted() const { return waiting() == 0; }
  std::uint64_t waiting() const { return blocks_ - next_block_ + first_.size(); }
  /// The i-th block from now on.
  std::uint64_t upcoming(std::uint64_t i) const {
    return i < first_.size() ? first_[i] : next_block_ + (i - first_.size());
  }
  /// Leaves out the next blocks: they count as handed out and done.
  void skip(std::uint64_t count);
  /// These, which had been left out, come before all others.
  void put_first(std::span<const std::uint64_t> blocks) { first_.insert(first_.begin(), blocks.begin(), blocks.end()); }
  /// Cycle at which the next block may be handed out; kNever while no slot is free.
  Cycle wake(Cycle now) const;

 private:
  struct Leaving {
    Cycle at;
    int sm;
  };
  int choose_sm() const;
  std::uint64_t next_back_x16() const;
  void take_back(Cycle now);
  void spread_evenly(const std::vector<int>& tpcs, std::size_t apart);

  std::uint64_t blocks_, next_block_ = 0;
  std::deque<std::uint64_t> first_;  ///< blocks before next_block_ that have not been handed out
  int sms_per_tpc_;
  std::vector<int> order_;  ///< SMs in the order in which a level reaches them
  std::vector<int> held_;   ///< blocks, by SM
  std::vector<int> room_;   ///< most blocks, by SM
  int total_free_;
  std::vector<Leaving> leaving_;
  std::uint64_t next_x16_ = 0;            ///< earliest next grant, in sixteenths of a cycle
  std::uint64_t back_x16_ = 0;            ///< the same of the next block taken back
  std::vector<std::deque<Cycle>> ended_;  ///< ends of blocks not taken back yet, by place in order_
  std::size_t ended_count_ = 0, turn_ = 0;
  std::vector<std::size_t> place_;  ///< in order_, by SM
  int interval_x16_, back_interval_x16_;
  int block_end_cycles_;
};

}  // namespace forewarp
