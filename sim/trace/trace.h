// The dynamic trace of one launch, as the timing model replays it.
//
// Blocks that behave alike share one BlockClass: the same instructions executed with the same lanes, and memory
// accesses that differ only by a shift that is linear in the block index and a multiple of the line size. A class is
// emulated once; a grid of a million blocks has a handful of classes. Data-dependent kernels fall back to one class
// per block. Nothing here refers to strings or to the emulator.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "program/program.h"

namespace forewarp {

/// Instructions first, first + 1, ..., first + count - 1 executed one after another by a warp.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const Run&) const = default;
};

/// The lanes of one memory instruction relative to the access's base. Interned: equal patterns are stored once.
struct AccessPattern {
  LaneMask lanes = 0;   ///< lanes that access memory (active and predicated on)
  MemorySpace space{};  ///< Global, Shared or Local (Generic is resolved)
  MemoryKind kind{};
  std::uint8_t bytes = 0;         ///< per lane
  std::uint8_t base_offset = 0;   ///< base modulo kLineBytes, part of the pattern's identity
  std::uint32_t fetch_bytes = 0;  ///< what L2 fetches at least where it misses, aligned (LTC128B); 0: as usual
  std::array<std::int32_t, kWarpLanes> offsets{};  ///< bytes from the access's base; 0 for lanes not in the mask
  bool operator==(const AccessPattern&) const = default;
};

/// Boxes that a unit beside the warps copies (UTMALDG, UBLKCP, ...) are patterns too, of no bytes a lane: of kind
/// AsyncCopy into shared memory, Store or Reduction out of it, Load to L2 alone. The lanes stand for dimensions,
/// innermost first: offsets[d] is the extent, in bytes for the innermost and in rows, planes, ... for the others,
/// offsets[kBoxPitch + d] the bytes from one to the next.
inline constexpr std::size_t kBoxPitch = 8;
inline bool is_box(const AccessPattern& p) {
  return p.kind != MemoryKind::None && p.bytes == 0 && p.lanes != 0 && p.space == MemorySpace::Global;
}

/// One executed memory instruction. Address of lane l in block b:
///   base + pattern.offsets[l] + slope . (b - class.representative)
/// The base is the address of the lowest lane in the mask (0 when there is none). An asynchronous copy (LDGSTS) leaves
/// two accesses in a row: the global one that is read, then the shared one that is written.
struct Access {
  std::uint64_t base = 0;
  std::uint32_t pattern = 0;  ///< index into KernelTrace::patterns
  std::uint32_t slope = 0;    ///< index into KernelTrace::slopes; 0 = does not move with the block
  bool operator==(const Access&) const = default;
};

/// A warp's part in a barrier of its block: what the code names, or its registers do. The record of a BAR holds it as
/// its base, and the lanes that arrive in its pattern.
struct BarrierArrival {
  std::uint8_t id = 0;
  std::uint16_t threads = 0;  ///< that the barrier is for; 0: all of the block
  bool complete = false;      ///< all living lanes of the warp have arrived now

  std::uint64_t packed() const { return id | std::uint64_t{threads} << 4 | std::uint64_t{complete ? 1u : 0u} << 16; }
  static BarrierArrival of(const Access& record) {
    return {static_cast<std::uint8_t>(record.base & 15), static_cast<std::uint16_t>(record.base >> 4 & 0xfff),
            (record.base >> 16 & 1) != 0};
  }
};

/// A shared address in a trace is an offset. In memory of another block of the cluster it is that block's rank and one
/// more, from this bit on, and the offset there.
inline constexpr int kRemoteShift = 24;
inline std::uint64_t remote_address(std::uint32_t rank, std::uint64_t offset) {
  return std::uint64_t{rank + 1} << kRemoteShift | offset;
}
/// The rank of another block that a shared address belongs to, or -1 for the block's own.
inline int remote_rank(std::uint64_t address) { return static_cast<int>(address >> kRemoteShift) - 1; }

/// Blocks of a cluster, a bit for each rank, that a copy or an arrival goes to. Their record's pattern holds them as
/// its first offset; none: the block that the record is of.
using BlockMask = std::uint16_t;
inline BlockMask blocks_of(const AccessPattern& p) { return static_cast<BlockMask>(p.offsets[0]); }

/// What an instruction does to a barrier in shared memory (mbarrier), or waits for there. The record of a SYNCS holds
/// it as its base, and the lanes that take part in its pattern.
struct PhaseRecord {
  enum class Action : std::uint8_t { None, Init, Arrive, Await, Check /* without waiting */, Invalidate };
  Action action = Action::None;
  bool leaves = false;         ///< Arrive: and is not expected in later phases
  std::uint32_t barrier = 0;   ///< offset in shared memory, a multiple of 8
  std::uint32_t arrivals = 0;  ///< Init: in each phase; Arrive: now
  std::int32_t bytes = 0;      ///< Arrive: announced, or completed where negative
  std::uint32_t phase = 0;     ///< Await, Check: so many phases must be over
  BlockMask blocks = 0;        ///< Arrive: at the barrier there in each of these; not packed (blocks_of)

  std::uint64_t packed() const {
    const auto most =
        static_cast<std::uint64_t>(action) | std::uint64_t{leaves} << 3 | std::uint64_t{barrier / 8 & 0x7fff} << 4;
    if (action == Action::Await || action == Action::Check) return most | std::uint64_t{phase} << 19;
    return most | std::uint64_t{arrivals & 0xfffff} << 19 |
           std::uint64_t{static_cast<std::uint32_t>(bytes) & 0x3fffff} << 39;
  }
  static PhaseRecord of(std::uint64_t packed) {
    PhaseRecord r;
    r.action = static_cast<Action>(packed & 7);
    r.leaves = (packed >> 3 & 1) != 0;
    r.barrier = static_cast<std::uint32_t>(packed >> 4 & 0x7fff) * 8;
    if (r.action == Action::Await || r.action == Action::Check) {
      r.phase = static_cast<std::uint32_t>(packed >> 19);
    } else {
      r.arrivals = static_cast<std::uint32_t>(packed >> 19 & 0xfffff);
      r.bytes = static_cast<std::int32_t>(packed >> 39 << 10) >> 10;
    }
    return r;
  }
  bool operator==(const PhaseRecord&) const = default;
};

/// The other side of such a copy, and what its bytes complete: the second record of a box holds it as its base.
struct BoxTarget {
  std::uint32_t shared = 0;   ///< offset
  std::uint32_t barrier = 0;  ///< offset, a multiple of 8; of copies into shared memory
  std::uint32_t bytes = 0;    ///< of the whole box, those beyond the tensor too
  BlockMask blocks = 0;       ///< to each of which it goes; not packed (blocks_of)

  std::uint64_t packed() const {
    return std::uint64_t{shared & 0x3ffff} | std::uint64_t{barrier / 8 & 0x7fff} << 18 |
           std::uint64_t{bytes & 0x3ffff} << 33;
  }
  static BoxTarget of(const Access& record) {
    return {static_cast<std::uint32_t>(record.base & 0x3ffff),
            static_cast<std::uint32_t>(record.base >> 18 & 0x7fff) * 8,
            static_cast<std::uint32_t>(record.base >> 33 & 0x3ffff)};
  }
};

/// How many quotients of the block index a launch may have as further coordinates.
inline constexpr int kMostQuotients = 8;

/// Where a block lies: its index, and the launch's quotients of it (KernelTrace::quotients).
struct BlockPlace {
  std::int64_t x = 0, y = 0, z = 0;
  std::array<std::int64_t, kMostQuotients> quotients{};
  bool operator==(const BlockPlace&) const = default;
};

/// From one block to another, in blocks and steps of the quotients.
struct BlockDistance : BlockPlace {
  BlockDistance(const BlockPlace& from, const BlockPlace& to)
      : BlockPlace{to.x - from.x, to.y - from.y, to.z - from.z, {}} {
    for (std::size_t i = 0; i < quotients.size(); ++i) quotients[i] = to.quotients[i] - from.quotients[i];
  }
};

/// Per unit of each coordinate of a block. Of an access: bytes by which it moves, multiples of kLineBytes within a
/// class.
struct BlockSlope {
  std::int64_t x = 0, y = 0, z = 0;
  std::array<std::int64_t, kMostQuotients> quotients{};

  /// Modulo 2^64, as addresses are.
  std::int64_t over(const BlockDistance& d) const { return static_cast<std::int64_t>(exactly_over(d)); }
  __extension__ using Wide = __int128;
  Wide exactly_over(const BlockPlace& d) const {
    Wide sum = Wide{x} * d.x + Wide{y} * d.y + Wide{z} * d.z;
    for (std::size_t i = 0; i < quotients.size(); ++i)
      if (quotients[i] != 0) sum += Wide{quotients[i]} * d.quotients[i];
    return sum;
  }
  bool operator==(const BlockSlope&) const = default;
};

/// What a block's linear index, x fastest, gains per unit of each coordinate.
inline BlockSlope linear_slope(const Dim3& grid) { return {1, grid.x, std::int64_t{grid.x} * grid.y, {}}; }

/// floor((numerator . place + offset) / divisor): a coordinate that index arithmetic of the kernel makes of others.
struct BlockQuotient {
  BlockSlope numerator;  ///< of the block index and of quotients before this one
  std::int64_t offset = 0;
  std::int64_t divisor = 1;  ///< positive
  std::int64_t at(const BlockPlace& place) const;
  bool operator==(const BlockQuotient&) const = default;
};

/// A half-space or residue condition on d = b - representative: lo <= c . d <= hi, and (c . d) mod modulus == 0.
struct BlockCondition {
  BlockSlope coefficient;
  std::int64_t low = INT64_MIN, high = INT64_MAX;
  std::int64_t modulus = 1;
  bool operator==(const BlockCondition&) const = default;
};

/// The sequence of instructions one warp executes. Shared by all warps that take the same way.
struct WarpPath {
  std::vector<Run> runs;
  std::uint64_t instructions = 0;  ///< sum of the runs' counts
  bool operator==(const WarpPath&) const = default;
};

struct WarpTrace {
  std::uint32_t path = 0;        ///< index into BlockClass::paths
  std::vector<Access> accesses;  ///< in execution order, the records of each executed instruction that has some
                                 ///< (events.h): accesses and barriers, also when no lane takes part (then lanes == 0)
  bool operator==(const WarpTrace&) const = default;
};

/// Exact totals of one instruction over the warps of one block.
struct InstructionCount {
  std::uint64_t executed = 0;         ///< warp instructions
  std::uint64_t active_lanes = 0;     ///< threads active, before the guard
  std::uint64_t enabled_lanes = 0;    ///< threads active whose guard was true
  std::uint64_t executed_on = 0;      ///< warp instructions with at least one thread enabled
  std::uint64_t divergent = 0;        ///< branches: lanes went both ways
  std::uint64_t held_lanes = 0;       ///< branches: enabled lanes that a predicate operand kept (BRA P1, target)
  std::uint64_t requests = 0;         ///< global/local memory: executions with at least one lane enabled
  std::uint64_t shared_requests = 0;  ///< shared memory: executions with at least one lane enabled
  std::uint64_t sectors = 0;        ///< global/local memory: distinct sectors per request, summed (see CoalescedCounts)
  std::uint64_t tag_sectors = 0;    ///< sectors as the tag stage counts them: an atomic's once for each pass
  std::uint64_t ideal_sectors = 0;  ///< sectors if the lanes lay side by side: lanes x bytes / 32
  std::uint64_t lines = 0;          ///< distinct 128-byte lines (L1 tags) per request, summed
  std::uint64_t wavefronts = 0;     ///< shared memory: passes through the data stage
  std::uint64_t ideal_wavefronts = 0;  ///< passes if the lanes lay side by side: lanes x bytes / 128
  std::uint64_t zero_wavefronts = 0;   ///< asynchronous copies: passes in which lanes that read nothing write zeros
  std::uint64_t bank_conflicts = 0;    ///< shared memory: passes beyond those that the access width alone asks for
  std::uint64_t bytes = 0;             ///< memory: distinct bytes per request, summed
  std::uint64_t addresses = 0;         ///< atomics and reductions: distinct addresses per request, summed

  /// Adds `other` `times` over.
  void add(const InstructionCount& other, std::uint64_t times = 1);
  bool operator==(const InstructionCount&) const = default;
};

/// Counts by instruction. Copies share them until one is edited, and classes of a launch share equal ones
/// (TracePools::share): many classes differ in their accesses alone.
class SharedCounts {
 public:
  SharedCounts() = default;
  explicit SharedCounts(std::vector<InstructionCount> counts)
      : held_(std::make_shared<std::vector<InstructionCount>>(std::move(counts))) {}

  std::size_t size() const { return held_ ? held_->size() : 0; }
  const InstructionCount& operator[](std::size_t i) const { return (*held_)[i]; }
  auto begin() const { return std::span<const InstructionCount>(held_ ? held_->data() : nullptr, size()).begin(); }
  auto end() const { return std::span<const InstructionCount>(held_ ? held_->data() : nullptr, size()).end(); }
  std::vector<InstructionCount>& edit();
  bool shares(const SharedCounts& other) const { return held_ == other.held_; }
  bool operator==(const SharedCounts& other) const {
    return shares(other) || std::equal(begin(), end(), other.begin(), other.end());
  }

 private:
  std::shared_ptr<std::vector<InstructionCount>> held_;
};

struct BlockClass {
  Dim3 representative{0, 0, 0};            ///< block index that was emulated
  bool single = false;                     ///< holds the representative alone (data-dependent)
  std::vector<BlockCondition> conditions;  ///< all must hold for a block to belong here
  std::uint64_t population = 0;            ///< blocks of the grid that belong here
  std::vector<WarpPath> paths;
  std::vector<WarpTrace> warps;  ///< one per warp of the block
  SharedCounts counts;           ///< by instruction index, for one block

  /// Whether a block that lies so far from the representative belongs here.
  bool contains(const BlockDistance& distance) const;
  bool operator==(const BlockClass&) const = default;
};

/// Everything about a launch that does not depend on a block.
struct LaunchInfo {
  std::string case_id;
  int launch_index = 0;
  Dim3 grid, block, cluster{0, 0, 0};
  std::uint32_t dynamic_shared_bytes = 0;
  // Where data decides the way of a kernel, a sample of its blocks is followed and the others are taken to be like
  // them.
  std::uint64_t sampled_blocks = 0;   ///< followed
  std::uint64_t inferred_blocks = 0;  ///< taken to be like them
  bool inputs_incomplete = false;     ///< earlier launches were too long to be run for the values they leave
  bool samples_differ = false;        ///< the followed ones did not all go the same way
  // Blocks that draw their work from a counter in global memory, or wait for one another.
  std::uint64_t side_by_side = 0;  ///< were followed so many at a time, the one with the fewest instructions first
  bool draws_unfollowed = false;   ///< or one after another, since that took too long: the first draws all there is
  bool blocks_wait = false;        ///< side by side, since they wait for what others write
  std::uint64_t traced_ms = 0;     ///< a processor was at it, at nominal speed (base/effort.h)
  double traced_seconds() const { return static_cast<double>(traced_ms) / 1000; }
  /// Totals of the grid by instruction, where the blocks that samples stand for were counted one by one; empty: what
  /// the classes add up to.
  std::vector<InstructionCount> counted;
  bool operator==(const LaunchInfo&) const = default;
};

struct KernelTrace {
  LaunchInfo launch;
  std::shared_ptr<const Kernel> kernel;
  int sm = 0;
  std::vector<AccessPattern> patterns;
  std::vector<BlockSlope> slopes;        ///< slopes[0] is zero
  std::vector<BlockQuotient> quotients;  ///< at most kMostQuotients, each of those before it
  std::vector<BlockClass> classes;       ///< partition of the grid

  /// Class of a block, by linear index (x fastest): an index into classes. Scans the classes; who asks for many blocks
  /// builds a ClassIndex (trace/class_index.h).
  std::uint32_t class_of(std::uint64_t linear_block) const;
  Dim3 block_index(std::uint64_t linear_block) const;
  BlockPlace place(const Dim3& block) const;
  BlockDistance distance(const Dim3& from, const Dim3& to) const { return {place(from), place(to)}; }

  /// Grid totals by instruction: LaunchInfo::counted, or the sum over classes of counts x population. Exact unless
  /// samples differ and nothing was counted.
  std::vector<InstructionCount> totals() const;
};

}  // namespace forewarp
