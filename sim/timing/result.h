// The result of a simulated launch: raw event sums over the whole GPU unless said otherwise. Ratios are made in
// report/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.h"
#include "program/instruction.h"
#include "timing/memory/memory.h"

namespace forewarp {

struct BlockRecord;

/// Why a warp did not issue in a cycle, by Nsight Compute's names
/// (smsp__average_warps_issue_stalled_<name>_per_issue_active.ratio), which has none of its own for `products` and
/// counts them as `barrier`.
#define FW_STALL_REASONS(X)                                                                                \
  X(Selected, "selected", "issued an instruction")                                                         \
  X(Barrier, "barrier", "waited for the other warps of its block at a barrier")                            \
  X(BranchResolving, "branch_resolving", "waited for a branch target to be computed")                      \
  X(Gmma, "gmma", "waited for the other warps of its warpgroup")                                           \
  X(DispatchStall, "dispatch_stall", "waited because the dispatcher held the warp back (register ports)")  \
  X(Drain, "drain", "waited after EXIT for its stores to leave")                                           \
  X(ImcMiss, "imc_miss", "waited for a miss of the immediate constant cache")                              \
  X(LgThrottle, "lg_throttle", "waited for room in the queue of local and global memory instructions")     \
  X(LongScoreboard, "long_scoreboard", "waited for data from global or local memory, or at an mbarrier")   \
  X(MathPipeThrottle, "math_pipe_throttle", "waited for an execution pipe to be free")                     \
  X(Membar, "membar", "waited at a memory barrier")                                                        \
  X(MioThrottle, "mio_throttle", "waited for room in the queue of shared-memory and special instructions") \
  X(Misc, "misc", "waited for another reason")                                                             \
  X(NoInstruction, "no_instruction", "waited for its next instruction to be fetched")                      \
  X(NotSelected, "not_selected", "was ready, but another warp issued")                                     \
  X(Products, "products", "waited for its warpgroup's products (Nsight Compute: barrier)")                 \
  X(ShortScoreboard, "short_scoreboard", "waited for shared memory, special functions or a constant load") \
  X(Sleeping, "sleeping", "slept (NANOSLEEP)")                                                             \
  X(TexThrottle, "tex_throttle", "waited for room in the texture queue")                                   \
  X(Wait, "wait", "waited for a fixed latency, as the compiler scheduled it")

enum class Stall : std::uint8_t {
#define X(id, name, meaning) id,
  FW_STALL_REASONS(X)
#undef X
      Count
};
inline constexpr std::size_t kStallReasons = static_cast<std::size_t>(Stall::Count);
using StallCycles = std::array<std::uint64_t, kStallReasons>;  ///< warp-cycles by reason
const char* stall_name(Stall);
const char* stall_meaning(Stall);

/// One block's residency on an SM, for wave plots.
struct BlockSpan {
  std::uint32_t block = 0;  ///< linear index
  std::uint32_t sm = 0;     ///< 32 bits too: without padding, equal spans have equal bytes
  Cycle start = 0, end = 0;
};

/// A part of the run that was not simulated but extrapolated.
struct SkippedTime {
  Cycle from = 0, to = 0;
};

/// A row of counters.def each, and those that have a number of their own for every reason or pipe.
struct TimingCounters {
#define FW_SM_COUNTER(name, ...) std::uint64_t name = 0;
#include "timing/counters.def"
  StallCycles stalls{};  ///< sums to warp_cycles, apart from starts
  std::array<std::uint64_t, static_cast<std::size_t>(Pipe::Count)>
      pipe_cycles{};  ///< sub-partition cycles a pipe was busy
  MemoryCounters memory;
};

/// What was simulated and what was extrapolated from it.
struct Coverage {
  std::uint64_t warp_instructions = 0;            ///< of the launch, exact
  std::uint64_t simulated_warp_instructions = 0;  ///< of those, simulated in detail
  bool extrapolated = false;
  bool counters_exact = true;  ///< totals of instructions and requests: every block was followed or counted
  /// Warp instructions from the start on after which some were left out; kAll: none were.
  std::uint64_t detailed_instructions = 0;
  static constexpr std::uint64_t kAll = ~std::uint64_t{0};
  std::string method;  ///< one clause: how the rest was obtained
  double cycles_low = 0,
         cycles_high = 0;  ///< 95 % confidence interval of the cycles; both are them if all was simulated
  /// Half of that interval, in percent of its middle.
  double uncertainty_pct() const {
    return cycles_high > 0 ? 100 * (cycles_high - cycles_low) / (cycles_high + cycles_low) : 0;
  }
};

struct TimingResult {
  Cycle elapsed_cycles = 0;          ///< gpc__cycles_elapsed.max
  TimingCounters counters;           ///< extrapolated to the whole launch where coverage says so
  std::vector<BlockSpan> spans;      ///< of simulated blocks, in order of end; at most a few ten thousand. Their times
                                     ///< count what was skipped, so that they fit elapsed_cycles
  std::vector<SkippedTime> skipped;  ///< ascending, disjoint
  std::vector<StallCycles> instruction_stalls;  ///< by instruction index: warp-cycles waited before its issue
  Coverage coverage;
  double host_seconds = 0;           ///< of a processor at nominal speed, that this simulation took
  double host_seconds_of_lines = 0;  ///< of those, for the lines of what was left out: no fewer in less detail
  std::vector<std::string> warnings;
  std::shared_ptr<const BlockRecord> record;  ///< of the block that was asked for, if it was simulated
};

}  // namespace forewarp
