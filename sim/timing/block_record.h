// What the warps of one block, or of its cluster, did for a while, and what was under way beside them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace forewarp {

enum class Stall : std::uint8_t;

/// Which block to watch, and for how long from its start on.
struct RecordRequest {
  static constexpr Cycle kCycles = 20'000, kMostCycles = 1'000'000;
  std::uint32_t block = 0;  ///< linear index; those of its cluster come with it
  Cycle cycles = kCycles;
};

/// A stretch in which a warp was in one state. Those of a warp follow one another without a gap.
struct WarpInterval {
  static constexpr std::uint32_t kNone = 0xffffffffu;
  Cycle from = 0, to = 0;
  std::uint32_t pc = 0;  ///< instruction that it issues (Stall::Selected; of several in a row the first) or is at
  Stall state{};
  std::uint32_t source = kNone;   ///< the instruction whose result it waits for, where a scoreboard holds it
  std::uint32_t barrier = kNone;  ///< in shared memory: offset; at Stall::Barrier the barrier's number
  std::uint32_t phase = 0;        ///< of a barrier in shared memory: so many must be over
};

/// The barrier of the cluster, in place of a number.
inline constexpr std::uint32_t kClusterBarrier = 0x100;

struct BlockRecord {
  static constexpr Cycle kOpen = ~Cycle{0};  ///< not over when the record ended

  struct Block {
    std::uint32_t linear = 0;
    std::uint16_t sm = 0;
    std::uint8_t rank = 0;  ///< in its cluster
    Cycle start = 0, end = kOpen;
  };
  struct WarpRow {
    std::uint16_t block = 0;  ///< index into blocks
    std::uint16_t warp = 0;   ///< of its block
    std::uint8_t sub_partition = 0;
    Cycle started = 0, end = kOpen;  ///< from its first state on; what lies before is the block's start
    std::vector<WarpInterval> intervals;
  };
  enum class CopyKind : std::uint8_t { In, Out, Reduction, Prefetch, ToBlocks };
  /// A bulk copy (UTMALDG, UBLKCP, ...).
  struct Copy {
    std::uint32_t row = 0;  ///< whose warp asks for it
    std::uint32_t pc = 0;
    CopyKind kind{};
    std::uint32_t barrier = 0, bytes = 0;  ///< what it completes; of what leaves shared memory there is no barrier
    std::uint16_t blocks = 0;              ///< ranks that get it; none: the block itself
    Cycle issued = 0, done = kOpen;
  };
  /// Products of a warpgroup that end together, as one of its warps and the sub-partition under it see them.
  struct Products {
    std::uint32_t row = 0;
    std::uint32_t pc = 0;  ///< of the first
    std::uint32_t count = 0;
    Cycle issued = 0, started = kOpen, done = kOpen;  ///< started: on the tensor pipe
  };
  /// A warp asks whether a phase is over, and goes on when it is.
  struct Await {
    std::uint32_t row = 0, pc = 0, barrier = 0, phase = 0;
    Cycle asked = 0, over = kOpen;  ///< over: not after `asked` if it was over by then
  };
  /// The end of a phase of a barrier in shared memory.
  struct PhaseEnd {
    std::uint16_t block = 0;  ///< index into blocks
    std::uint32_t barrier = 0, phase = 0;
    Cycle at = 0;
  };
  /// The tensor pipe of a sub-partition works for one of the blocks.
  struct Busy {
    std::uint16_t block = 0;
    std::uint8_t sub_partition = 0;
    Cycle from = 0, to = 0;
  };
  /// At `at` the simulation left out so many cycles.
  struct LeftOut {
    Cycle at = 0, cycles = 0;
  };

  RecordRequest request;
  // Cycles are the simulation's own; what was left out before or between them is not in them.
  Cycle start = 0;      ///< of the first block
  Cycle end = 0;        ///< of the record
  Cycle elapsed = 0;    ///< of the launch, at `start`, with what had been left out by then
  bool filled = false;  ///< it ended before its time since it held as many stretches as it may
  std::vector<Block> blocks;
  std::vector<WarpRow> warps;
  std::vector<Copy> copies;
  std::vector<Products> products;
  std::vector<Await> awaits;
  std::vector<PhaseEnd> phases;
  std::vector<Busy> busy;  ///< ascending for each sub-partition
  std::vector<LeftOut> left_out;
};

}  // namespace forewarp
