// One streaming multiprocessor: resident blocks, four sub-partitions that issue one instruction per cycle each, the
// instruction caches and the memory pipe. Ticked only in cycles in which something can happen.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "hardware/gpu_model.h"
#include "timing/result.h"
#include "timing/sm/block_recorder.h"
#include "timing/sm/block_state.h"
#include "timing/sm/boxes_under_way.h"
#include "timing/sm/branch_turns.h"
#include "timing/sm/cluster_network.h"
#include "timing/sm/copy_groups.h"
#include "timing/sm/instruction_cache.h"
#include "timing/sm/line_feed.h"
#include "timing/sm/memory_pipe.h"
#include "timing/sm/phase_barriers.h"
#include "timing/sm/release_times.h"
#include "timing/sm/timed_program.h"
#include "timing/sm/warp.h"
#include "trace/class_index.h"

namespace forewarp {

/// What all SMs of a launch share, read-only.
struct LaunchContext {
  const GpuModel& gpu;
  const KernelTrace& trace;
  const TimedProgram& program;
  const CoalescedPatterns& patterns;
  std::span<const PatternTiming> pattern_timing;
  const ClassIndex& classes;
  int blocks_per_sm = 0;
  int warps_per_block = 0;
  std::uint32_t l1_bytes = 0;
  BlockRecorder* recorder = nullptr;  ///< watches a block, or nobody does
};

/// A block's place in its cluster.
struct ClusterSeat {
  std::uint64_t cluster = 0;
  std::uint32_t rank = 0, blocks = 0;  ///< no blocks: the launch has no clusters
  /// Those of the cluster among `named`.
  BlockMask among(BlockMask named) const { return static_cast<BlockMask>(named & ((1u << blocks) - 1)); }
};

/// A block that has left its SM.
struct FinishedBlock {
  std::uint32_t block = 0;
  Cycle start = 0, end = 0;
};

/// A block on an SM. The spans hold until a block starts or ends there.
struct ResidentBlock {
  std::uint32_t linear = 0;
  std::uint16_t slot = 0;
  std::span<const std::uint16_t> warps;
  std::span<const std::int64_t> shifts;  ///< lines by which each slope moves its accesses
  std::uint64_t cluster = 0;             ///< of a launch with clusters; else the block is one by itself
};

class Sm {
 public:
  Sm(const LaunchContext&, std::uint16_t id);

  /// Warm instruction caches: the lines of code that an earlier run left there.
  void preload_code(std::span<const std::uint32_t> lines) { fetch_.preload(lines); }

  bool has_room() const { return resident_ < context_.blocks_per_sm; }
  int resident() const { return resident_; }
  /// What joins it to the other SMs of its GPC; without it there are no clusters.
  void join(ClusterNetwork& network) { network_ = &network; }
  /// `from`: where it stands; none: at its start.
  void start_block(std::uint32_t linear_block, Cycle now, const ClusterSeat& seat = {},
                   const BlockState* from = nullptr);

  /// Does everything due at `now`; appends blocks that end. Returns the next cycle with work. `stalls`: by instruction,
  /// shared by all SMs that one thread runs, which execute the same code at nearly the same time: one table stays in
  /// the host's caches where one per SM would not.
  Cycle tick(Cycle now, MemorySystem&, SharedInstructionCache&, std::vector<StallCycles>& stalls,
             std::vector<FinishedBlock>&);
  void reply(const MemoryReply&, Cycle now, MemorySystem&);
  /// From another SM, or from the cluster's barrier, for a block here.
  void receive(const ClusterNetwork::Message&, Cycle now);
  /// Issued memory instructions proceed, warps do not. Returns when there is more to do.
  Cycle drain(Cycle now, MemorySystem&);
  const MemoryPipe& memory_pipe() const { return pipe_; }

  bool idle() const { return resident_ == 0 && pipe_.idle(); }
  /// Adds this SM's events up to `now` to the launch's totals.
  void collect(Cycle now, TimingCounters&) const;
  std::uint64_t issued() const { return issued_; }

  // For those who look at it from outside, between ticks: where warps are, and what L1 holds.
  auto residents() const {
    return std::views::iota(std::size_t{0}, blocks_.size()) |
           std::views::filter([this](std::size_t slot) { return blocks_[slot].used; }) |
           std::views::transform([this](std::size_t slot) { return resident_in(static_cast<std::uint16_t>(slot)); });
  }
  ResidentBlock resident_in(std::uint16_t slot) const;
  const Warp& warp(std::uint16_t index) const { return warps_[index]; }
  /// L1 holds sectors of a line as if they had been accessed. `whole`: all bytes of them.
  void touch_l1(std::uint64_t line, std::uint8_t sectors, RequestKind kind, bool whole) {
    pipe_.touch(line, sectors, kind, whole);
  }
  int live_warps() const;
  /// Tells the recorder what the warps that it watches have waited for up to `now`.
  void close_record(Cycle now);
  /// For a deadlock report: what each warp waits for.
  std::string describe_wait(Cycle now) const;

 private:
  static constexpr int kQueueMost = 64;  ///< most places of its queue to the shared units
  static constexpr std::uint16_t kNoWarp = 0xFFFF;

  struct SubPartition {
    alignas(64) std::array<Cycle, kWarpSlots> ready{};  ///< by slot; kNever: empty, or time unknown
    std::array<std::uint16_t, kWarpSlots> warp{};       ///< index into warps_
    std::array<std::uint64_t, kWarpSlots> order{};      ///< lowest issues first: issue_order()
    std::array<Cycle, static_cast<std::size_t>(Pipe::Count)> pipe_free{};
    std::uint16_t queued_last = kNoWarp;  ///< the warp that was last to send to a pipe behind its queue
    GroupProducts products;
    Cycle operands_free = 0;                ///< when those of the next product of matrices can come
    std::array<Cycle, 2> fma_half_free{};   ///< heavy, lite, where the FMA pipe has two halves
    Cycle dispatch_free = 0;                ///< an earlier instruction holds dispatch until then
    Cycle held = 0;                         ///< cycles in which dispatch was held
    Cycle booked_from = 0;                  ///< issue cycle of the last instruction that read registers
    std::array<std::uint64_t, 2> booked{};  ///< register-file read ports: bit i: cycle booked_from + i is taken
    std::array<std::array<Cycle, 2>, 3>
        latch_free{};  ///< operand latches, by place and bank: when each takes a register
    std::array<std::array<std::uint32_t, 2>, 3> reused{};  ///< operand cache, by place and bank: operand_key()
    Cycle next = kNever;                                   ///< earliest cycle in which a warp may be ready
    Cycle address_free = 0;                                ///< address unit
    int queued_memory = 0;                                 ///< memory instructions not yet in the shared queue
    std::uint32_t memory_sent = 0;                         ///< memory instructions queued so far
    int queued_global = 0;                                 ///< of those, accesses to global or local memory
    std::array<Cycle, kQueueMost> index_start{};           ///< when the ADU takes the instructions sent to it last
    std::uint32_t index_sent = 0;                          ///< instructions sent to the ADU so far
    bool waits_for_queue = false;                          ///< a ready warp was refused because the queue is full
    std::uint32_t wants_memory = 0;                        ///< slots whose next instruction goes to the memory queue
    std::uint32_t turned_away = 0;                         ///< of those, the ones that the full queue refused
    std::uint32_t live_mask = 0;                           ///< slots in use
    int live = 0;
    int starting = 0;  ///< warps that have not requested their first instruction
    int last = -1;     ///< slot of the warp that issued last
    BranchTurns turns;
    LineFeed feed;
    Cycle active_since = 0;
    std::uint64_t active_cycles = 0, issue_cycles = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(Pipe::Count)> pipe_cycles{};
  };

  struct Block {
    std::uint32_t linear = 0;
    Cycle start = 0;
    int live_warps = 0;
    bool used = false;
    BlockBarriers barriers{};
    PhaseBarriers phases;
    std::vector<std::uint8_t> met;     ///< by warpgroup: warps that have come to WARPGROUP.ARRIVE
    Cycle last_arrival = 0;            ///< at a barrier, as the SM's barrier unit sees it
    std::vector<std::int64_t> shifts;  ///< by slope: lines by which it moves this block's accesses
    std::vector<std::uint16_t> warps;
    ClusterSeat seat;
    std::uint32_t cluster = 0;   ///< ClusterNetwork's index
    std::uint16_t recorded = 0;  ///< BlockRecorder's number; 0: nobody watches it
  };
  /// An access to shared memory of other blocks of the cluster.
  struct RemoteAccess {
    std::array<std::uint16_t, kMostClusterBlocks> sectors{}, bytes{};  ///< by rank; bytes: what lanes need of them
    std::uint32_t cluster = 0;
    bool answers = false;  ///< data come back
    bool sends = false;    ///< data go there
    PhaseRecord completes;
  };

  // Issue.
  /// Oldest block first, within a block the warp that has not issued for longest.
  static std::uint64_t issue_order(std::uint32_t block_age, Cycle issued) {
    return std::uint64_t{block_age} << 40 | (issued & ((std::uint64_t{1} << 40) - 1));
  }
  Cycle tick_sub_partition(SubPartition&, int index, Cycle now, SharedInstructionCache&);
  void feed_lines(SubPartition&, Cycle now);
  static std::uint32_t ready_slots(const SubPartition&, Cycle now);
  std::uint32_t turn_away(SubPartition&, std::uint32_t ready, Cycle now);
  int prefer(const SubPartition&, std::uint32_t candidates) const;
  Cycle count_down(const SubPartition&, Warp&, Cycle now) const;
  int choose(SubPartition&, Cycle now, std::uint32_t& refused);
  bool structurally_free(SubPartition&, const TimedInstruction&, Cycle now, Cycle& until, Stall& reason);
  static std::uint32_t operand_key(std::uint16_t warp, std::uint8_t source) {
    return (std::uint32_t{warp} << 8 | source) + 1;
  }
  static bool reads_port(const SubPartition&, std::uint16_t warp_index, const TimedInstruction&, std::size_t s);
  /// Registers read, by bank.
  struct BankReads {
    std::array<std::uint8_t, GroupProducts::kBanks> count{};
    unsigned set() const { return (count[0] > 0 ? 1u : 0u) | (count[1] > 0 ? 2u : 0u); }
  };
  static BankReads banks_read(const SubPartition&, std::uint16_t warp_index, const TimedInstruction&);
  Cycle burst_ahead(const SubPartition&, std::uint16_t warp_index, Cycle now) const;
  Cycle read_operands(SubPartition&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  Cycle read_matrices(SubPartition&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  void issue(SubPartition&, int slot, Cycle now, SharedInstructionCache&);
  void account(const SubPartition&, Warp&, const TimedInstruction&, Cycle now);
  // What a recorder is told.
  void record_waits(const SubPartition&, const Warp&, Cycle now);
  void record_issue(const SubPartition&, const Warp&, const TimedInstruction&, Cycle now);
  std::uint32_t record_copy(const Warp&, const MemoryPipe::Box&, const TimedInstruction&, Cycle now);
  void record_end(const Warp&, Cycle waited, Cycle resolved, Cycle end);
  void record_phase(const Block&, std::uint32_t barrier, std::uint32_t before, Cycle at);
  static void mark_scoreboard(Warp&, const TimedInstruction&, std::uint8_t scoreboard);
  void set_scoreboards(Warp&, const TimedInstruction&, Cycle result_at, Cycle read_at);
  void occupy_pipe(SubPartition&, const TimedInstruction&, Cycle now);
  static void read_amid_products(SubPartition&, const TimedInstruction&, Cycle now);
  /// Local memory belongs to an SM's block slots: the lines of the slots before this one, on this and earlier
  /// SMs.
  std::uint64_t local_lines_before(std::uint16_t block_slot) const {
    return (id_ * static_cast<std::uint64_t>(context_.blocks_per_sm) + block_slot) * local_lines_;
  }
  void send_to_memory(SubPartition&, Warp&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  Cycle constant_ready(const TimedInstruction&, Cycle now);
  Cycle enter_adu(SubPartition&, const TimedInstruction&, Cycle now);
  void operate_on_phase(Warp&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  bool sends_to_blocks(const Warp&, const Access&) const;
  void copy_box(Warp&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  void commit_boxes(Warp&, std::uint16_t warp_index, const TimedInstruction&, Cycle now);
  Cycle complete_box(const Release&, Cycle now);
  void end_box(const Release&, Cycle now);
  void change_phase(Block&, const PhaseRecord&, Cycle at, Cycle now);
  void open_remote(const Warp&, const TimedInstruction&, MemoryOperation&);
  void finish_remote(const Release&, Cycle now);
  void meet_cluster(Warp&, const TimedInstruction&, const Access& record, Cycle now);
  void wake_waiter(const PhaseBarriers::Waiter&, Cycle at, Cycle now);
  Cycle multiply_group(SubPartition&, Warp&, const TimedInstruction&, Cycle now);
  void meet_group(Warp&, Cycle now);
  void advance(Warp&, const TimedInstruction&, Cycle now, SharedInstructionCache&);
  /// All that a warp waits for before its next instruction: visit(cycle at which it ends, its name), in the order in
  /// which Nsight Compute's stall reasons are charged; kNever while the end is not known.
  std::uint16_t index_of(const Warp& warp) const { return static_cast<std::uint16_t>(&warp - warps_.data()); }
  template <class Visit>
  void for_each_wait(const SubPartition&, const Warp&, const TimedInstruction&, Visit&&) const;
  /// The cycles since the warp's last issue by what held it, in that order: use(from, to, reason, scoreboard), where
  /// that is one. kRefused: reasons that were charged when it was refused.
  static constexpr Stall kRefused = Stall::Count;
  template <class Use>
  void for_each_charge(const SubPartition&, const Warp&, const TimedInstruction&, Cycle now, Use&&) const;
  void evaluate(Warp&, Cycle now);
  void release_scoreboard(Warp&, std::uint16_t warp_index, std::uint8_t scoreboard, Cycle at, Cycle now);
  void wake(Warp&, Cycle at);

  // Blocks.
  void arrive_at_barrier(Warp&, const BarrierArrival&, Cycle now, bool waits);
  void release_barrier_if_full(Block&, int id, Cycle now);
  void retire(Warp&, Cycle now);
  void retire_drained(Cycle now);
  void pass_fence(Warp&, Cycle at);
  bool fence_waits(const Warp& warp) const {
    return (warp.fences_stores && warp.stores_in_flight > 0) || !boxes_.have_come(warp.boxes_before) ||
           stores_acknowledged_ < warp.stores_before;
  }
  void end_fences(Cycle at, Cycle now);
  void end_fence(Warp&, Cycle at, Cycle now);
  void apply_releases(Cycle now);

  LaunchContext context_;
  std::uint16_t id_;
  std::vector<Warp> warps_;  ///< blocks_per_sm x warps_per_block
  std::vector<Block> blocks_;
  std::vector<SubPartition> subs_;
  InstructionFetch fetch_;
  MemoryPipe pipe_;
  Cycle pipe_next_ = kNever;
  std::vector<Release> releases_;
  ClusterNetwork* network_ = nullptr;
  std::vector<std::uint16_t> drained_;  ///< warps that had exited when a barrier in shared memory released them
  std::vector<RemoteAccess> remotes_;
  std::vector<std::uint16_t> free_remotes_;  ///< from 1
  std::vector<FinishedBlock>* finished_ = nullptr;
  Cycle phase_free_ = 0;                  ///< when the next operation on a barrier in shared memory goes
  Cycle adu_free_ = 0, membar_free_ = 0;  ///< when ADU and fences take the next warp
  Cycle warp_start_free_ = 0;             ///< when the SM can start the next warp
  CopyGroups copies_;
  BoxesUnderWay boxes_;
  int fences_waiting_ = 0;                                   ///< warps at a fence that waits for something
  std::uint64_t stores_sent_ = 0, stores_acknowledged_ = 0;  ///< lines
  std::uint64_t fence_needs_ = ~std::uint64_t{0};            ///< the fewest acknowledged that let one of them pass
  CopyGroups stored_boxes_;                                  ///< the groups of boxes that leave shared memory
  ReleaseTimes release_times_;
  std::vector<Cycle> constant_arrival_;  ///< by constant line modulo the table
  std::uint64_t local_lines_ = 0;        ///< of a block
  int resident_ = 0;
  std::uint32_t next_age_ = 0;
  std::size_t next_sub_ = 0;  ///< sub-partition of the next block's first warp
  Cycle active_since_ = 0;
  std::uint64_t active_cycles_ = 0, warp_cycles_ = 0, issued_ = 0;
  StallCycles stalls_{};
  std::vector<StallCycles>* instruction_stalls_ = nullptr;
  InstructionCacheCounters icache_;
};

template <class Visit>
void Sm::for_each_wait(const SubPartition& sub, const Warp& warp, const TimedInstruction& in, Visit&& visit) const {
  const auto scoreboard_wait = [&](std::size_t s) {
    return (warp.long_mask >> s & 1) != 0 ? Stall::LongScoreboard : Stall::ShortScoreboard;
  };
  visit(warp.fixed_at, warp.fixed_reason, kNoScoreboard);
  if (!in.passes_barrier) visit(warp.released, warp.released_reason, kNoScoreboard);
  for (unsigned mask = in.wait_mask; mask != 0; mask &= mask - 1) {
    const auto s = static_cast<std::size_t>(std::countr_zero(mask));
    visit(warp.pending[s] != 0 ? kNever : warp.scoreboard_at[s], scoreboard_wait(s), static_cast<std::uint8_t>(s));
  }
  if (in.path == Path::Depbar && in.count > 0)
    visit(warp.counted_at, scoreboard_wait(in.depbar_scoreboard), in.depbar_scoreboard);
  if (in.memory_queue) {
    Cycle countable = warp.countable;
    for (const std::uint8_t s : {in.write_barrier, in.read_barrier})
      if (s != kNoScoreboard && warp.pending[s] >= context_.gpu.issue.scoreboard_limit) countable = kNever;
    visit(countable, Stall::Misc, kNoScoreboard);
  }
  const bool fed = (sub.feed.waiting() >> warp.slot & 1u) == 0;
  visit(fed ? warp.fetched_at : kNever, Stall::NoInstruction, kNoScoreboard);
}

template <class Use>
void Sm::for_each_charge(const SubPartition& sub, const Warp& warp, const TimedInstruction& in, Cycle now,
                         Use&& use) const {
  Cycle cursor = warp.first ? warp.started : warp.issued + 1;
  const auto charge = [&](Cycle until, Stall reason, std::uint8_t scoreboard = kNoScoreboard) {
    until = std::min(until, now);
    if (until <= cursor) return;
    use(cursor, until, reason, scoreboard);
    cursor = until;
  };
  charge(cursor + warp.conflict, Stall::DispatchStall);
  if (warp.fixed_reason == Stall::BranchResolving) charge(warp.waited_at, Stall::Wait);
  for_each_wait(sub, warp, in, charge);
  charge(cursor + warp.throttled, kRefused);
  if (warp.refused_at != kNever) {
    charge(warp.refused_at, Stall::NotSelected);
    // When a place came free it could have gone, as others did.
    charge(now - std::min<Cycle>(now - warp.refused_at, sub.memory_sent - warp.sent_before), warp.refused_reason);
  }
  if (sub.held > warp.held_before && now > cursor) {
    // Of what is left, the part in which dispatch was held, as far as that is spread evenly over the time since the
    // last issue.
    const Cycle since = now - (warp.first ? warp.started : warp.issued);
    charge(cursor + std::min(now - cursor, (sub.held - warp.held_before) * (now - cursor) / since),
           Stall::DispatchStall);
  }
  charge(now, Stall::NotSelected);
}

}  // namespace forewarp
