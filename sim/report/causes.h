// Where a launch's elapsed cycles go: causes that add up to all of them, and what would be gained without each.
// sim/accounting finds them by simulating again; this is the value that reports print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace forewarp {

// Name in JSON, title, what it means. The kernel's own faults come first, the GPU's resources after them, what is left
// last; each of the kernel's is taken away before the resource that it spends.
#define FW_CAUSES(X)                                                                                    \
  X(Launch, "launch", "launch and drain", "the launch starts and ends")                                 \
  X(Tail, "tail", "idle SMs", "SMs have no block, or fewer than fit")                                   \
  X(Uncoalesced, "uncoalesced", "scattered accesses", "lanes touch more sectors than their bytes need") \
  X(BankConflicts, "bank_conflicts", "bank conflicts", "lanes of shared accesses meet on a bank")       \
  X(Atomics, "atomics", "atomics", "atomics on global memory follow one another in L2")                 \
  X(LocalMemory, "local_memory", "local memory", "registers are spilled, or arrays are indexed")        \
  X(Divergence, "divergence", "idle lanes", "instructions execute with lanes off")                      \
  X(Fetch, "instruction_fetch", "instruction fetch", "instructions come from beyond the first cache")   \
  X(Barrier, "synchronisation", "synchronisation", "warps wait for each other at barriers and fences")  \
  X(L2Capacity, "l2_capacity", "L2 capacity", "data leave L2 before they are used again")               \
  X(Registers, "registers", "registers", "registers limit the blocks on an SM")                         \
  X(SharedSize, "shared_memory_size", "shared memory size", "shared memory limits the blocks on an SM") \
  X(BlockSlots, "block_slots", "block slots", "small blocks fill the block slots of an SM")             \
  X(Latency, "latency", "latency not hidden", "warps wait for results, and too few others can issue")   \
  X(PipeAlu, "pipe_alu", "ALU pipe", "integer and logic instructions")                                  \
  X(PipeFma, "pipe_fma", "FMA pipe", "fp32 and integer multiply-adds")                                  \
  X(PipeFp16, "pipe_fp16", "FP16 pipe", "fp16 instructions")                                            \
  X(PipeFp64, "pipe_fp64", "FP64 pipe", "fp64 instructions")                                            \
  X(PipeXu, "pipe_xu", "XU pipe", "special functions and conversions")                                  \
  X(PipeTensor, "pipe_tensor", "tensor pipe", "products of matrices")                                   \
  X(PipeOther, "pipe_other", "other pipes", "uniform, branch and address instructions")                 \
  X(L1, "l1", "L1", "the load-store unit and the L1 cache")                                             \
  X(Shared, "shared_memory", "shared memory", "passes through the banks")                               \
  X(L2, "l2", "L2", "the crossbar and the slices of L2")                                                \
  X(Dram, "hbm", "HBM", "bytes to and from memory")                                                     \
  X(Issue, "issue", "instruction issue", "one instruction a cycle and scheduler")

enum class CauseKind : std::uint8_t {
#define X(id, name, title, meaning) id,
  FW_CAUSES(X)
#undef X
      Count
};
inline constexpr std::size_t kCauses = static_cast<std::size_t>(CauseKind::Count);
const char* cause_name(CauseKind);
const char* cause_title(CauseKind);
const char* cause_meaning(CauseKind);

/// An instruction that a cause is about.
struct CausePlace {
  std::uint32_t instruction = 0;
  std::string text, source;  ///< source: "file.cu:12", empty without line information
};

struct Cause {
  CauseKind kind = CauseKind::Issue;
  double cycles = 0;     ///< of the elapsed ones; those of all causes add up to them
  double share_pct = 0;  ///< the same, in percent
  /// Elapsed cycles that are gained without this cause alone; causes overlap, so gains do not add up.
  std::optional<double> gain_cycles;
  std::string evidence;             ///< the counters that show it
  std::optional<CausePlace> place;  ///< the instruction to look at
  std::optional<CausePlace> waits;  ///< Latency: the instruction that waits for it
};

/// A finding in Nsight Compute's manner.
struct Finding {
  CauseKind kind = CauseKind::Issue;
  std::string what, why, advice;
  double speedup_pct = 0;  ///< estimated: time saved, in percent
  std::string section;     ///< of the report, where to read on
};

struct Accounting {
  bool simulated = false;     ///< sizes come from simulating again; otherwise from the counters of the one run
  int simulations = 0;        ///< so many
  std::string method;         ///< one clause
  std::vector<Cause> causes;  ///< largest first; without those of no size
  std::vector<Finding> findings;
};

}  // namespace forewarp
