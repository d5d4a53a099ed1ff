// The slice of a program that decides its trace: what reaches an address, a predicate or a branch. Most instructions of
// a matrix product only feed values; an emulator that wants a trace need not execute them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "program/program.h"

namespace forewarp {

/// What is taken for a guard that is not followed.
enum class GuardTaken : std::uint8_t { Followed, Holds, Fails };

struct ProgramSlice {
  /// By instruction: whether its results (of a store: its effect on memory) must be computed. Of other memory
  /// instructions the guard and the addresses are still needed. Control instructions are always needed.
  std::vector<std::uint8_t> needed;
  /// By instruction: its guard is not followed, since it cannot be known without `hard` instructions that nothing else
  /// needs. Either it decides nothing but which threads an instruction counts for whose result nothing needs, and is
  /// taken to hold; or it chooses between a quotient, reciprocal or root computed at once and a call of the compiler's
  /// slow path, which operands next to the ends of their range take: the slow path is left out.
  std::vector<GuardTaken> unfollowed;
  /// By instruction: a store to shared memory of what hangs on `hard` instructions that nothing else needs, which is
  /// left out although loads from there are needed (Stores::Left).
  std::vector<std::uint8_t> left;

  // A needed load makes every store to its space needed, and the values stored.
  bool needs_shared_values = false;
  bool needs_global_values = false;
  bool needs_local_values = false;
  /// Stores to global memory are left out although loads from it are needed (Stores::Left).
  bool leaves_stores = false;

  std::size_t count() const;  ///< needed instructions
};

/// Works backward, by instruction and location, from every guard, every operand of branches, barriers and convergence
/// instructions, and every address of a memory instruction. Descriptors of global accesses do not count.
/// With Guards::Known the guard of an instruction whose result nothing needs, and of a branch to a slow path, is no
/// reason to compute what is hard. With Stores::Left a launch is taken to load for its slice only what it does not
/// store in global memory, and of shared memory only what does not hang on what is hard; an emulator has to watch that.
enum class Guards : std::uint8_t { Known, Every };
enum class Stores : std::uint8_t { Followed, Left };
struct SliceOptions {
  std::function<bool(const Instruction&)> hard =
      {};  ///< beside products of matrices: costs much, or cannot be computed
  Guards guards = Guards::Known;
  Stores stores = Stores::Followed;
};
ProgramSlice control_slice(const Kernel&, const SliceOptions& = {});

}  // namespace forewarp
