// Grid totals of a launch, grouped as Nsight Compute's counters need them: by pipe, operation, memory space and kind.
#pragma once

#include <array>
#include <cstdint>

#include "program/analysis.h"
#include "trace/trace.h"

namespace forewarp {

inline constexpr std::size_t kPipes = static_cast<std::size_t>(Pipe::Count);
inline constexpr std::size_t kOperations = static_cast<std::size_t>(OperationClass::Count);
inline constexpr std::size_t kMatrixTypes = static_cast<std::size_t>(MatrixType::Count);
inline constexpr std::size_t kMemoryKinds = 6;  ///< MemoryKind: None .. AsyncCopy

/// Spaces as the memory pipe sees them. A generic access counts where its lanes went; an asynchronous copy counts as a
/// global request and a shared one.
enum class CountedSpace : std::uint8_t { Global, Local, Shared, Count };
inline constexpr std::size_t kCountedSpaces = static_cast<std::size_t>(CountedSpace::Count);

struct CountSummary {
  int sm = 0;
  InstructionCount all;  ///< every instruction
  std::array<InstructionCount, kPipes> pipe{};
  std::array<InstructionCount, kOperations> operation{};
  std::array<std::array<InstructionCount, kMemoryKinds>, kCountedSpaces> memory{};
  InstructionCount branch;            ///< BRA, JMP, BRX, BRXU, JMX, JMXU, CALL, RET, WARPSYNC.EXCLUSIVE
  InstructionCount control_transfer;  ///< everything on the CBU except BMOV and BSSY
  InstructionCount half_on_fma;       ///< half-precision operations on the FMA pipe
  /// Operations of matrix instructions by MatrixType, dense and sparse: a warp's, and those of warp groups.
  using MatrixOperations = std::array<std::array<std::uint64_t, 2>, kMatrixTypes>;
  MatrixOperations warp_operations{}, group_operations{};
  InstructionCount float_matrix, integer_matrix, double_matrix;  ///< HMMA and QMMA; IMMA and BMMA; DMMA
  InstructionCount half_on_tensor;                               ///< HFMA2.MMA
  InstructionCount matrix_loads, matrix_stores;                  ///< LDSM, STSM, among the shared loads and stores
  InstructionCount group_products;                               ///< wgmma, with what its factors pass of the banks
  std::uint64_t other_wavefronts = 0;  ///< data-stage passes of instructions that move no memory data (summary.cpp)

  static std::uint64_t operations(const MatrixOperations& of, MatrixType t, bool sparse) {
    return of[static_cast<std::size_t>(t)][sparse ? 1 : 0];
  }
  const InstructionCount& of(Pipe p) const { return pipe[static_cast<std::size_t>(p)]; }
  const InstructionCount& of(OperationClass o) const { return operation[static_cast<std::size_t>(o)]; }
  const InstructionCount& of(CountedSpace s, MemoryKind k) const {
    return memory[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)];
  }
};

/// The pipe whose sm__inst_executed_pipe_* counter counts an instruction, or None. The unit that is charged for its
/// time (Instruction::pipe) may be another.
Pipe counted_pipe(const Instruction& instruction);

/// `totals` is parallel to the kernel's instructions.
CountSummary summarize(const Kernel& kernel, int sm, const std::vector<InstructionCount>& totals);

/// Barriers with memory accesses to order since the previous one; each takes one pass through the data stage.
std::uint64_t ordering_barriers(const KernelTrace& trace);

/// Whether smsp__sass_branch_targets counts the instruction.
bool is_counted_branch(const Instruction& instruction);

}  // namespace forewarp
