// The whole GPU: SMs, the memory system behind them, and the dispatcher, driven cycle by cycle but only where
// something is due.
//
// GPCs and the memory system below their ports run in parallel, some cycles at a time: a reply takes a while to arrive,
// and a block's slot is free only some time after its end, so for that long none can see what another does. The length
// depends on the launch alone, so the result does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/crew.h"
#include "timing/gpu/block_dispatcher.h"
#include "timing/memory/l2_traffic.h"
#include "timing/memory/memory.h"
#include "timing/result.h"
#include "timing/sm/sm.h"

namespace forewarp {

/// A block that is in the middle of its way.
struct BlockUnderWay {
  std::uint64_t block = 0;
  std::uint16_t sm = 0;
  BlockState state;
};

/// Blocks of a grid, from one up to another, and how many SMs take them; 0: all. Those under way are there before.
struct BlockRange {
  std::uint64_t first = 0, end = ~std::uint64_t{0};
  int sms = 0;
  std::span<const BlockUnderWay> under_way = {};
};

class Gpu {
 public:
  /// `before`: L2 as earlier launches left it, with the code in the instruction caches; without it all caches are as a
  /// profiler's flush leaves them. `blocks`: the blocks to run; the others count as done.
  explicit Gpu(const LaunchContext&, const MemorySystem* before = nullptr, unsigned threads = 1,
               BlockRange blocks = {});

  /// Runs until every block has left and every store is acknowledged, or until `stop_instructions` warp instructions
  /// have issued or `stop_cycle` is reached, and up to half a reply's way further. True if the launch is over. One call
  /// or many make no difference to the result.
  bool run(std::uint64_t stop_instructions, Cycle stop_cycle);

  Cycle now() const { return now_; }
  /// Moves the clock to `cycle` if nothing is due before it.
  void advance_to(Cycle cycle) { now_ = std::max(now_, std::min(cycle, next_due())); }

  int live_warps() const;
  /// Lets all issued requests arrive without any warp proceeding. Returns the traffic.
  L2Traffic drain();
  Cycle last_end() const { return last_end_; }
  std::uint64_t issued() const;
  std::uint64_t finished_blocks() const { return finished_blocks_; }
  BlockDispatcher& dispatcher() { return dispatcher_; }
  const BlockDispatcher& dispatcher() const { return dispatcher_; }
  MemorySystem& memory() { return memory_; }
  const MemorySystem& memory() const { return memory_; }
  /// Free between calls.
  Crew& crew() { return crew_; }
  std::uint16_t sms() const { return static_cast<std::uint16_t>(sms_.size()); }
  Sm& sm(std::uint16_t id) { return *sms_[id]; }
  const Sm& sm(std::uint16_t id) const { return *sms_[id]; }
  const std::vector<BlockSpan>& spans() const { return spans_; }

  TimingCounters counters() const;
  std::vector<StallCycles> instruction_stalls() const;

 private:
  /// The SMs of a GPC and what they share.
  struct Gpc {
    struct Start {
      Cycle at = 0;
      std::uint16_t sm = 0;
      std::uint32_t block = 0;
      ClusterSeat seat;
    };
    struct End {
      Cycle seen = 0;
      std::uint16_t sm = 0;
      FinishedBlock block;
    };
    explicit Gpc(const LaunchContext& context);
    std::size_t first_sm = 0, end_sm = 0;
    std::unique_ptr<ClusterNetwork> network;  ///< of launches with clusters
    SharedInstructionCache instructions;
    std::vector<Start> starts;  ///< blocks dispatched to it in these cycles
    std::vector<End> ends;      ///< blocks that have left in these cycles
    std::vector<MemoryReply> replies;
    std::vector<FinishedBlock> finished;
    Cycle next = kNever;      ///< when its SMs have something to do, apart from replies and new blocks
    Cycle last = 0;           ///< last cycle in which something was done
    std::uint64_t ticks = 0;  ///< of its SMs, in the last step
  };

  Gpc& gpc_of(std::uint16_t sm) { return *gpcs_[static_cast<std::size_t>(memory_.gpc(sm))]; }
  /// Where the block that is handed out in this place lies in the grid and in its cluster.
  std::uint32_t block_of(std::uint64_t place) const;
  ClusterSeat seat_of(std::uint64_t place) const;
  Cycle next_due() const;
  Cycle next_of_gpcs() const;
  bool over() const;
  void warm_up(const MemorySystem& before);
  void start_first_blocks();
  void give_blocks(Cycle from, Cycle end);
  void take_blocks_back();
  /// Runs the GPCs from the first cycle in which something is due up to `end`, and what is below them up to `below`.
  void run_side_by_side(Cycle end, Cycle below);
  void run_gpc(int gpc, Cycle end, std::vector<StallCycles>& stalls);
  void step(Gpc&, int gpc, Cycle now, std::vector<StallCycles>& stalls);
  [[noreturn]] void report_deadlock() const;

  LaunchContext context_;
  MemorySystem memory_;
  std::vector<std::vector<StallCycles>> instruction_stalls_;  ///< by thread
  BlockDispatcher dispatcher_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::vector<Cycle> sm_next_;
  std::vector<std::unique_ptr<Gpc>> gpcs_;
  std::vector<Gpc::End> ends_;  ///< of these cycles, of all GPCs
  std::vector<BlockSpan> spans_;
  Cycle now_ = 0, last_end_ = 0, dispatched_at_ = 0;
  std::uint64_t finished_blocks_ = 0;
  Crew crew_;
};

}  // namespace forewarp
