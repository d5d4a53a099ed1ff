// The whole GPU: SMs, the memory system behind them, and the dispatcher, driven cycle by cycle but only where
// something is due.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "timing/block_dispatcher.h"
#include "timing/loops.h"
#include "timing/memory.h"
#include "timing/result.h"
#include "timing/sm.h"

namespace forewarp {

class Gpu {
 public:
  /// `before`: what launches before this one have left in L2, and the code in the instruction caches; without it all
  /// caches are as a profiler leaves them that has flushed them.
  explicit Gpu(const LaunchContext&, const MemorySystem* before = nullptr);

  /// Runs until every block has left and every store is acknowledged, or until `stop_instructions` warp
  /// instructions have issued or `stop_cycle` is reached. True if the launch is over.
  bool run(std::uint64_t stop_instructions, Cycle stop_cycle);

  Cycle now() const { return now_; }
  /// Nothing is due before `cycle`: let the clock stand there.
  void advance_to(Cycle cycle) { now_ = std::max(now_, std::min(cycle, next_due())); }

  // For skipping what repeats.
  void set_loops(const std::vector<std::vector<PathLoop>>* loops) { loops_ = loops; }
  bool inside_loops() const;
  LoopProgress loop_progress() const;
  /// Moves each of the blocks on by so many iterations.
  L2Traffic skip_iterations(const LoopProgress&, std::span<const std::uint32_t> counts);
  int live_warps() const;
  std::vector<BlockProgress> blocks_in_flight() const;
  Cycle last_end() const { return last_end_; }
  std::uint64_t issued() const;
  std::uint64_t finished_blocks() const { return finished_blocks_; }
  BlockDispatcher& dispatcher() { return dispatcher_; }
  const BlockDispatcher& dispatcher() const { return dispatcher_; }
  MemorySystem& memory() { return memory_; }
  const MemorySystem& memory() const { return memory_; }
  std::vector<std::unique_ptr<Sm>>& sms() { return sms_; }
  const std::vector<BlockSpan>& spans() const { return spans_; }

  TimingCounters counters() const;
  const std::vector<StallCycles>& instruction_stalls() const { return instruction_stalls_; }

 private:
  Cycle next_due() const;
  void warm_up(const MemorySystem& before);
  void dispatch();
  void step();
  [[noreturn]] void report_deadlock() const;

  LaunchContext context_;
  MemorySystem memory_;
  std::vector<StallCycles> instruction_stalls_;
  BlockDispatcher dispatcher_;
  std::vector<std::unique_ptr<Sm>> sms_;
  std::vector<Cycle> sm_next_;
  std::vector<SharedInstructionCache> instruction_caches_;  ///< by GPC
  std::vector<std::uint16_t> gpc_of_;
  std::vector<MemoryReply> replies_;
  std::vector<FinishedBlock> finished_;
  std::vector<BlockSpan> spans_;
  const std::vector<std::vector<PathLoop>>* loops_ = nullptr;
  Cycle now_ = 0, last_end_ = 0;
  std::uint64_t finished_blocks_ = 0;
};

}  // namespace forewarp
