// Builds a BlockClass from what the warps of one block execute. The emulator calls it for every warp instruction.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "trace/coalesce.h"
#include "trace/intern.h"
#include "trace/trace.h"

namespace forewarp {

/// Where byte `offset` of a thread's local frame lies once lanes are interleaved, as the hardware lays local memory
/// out: the same 32-bit word of the 32 lanes of a warp fills one line. `warp_base` is a line-aligned start of the
/// warp's frames. Accesses of local memory are given with such addresses (of their first byte).
inline std::uint64_t interleaved_local_address(std::uint64_t warp_base, int lane, std::uint64_t offset) {
  return warp_base + (offset / 4) * kLineBytes + static_cast<std::uint64_t>(lane) * 4 + offset % 4;
}

/// One block. Nothing shared is touched before finish(), so builders may work in parallel if the calls of finish() are
/// serialised (in block order, for traces that do not depend on timing).
class BlockTraceBuilder {
 public:
  /// `kernel` and `pools` must outlive the builder.
  BlockTraceBuilder(const Kernel& kernel, int warps, TracePools& pools);

  /// The trace of a block that takes more bytes is given up with an InputError; 0: no limit.
  void limit_bytes(std::uint64_t bytes) { limit_ = bytes == 0 ? ~std::uint64_t{0} : bytes; }
  /// Only counts matter: runs and accesses are not kept. For next_block() and add_counts().
  void count_only() { keeps_ = false; }

  /// Optional: the expected size of each warp's trace, to avoid reallocations.
  void reserve(std::size_t runs_per_warp, std::size_t accesses_per_warp);

  /// A warp executes instruction `pc`. `active`: lanes here; `enabled`: those of them whose guard is true.
  void execute(int warp, std::uint32_t pc, LaneMask active, LaneMask enabled) {
    WarpState& state = warps_[static_cast<std::size_t>(warp)];
    if (pc == state.next) [[likely]] {
      ++state.next;
    } else {
      start_run(state, pc);
    }
    InstructionCount& count = counts_[pc];
    ++count.executed;
    count.active_lanes += static_cast<unsigned>(std::popcount(active));
    count.enabled_lanes += static_cast<unsigned>(std::popcount(enabled));
    count.executed_on += enabled != 0;
  }

  /// The memory access of the instruction just executed, once for each executed Lsu memory instruction, also when no
  /// lane is enabled; twice for an asynchronous copy (the global read, then the shared write). `lane_addresses` holds
  /// 32 byte addresses, those of disabled lanes are ignored. `slope` says how the addresses move with the block
  /// index; where it is not known, the class stays with this one block.
  void access(int warp, std::uint32_t pc, LaneMask enabled, const std::uint64_t* lane_addresses, MemorySpace space,
              BlockSlope slope, bool slope_known);

  /// The BAR just executed, also when no lane is enabled.
  void arrive(int warp, LaneMask enabled, const BarrierArrival& arrival);
  /// Before the accesses of the copy just executed, of whose lanes that write to shared memory a part reads nothing and
  /// writes zeros. These go through the banks by themselves; Nsight Compute counts the wavefronts of the copy as if all
  /// read (kernels/micro copy_parts).
  void fill(std::uint32_t pc, LaneMask writes, LaneMask reads, const std::uint64_t* lane_addresses);

  /// The copy by a unit beside the warps just executed: a box (is_box) or, with no lanes, nothing of the tensor.
  void copy(int warp, std::uint32_t pc, const AccessPattern& box, std::uint64_t base, const BlockSlope& slope,
            const BoxTarget& target);
  /// The SYNCS just executed, the same.
  void phase(int warp, LaneMask enabled, const PhaseRecord& record);

  /// The branch just executed split the warp.
  void diverge(int warp, std::uint32_t pc) {
    (void)warp;  // the paths already show which warp
    ++counts_[pc].divergent;
  }

  /// A predicate operand of the branch just executed kept enabled lanes from it.
  void hold(std::uint32_t pc, LaneMask lanes) { counts_[pc].held_lanes += static_cast<unsigned>(std::popcount(lanes)); }

  /// Hands over the class: paths, warps, counts, `single`. The caller adds representative, conditions and population.
  /// The builder is empty afterwards.
  BlockClass finish();

  /// Instead of finish(), where only counts matter: the next block's are added to those so far. What was learnt of
  /// patterns is kept for it. A builder serves either this or finish().
  void next_block();
  /// Adds the counts of all blocks so far to `totals`, and begins anew.
  void add_counts(std::vector<InstructionCount>& totals);

 private:
  struct WarpState {
    std::uint32_t next = kNoRun;   ///< pc that would extend the current run
    std::uint32_t first = kNoRun;  ///< where the current run started
    std::vector<Run> runs;
    std::vector<Access> accesses;
  };
  static constexpr std::uint32_t kNoRun = 0xffffffffu;
  static constexpr std::size_t kMostPatterns = 1 << 14;

  /// The patterns an instruction used last, by the base's place in its line: walking through memory comes back to the
  /// same few patterns.
  static constexpr std::size_t kRecentPatterns = kLineBytes / 4;
  struct Recent {
    std::array<std::uint32_t, kRecentPatterns> pattern{};  ///< index + 1, 0 = none
    std::uint32_t slope = 0;
  };

  void start_run(WarpState& state, std::uint32_t pc);
  void add_record(int warp, LaneMask enabled, std::uint64_t packed, BlockMask blocks = 0);
  void take_bytes(std::uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ > limit_) fail_size();
  }
  [[noreturn]] void fail_size() const;
  AccessPattern make_pattern(const Instruction& instruction, std::uint32_t pc, LaneMask enabled,
                             const std::uint64_t* lane_addresses, MemorySpace space) const;
  std::uint32_t find_pattern(Recent& recent, const AccessPattern& pattern);
  std::uint32_t find_slope(Recent& recent, const BlockSlope& slope);
  void count_access(const Instruction& instruction, InstructionCount& count, const AccessPattern& pattern,
                    const CoalescedCounts& coalesced);

  const Kernel& kernel_;
  TracePools& pools_;
  std::vector<WarpState> warps_;
  std::vector<InstructionCount> counts_;
  std::vector<std::uint32_t> recent_of_;  ///< by instruction: index + 1 into recent_, 0 = not used yet
  std::vector<Recent> recent_;
  // Numbered within the block; finish() renumbers into the pools.
  std::vector<AccessPattern> patterns_;
  std::vector<CoalescedCounts> coalesced_;  ///< parallel to patterns_
  std::vector<BlockSlope> slopes_;
  PatternInterner interner_;
  std::uint64_t bytes_ = 0, limit_ = ~std::uint64_t{0};  ///< of this block's runs and accesses
  std::uint16_t copy_requests_ = 0;                      ///< what the last asynchronous copy reads
  LaneMask zeros_ = 0;                                   ///< its lanes that read nothing
  std::uint16_t filled_requests_ = 0;                    ///< what it would read if no lane wrote zeros
  bool keeps_ = true;
  bool single_ = false;
};

}  // namespace forewarp
