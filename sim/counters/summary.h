// Grid totals of a launch sorted by what Nsight Compute's counters ask for: pipe, operation, memory space and kind.
#pragma once

#include <array>
#include <cstdint>

#include "trace/trace.h"

namespace forewarp {

inline constexpr std::size_t kPipes = static_cast<std::size_t>(Pipe::Count);
inline constexpr std::size_t kOperations = static_cast<std::size_t>(OperationClass::Count);
inline constexpr std::size_t kMemoryKinds = 6;  ///< MemoryKind: None .. AsyncCopy

/// Spaces as the memory pipe sees them. A generic access is counted where its lanes went; an asynchronous copy is a
/// global request and a shared one.
enum class CountedSpace : std::uint8_t { Global, Local, Shared, Count };
inline constexpr std::size_t kCountedSpaces = static_cast<std::size_t>(CountedSpace::Count);

struct CountSummary {
  int sm = 0;
  InstructionCount all;  ///< every instruction
  std::array<InstructionCount, kPipes> pipe{};
  std::array<InstructionCount, kOperations> operation{};
  std::array<std::array<InstructionCount, kMemoryKinds>, kCountedSpaces> memory{};
  InstructionCount branch;             ///< BRA, JMP, BRX, BRXU, JMX, JMXU, CALL, RET, WARPSYNC.EXCLUSIVE
  InstructionCount control_transfer;   ///< everything on the CBU except BMOV and BSSY
  InstructionCount half_on_fma;        ///< half-precision operations on the FMA pipe
  std::uint64_t other_wavefronts = 0;  ///< passes of the data stage for what moves no data of memory (summary.cpp)

  const InstructionCount& of(Pipe p) const { return pipe[static_cast<std::size_t>(p)]; }
  const InstructionCount& of(OperationClass o) const { return operation[static_cast<std::size_t>(o)]; }
  const InstructionCount& of(CountedSpace s, MemoryKind k) const {
    return memory[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)];
  }
};

/// The pipe whose sm__inst_executed_pipe_* counts an instruction, None where no such counter does. It differs from the
/// unit that takes the instruction's time (Instruction::pipe).
Pipe counted_pipe(const Instruction& instruction);

/// `totals` is parallel to the kernel's instructions.
CountSummary summarize(const Kernel& kernel, int sm, const std::vector<InstructionCount>& totals);

/// Barriers of blocks with something to order since the one before: each sends one more pass through the data stage.
std::uint64_t ordering_barriers(const KernelTrace& trace);

/// Whether smsp__sass_branch_targets counts it.
bool is_counted_branch(const Instruction& instruction);

}  // namespace forewarp
