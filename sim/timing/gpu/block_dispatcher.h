// Dispatches thread blocks: x fastest, at a limited rate for the whole GPU, each to the SM that holds the fewest.
// Blocks that end are retired one by one, several times more slowly, one of each SM in turn; a slot is free a little
// later.
//
// Blocks go out in levels, one to each SM: to both SMs of a TPC, to all TPCs of a GPC, then to the next GPC. A grid
// that does not fill the GPU is spread evenly: its last level reaches the first SM of the first TPC of each GPC, then
// of the second and so on, then the second SMs; some TPCs of the first GPC come before all others (kernels/micro waves,
// l2_drift; FINDINGS.md, launch and dispatch).
//
// The blocks of a cluster go out at once into one GPC, when that has room for all of them: to the SMs that hold the
// fewest, both SMs of a TPC before the next. Clusters go out in rows, one to each GPC that can take one at the lowest
// level, in turn from the GPC after the last; when fewer are left than there are such GPCs, the first of them get one.
// TPCs of the first GPC that stand apart come first in a level if a cluster is no more than the SMs of one, else they
// stay empty, and so does what is left of a GPC when no further cluster fits (cluster_places.csv, cluster_rates.csv).
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp {

class BlockDispatcher {
 public:
  /// `cluster_blocks` make a cluster; none or one: no clusters. Clusters begin at `first_gpc`: on a card the one after
  /// that of the last cluster of the launch before.
  BlockDispatcher(const GpuModel&, std::uint64_t blocks, int blocks_per_sm, int cluster_blocks = 0, int first_gpc = 0);

  struct Grant {
    std::uint64_t block = 0;
    int sm = -1;  ///< -1: nothing can be dispatched now
  };
  /// Only so many SMs take blocks, evenly among all. Before the first grant, and without clusters.
  void keep_to(int sms, int blocks_per_sm);
  Grant next(Cycle now);
  void finished(int sm, Cycle end);
  /// Cycle in which all ended blocks are retired; the launch is not over before.
  Cycle all_back() const;

  bool exhausted() const { return next_block_ == blocks_; }
  std::uint64_t dispatched() const { return next_block_; }
  /// Skips blocks: they count as dispatched and done.
  void skip(std::uint64_t count) {
    next_block_ += count;
    row_.clear();
  }
  /// An SM holds one more block, which was under way before. Without clusters.
  void hold(int sm) { take_place(sm, 1); }
  /// The GPC after that of the last cluster.
  int next_gpc() const { return static_cast<int>(after_ - gpcs_from_); }
  /// Cycle in which the next block may be dispatched; kNever while no slot is free.
  Cycle wake(Cycle now) const;

 private:
  struct Leaving {
    Cycle at;
    int sm;
  };
  /// SMs that clusters go to: a GPC, or a TPC that stands apart.
  struct Home {
    std::vector<int> sms;
    int room = 0;  ///< blocks
    bool apart = false;
  };
  int choose_sm() const;
  bool can_place() const;
  void settle(const GpuModel&, int first_gpc);
  std::pair<std::vector<int>, int> seats_in(const Home&) const;
  void open_row();
  void place_cluster();
  void take_place(int sm, int more);
  std::uint64_t next_back_x16() const;
  void take_back(Cycle now);
  void spread_evenly(const std::vector<int>& tpcs, std::size_t apart);

  std::uint64_t blocks_, next_block_ = 0;
  int sms_per_tpc_;
  std::vector<int> order_;  ///< SMs in dispatch order within a level
  std::vector<int> held_;   ///< blocks, by SM
  std::vector<int> room_;   ///< most blocks, by SM
  int total_free_;
  int cluster_blocks_;
  std::vector<Home> homes_;           ///< of clusters; those apart first
  std::vector<std::size_t> home_of_;  ///< by SM
  std::vector<std::size_t> row_;      ///< homes that get a cluster each, the next last
  std::size_t gpcs_from_ = 0;         ///< the first of them that is a GPC
  std::size_t after_ = 0;             ///< the one after the GPC that got the last cluster
  std::vector<int> seats_;            ///< SMs of the cluster under way, the next last
  std::vector<Leaving> leaving_;
  std::uint64_t next_x16_ = 0;            ///< earliest next grant, in sixteenths of a cycle
  std::uint64_t back_x16_ = 0;            ///< the same for the next block retired
  std::vector<std::deque<Cycle>> ended_;  ///< ends of blocks not yet retired, by place in order_
  std::size_t ended_count_ = 0, turn_ = 0;
  std::vector<std::size_t> place_;  ///< in order_, by SM
  int interval_x16_, back_interval_x16_, cluster_interval_x16_;
  int block_end_cycles_;
};

}  // namespace forewarp
