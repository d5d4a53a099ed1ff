// Executes kernels on the CPU: with all values, to check the emulator, or for the trace alone, where only what decides
// an address, a predicate or a branch is computed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/effort.h"
#include "launch/launch.h"
#include "program/program.h"
#include "trace/trace.h"

namespace forewarp {

struct EmulationOptions {
  /// Count instructions that cannot be executed instead of refusing the kernel.
  bool ignore_unknown_instructions = false;
  /// Warp instructions a block may execute before it counts as an endless loop; 0: no limit.
  std::uint64_t instruction_limit = 2'000'000'000;
  /// SMs of the GPU, for kernels that ask; 0: not known, and those are refused.
  int sm_count = 0;
  /// Bytes that the trace of one block may take; 0: no limit.
  std::uint64_t block_trace_bytes = 0;
  /// If set: receives warnings.
  std::vector<std::string>* warnings = nullptr;
};

/// What becomes of an opcode: its values are computed, it has no effect on what is emulated, it is counted without its
/// values, or a warp that reaches it stops.
enum class Emulated : std::uint8_t { Values, NoEffect, Counted, Refused };
Emulated emulated(Opcode);
/// Counted or refused.
bool not_computed(const Instruction&);

/// Where a prediction of the kernel stops a warp: what is refused or not understood, and what cannot be computed though
/// an address, a predicate or a branch depends on it. Indices of instructions; what no warp reaches does not matter.
std::vector<std::uint32_t> stopping_instructions(const Kernel&);
/// Its opcode with its modifiers.
std::string mnemonic(const Instruction&);

/// Gives launches of kernels with __cluster_dims__ their clusters, as a GPU launches them whether the file says so or
/// not. InputError if it says something else, or if they do not divide the grid.
void settle_clusters(const Program&, LaunchFile&);

struct EmulatedCase {
  std::vector<std::vector<std::uint8_t>> buffers;  ///< contents after the last launch, as in Case::buffers
  std::uint64_t warp_instructions = 0;
};

/// Runs every block of every launch of a case with all values and returns the buffers. Blocks run one after another in
/// index order, so results are reproducible. InputError for what a real GPU would report as a fault.
EmulatedCase emulate_values(const Program&, const Case&, const EmulationOptions& = {});

struct TraceOptions {
  EmulationOptions emulation;
  /// Gather blocks that behave alike into classes; otherwise every block is emulated as a class of its own.
  bool block_classes = true;
  /// Warp instructions that earlier launches of the case may cost for the sake of their values; from the one on that
  /// would cost more none is run, and LaunchInfo::inputs_incomplete says so.
  std::uint64_t value_instructions = Effort{}.value_instructions();
  /// Warp instructions that may be executed to count the blocks which differing samples stand for, less what following
  /// has cost; if that is not enough for all of them, none is counted and totals are estimates.
  std::uint64_t counted_instructions = Effort{}.counted_instructions();
  /// Warp instructions that may be executed to follow blocks that differ, of each as many more as what moves with the
  /// block costs; where that, or this much memory for their traces, is not enough for all, a sample spread over the
  /// grid stands for the rest.
  std::uint64_t traced_instructions = Effort{}.traced_instructions();
  std::uint64_t trace_bytes = Effort{}.trace_bytes();
  /// Threads that count them. The result does not depend on it.
  unsigned threads = 1;
  /// Compute products of matrices, too, where only the guards of instructions ask for them whose results nothing needs.
  bool every_guard = false;
  /// Execute everything, not only what the trace depends on: slower, for checks.
  bool all_values = false;
  /// Sets the limits above.
  void limit(const Effort&);
  /// Called from time to time with the number of blocks that have their class.
  std::function<void(std::uint64_t done, std::uint64_t of)> progress;
};

/// Whether the kernel asks how many SMs the GPU has: its trace is of GPUs with so many then.
namespace emulation {
bool reads_sm_count(const Kernel&);
}

/// Traces the launches of a case in order, keeping what earlier launches wrote.
class CaseTracer {
 public:
  /// Refers to program and case, which must outlive it.
  CaseTracer(const Program&, const Case&, const TraceOptions& = {});
  ~CaseTracer();
  CaseTracer(const CaseTracer&) = delete;
  CaseTracer& operator=(const CaseTracer&) = delete;

  /// Launches must be asked for in ascending order. Where the way of one depends on what is in memory, those before it
  /// that it depends on are run with their values first, as far as TraceOptions::value_instructions reaches.
  std::shared_ptr<KernelTrace> trace(int launch_index);

 private:
  struct State;
  void run_launches_before(int launch_index);

  std::unique_ptr<State> state_;
};

/// The trace of launch `launch_index` of a case: block classes that partition the grid. Where the way of a launch
/// depends on what is in memory, the launches before it are run with their values first.
std::shared_ptr<KernelTrace> trace_launch(const Program&, const Case&, int launch_index, const TraceOptions& = {});

}  // namespace forewarp
