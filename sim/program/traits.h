// What is known of an opcode apart from its operands: one row of opcodes.def, with the unit it names.
#pragma once

#include <span>

#include "program/instruction.h"

namespace forewarp {

/// Which of the written operands are results.
enum class Destinations : std::uint8_t {
  Zero,
  One,
  Two,
  Carry,             ///< a register and the predicates right after it (IADD3 R0, P0, P1, ...)
  LeadingPredicate,  ///< any predicates in front and one register (LOP3.LUT P0, R0, ... or LOP3.LUT R0, ...)
  AllButLast,        ///< VOTE.ANY R0, PT, P1
};

enum class Latency : std::uint8_t { Fixed, Variable, Variable80 /* through a scoreboard on sm_80 alone */ };

/// The way through the timing model. Where nothing else is said, an instruction holds its pipe and completes after the
/// time that the compiler's stall counts cover, or through a scoreboard after the named latency.
enum class Timing : std::uint8_t {
  Pipe,
  Double,           ///< latency of FP64
  Matrix,           ///< latency of the tensor pipe
  Transpose,        ///< MOVM
  Vote,             ///< latency of votes
  SpecialFunction,  ///< behind the sub-partition's memory-input queue, as the next four
  Conversion,
  BitCount,
  Match,
  Redux,
  Memory,         ///< the memory pipe: global, local or shared
  Shuffle,        ///< the memory pipe, but no address
  ConstantLoad,   ///< by way of the SM's ADU
  Index,          ///< what is the same for all lanes, the same way
  LaneAttribute,  ///< S2R: the load/store unit delivers what differs between lanes, the ADU the rest
  Barrier,
  ClusterBarrier,  ///< of the blocks of a cluster
  Fence,
  Phase,      ///< something about a barrier in shared memory
  Box,        ///< a copy by the unit for boxes
  BoxCommit,  ///< closes a group of its copies out of shared memory
  Group,      ///< of a warpgroup: its warps meet, or wait for its products
  Product,    ///< of a warpgroup: beside its warps
  Depbar,
  Commit,  ///< closes a group of asynchronous copies
  Exit,
};

/// Whether it may issue while its warp waits at a barrier of its block.
enum class AtBarrier : std::uint8_t { Passes, Waits };

/// Where control goes.
enum class Flow : std::uint8_t {
  Next,      ///< on, without touching the state of convergence
  Jump,      ///< to its target
  Indirect,  ///< to a place in a register
  Call,
  Return,
  End,          ///< of its lanes
  Region,       ///< on; its target is where lanes meet again (BSSY)
  Converge,     ///< on, once others are there; may switch to other lanes (BSYNC, BREAK, YIELD)
  WarpSync,     ///< the same; .COLLECTIVE names where its section ends
  BarrierMove,  ///< on; reads or writes a convergence barrier (BMOV)
  State,        ///< on; waits or keeps state that the slice must not lose
};

/// What a result depends on, and what is needed in any case, when a program is sliced to what decides its ways.
enum class Slice : std::uint8_t {
  Lane,            ///< a lane's result on that lane alone
  Warp,            ///< on other lanes too
  BlockReduction,  ///< BAR.RED: the reduced predicate goes to who reads the result
  BlockResult,     ///< B2R.RESULT reads it
  BarrierObject,   ///< a barrier in memory: steers warps
  CopyIn,          ///< global to shared memory
  CopyOut,         ///< shared to global memory
  CopyStated,      ///< as its first modifier says
  Prefetch,        ///< global memory to L2
};

/// How a value that is affine in the block index passes through (emulation/classes).
enum class Symbolic : std::uint8_t {
  Opaque,
  Sum,
  Product,
  Lea,
  Shift,
  Logic,
  Permute,
  Select,
  Compare,
  MinMax,
  AddMinMax,
  Absolute,
  Shuffle,
  ToUniform,
  SpecialRegister,
};

/// Registers that an operand covers.
enum class Width : std::uint8_t {
  Word,
  Pair,
  Stated,         ///< a pair with .64
  Data,           ///< of the bytes a lane moves
  Product,        ///< .WIDE and .HI take and give pairs
  Conversion,     ///< by its types
  Clock,          ///< a pair unless .32
  Match,          ///< .U64 sources are pairs
  MatrixRows,     ///< LDSM, STSM: by the number of matrices
  HalfMatrix,     ///< fragments of 16-bit elements (TF32: 32)
  IntegerMatrix,  ///< of 8-bit elements (.U4, .S4: 4)
  ByteMatrix,     ///< of 8-bit floats
  BitMatrix,      ///< of bits
  DoubleMatrix,   ///< of doubles
  BarrierObject,  ///< 8 bytes in shared memory; arrivals return its state
  Texture,        ///< four results, pairs of coordinates
  TensorCopy,     ///< coordinates by the dimensions
  BulkCopy,
};

/// The sm__inst_executed_pipe_* counter of an instruction.
enum class Counted : std::uint8_t {
  Own,
  Uncounted,
  Tex,
  Adu,
  LaneAttribute /* lsu or adu, as Timing::LaneAttribute */
};

/// Where an opcode's timing comes from.
enum class Timed : std::uint8_t { Own, Assumed, No };

struct UnitTraits {
  Pipe pipe80, pipe90;
  Latency latency;
  Timing timing;
  AtBarrier at_barrier;
};

struct OpcodeTraits {
  std::array<std::uint16_t, 4> codes;
  std::uint8_t code_count;
  UnitTraits unit;
  OperationClass operation;
  Destinations destinations;
  MemorySpace space;
  MemoryKind memory;
  Flow flow;
  Slice slice;
  Symbolic symbolic;
  Width width;
  Counted counted;
  Timed timed;
};

const OpcodeTraits& traits(Opcode);

/// HMMA, IGMMA and their like: an operand is a matrix that a warp or more of them holds together.
bool multiplies_matrices(Opcode);
/// May leave the straight line of a warp's instructions.
bool leaves_line(Flow);
/// Branches, calls, returns, exits and whatever keeps the state of convergence.
bool is_control(Opcode);
/// Names a place in the code as an operand.
bool takes_target(const Instruction&);
/// An asynchronous copy from shared to global memory. UBLKCP.G.S says so in the order of its modifiers.
bool copies_outward(const Instruction&);
/// It may wait for the end of a phase of a barrier in shared memory.
bool waits_for_phase(const Instruction&);
/// BRA, BRX and their like, not calls.
bool is_branch(Opcode);

/// The opcode that bits 0..11 of a code word stand for; `written` if they allow it or are not known.
Opcode native_opcode(std::uint16_t encoding, Opcode written);

/// Fills native, pipe, operation, space, memory, access_bytes, variable_latency and destination_count from opcode,
/// modifiers, encoding and operands.
void classify(Instruction&, int sm);

}  // namespace forewarp
