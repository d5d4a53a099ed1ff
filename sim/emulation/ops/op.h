// A kernel decoded for execution: every operand is resolved to a row of 32 lanes, so an instruction is a function over
// rows and nothing is looked up while it runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.h"
#include "program/program.h"

namespace forewarp::emulation {

struct Exec;
struct Op;
using Handler = void (*)(Exec&, const Op&);

/// One 32-bit register of a warp. Uniform registers and immediates are rows too, with 32 equal values.
struct alignas(64) Row {
  std::array<std::uint32_t, kWarpLanes> lane{};
};
inline constexpr std::uint32_t kRowBytes = sizeof(Row);

/// Rows whose offset has this bit lie in the kernel's literal pool, the others in the warp's register file.
inline constexpr std::uint32_t kLiteralBit = 0x80000000u;

/// A source operand. Integers read (row ^ flip) + add, floats (row & keep) ^ flip; add counts as a summand of its own
/// where carries matter. 64-bit operands continue in the next row.
struct Source {
  std::uint32_t row = 0;  ///< byte offset
  std::uint32_t keep = ~0u;
  std::uint32_t flip = 0;
  std::uint32_t add = 0;
};

/// Predicate slots of a warp: P0..P6, PT, UP0..UP6, UPT, and one for discarded results.
inline constexpr int kUniformPredicates = 8;
inline constexpr int kDiscardedPredicate = 16;
inline constexpr int kPredicateSlots = 17;

struct PredicateSource {
  std::uint8_t slot = kPredicateTrue;
  LaneMask flip = 0;  ///< all ones for '!'
};

/// Instructions that the executor handles itself; everything else is Plain and runs its handler.
enum class OpKind : std::uint8_t {
  Plain,
  Memory,       ///< addresses, report, then the handler moves the data
  Copy,         ///< LDGSTS: two accesses
  TensorCopy,   ///< boxes and stretches between global and shared memory
  RemoteStore,  ///< STAS, REDAS: into shared memory of the cluster, completing bytes at a barrier there
  // What follows but Skip is control.
  Branch,
  BranchDivergent,
  BranchConverged,
  IndirectBranch,
  Call,
  Return,
  Exit,
  BarrierSet,
  BarrierSync,
  BarrierBreak,
  WarpSync,
  WarpSyncCollective,
  EndCollective,
  Yield,
  Sleep,
  BlockBarrier,
  PhaseBarrier,    ///< SYNCS: a barrier in shared memory
  WarpGroup,       ///< its four warps meet
  ClusterBarrier,  ///< UCGABAR: the blocks of a cluster meet; Op::variant is a ClusterAction
  Skip,            ///< counts, does nothing
  Refused,         ///< cannot be emulated: a warp that reaches it stops
};

/// Comparison as bits: less, equal, greater, unordered.
enum Compare : std::uint8_t { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

enum class BarrierAction : std::uint8_t { Sync, Arrive, Reduce };
enum class ClusterAction : std::uint8_t { Arrive, Wait };
enum class ReduceOperation : std::uint8_t { Popc, And, Or };

struct Op {
  Handler run = nullptr;
  OpKind kind = OpKind::Skip;
  std::uint8_t guard = kPredicateTrue;
  bool uniform = false;       ///< uniform datapath: writes whole rows
  bool value_needed = true;   ///< false in sliced emulation when no address, predicate or branch depends on it
  bool leaves_store = false;  ///< it would store to global memory, from which values are loaded that are needed
  LaneMask guard_flip = 0;

  Source a, b, c, d;
  std::uint32_t dst = 0;  ///< row; results of more than 32 bits continue in the following rows
  std::array<std::uint8_t, 2> pdst{kDiscardedPredicate, kDiscardedPredicate};
  std::array<PredicateSource, 3> p{};
  std::uint32_t immediate = 0;
  std::uint32_t target = 0;  ///< instruction index
  std::uint8_t variant = 0;  ///< the handler's own: rounding, comparison, ...
  std::uint8_t combine = 0;  ///< 0 and, 1 or, 2 xor, for comparisons with a predicate
  bool carry_out = false;

  // Memory.
  MemorySpace space = MemorySpace::None;
  MemoryKind memory = MemoryKind::None;
  std::uint8_t bytes = 0;  ///< per lane
  std::uint8_t scale = 1;
  bool wide_index = false;   ///< index is a 64-bit pair
  bool has_uniform = false;  ///< the uniform register in b is added
  bool wide_uniform = false;
  bool strong = false;       ///< a load that sees what other threads write
  bool compares = false;     ///< a compare-and-swap
  bool clusterwide = false;  ///< shared addresses may belong to other blocks of the cluster
  std::int64_t offset = 0;
  LaneMask lanes = ~0u;  ///< whose addresses count: LDSM .1 and .2 use the lowest 8 and 16
};

inline bool stores(const Op& op) {
  return op.memory == MemoryKind::Store || op.memory == MemoryKind::Reduction || op.memory == MemoryKind::Atomic;
}

/// An atomic in global memory whose result decides ways or addresses: of blocks that run side by side, the order in
/// which they come to it decides what each gets.
inline bool draws(const Op& op) {
  return op.memory == MemoryKind::Atomic && op.space != MemorySpace::Shared && op.value_needed;
}

/// Asks global memory for what another thread may have written: a load that sees it, or a compare-and-swap.
inline bool asks(const Op& op) {
  const bool load = op.memory == MemoryKind::Load && op.strong && op.value_needed;
  return (load && (op.space == MemorySpace::Global || op.space == MemorySpace::Generic)) || (draws(op) && op.compares);
}

/// Where blocks that run side by side may meet.
inline bool meets(const Op& op) { return draws(op) || asks(op); }

/// What cannot be executed stops the first warp that reaches it, or is counted and does nothing.
enum class UnknownInstruction : std::uint8_t { Reject, Ignore };

struct DecodedKernel {
  const Kernel* kernel = nullptr;
  std::vector<Op> ops;
  std::vector<Row> literals;
  std::uint32_t rows = 0;         ///< of a warp's register file, everything included
  std::uint32_t zero_row = 0;     ///< byte offset of rows that are always zero
  std::uint32_t discard_row = 0;  ///< byte offset of rows that nobody reads
  std::uint32_t uniform_row = 0;  ///< byte offset of UR0
  bool uses_clock = false;
  std::vector<std::string> warnings;
};

/// A constant bank's bytes as they are for one launch.
struct ConstantBanks {
  std::vector<ConstantBank> banks;
  /// Zero beyond the end of a bank.
  std::uint32_t word(int bank, std::uint32_t offset) const;
  const std::vector<std::uint8_t>* find(int bank) const;
};

/// Resolves operands against the constants of one launch. InputError lists instructions that make a launch impossible
/// to follow wherever they stand (textures); others that are not supported stop the warp that reaches them. Of sliced
/// kernels
/// (`needed` by instruction) only those whose results are needed have to be supported.
DecodedKernel decode_kernel(const Kernel& kernel, const ConstantBanks& constants, UnknownInstruction unknown,
                            const std::vector<std::uint8_t>* needed = nullptr);

}  // namespace forewarp::emulation
