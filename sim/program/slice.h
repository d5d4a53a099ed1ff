// The part of a program that decides what a trace holds: addresses, predicates and ways. Most instructions of a matrix
// product only feed values; an emulator that wants a trace need not execute them.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace forewarp {

struct ProgramSlice {
  /// By instruction: its results (of a store: its effect on memory) must be computed. Of memory instructions that are
  /// not needed, the guard and the addresses still are. Control instructions are always needed.
  std::vector<std::uint8_t> needed;

  // Loads from a space whose values are needed make every store to that space needed, and the values it stores.
  bool needs_shared_values = false;
  bool needs_global_values = false;
  bool needs_local_values = false;

  std::size_t count() const;  ///< needed instructions
};

/// Backward, by instruction and location, from every guard, every operand of branches, barriers and convergence
/// instructions, and every address of a memory instruction. Descriptors of global accesses do not count.
ProgramSlice control_slice(const Kernel&);

}  // namespace forewarp
