// Runs the warps of one block in turns, each until it waits, and reports to an observer, a policy class:
//
//   void execute(const Exec&, const Op&, LaneMask enabled)   every warp instruction, before its effect
//   void compute(const Exec&, const Op&)                      before the handler of a plain instruction runs
//   void access(const Exec&, const Op&, LaneMask lanes, MemorySpace)   a memory instruction, its addresses in the Exec
//   void fill(const Exec&, LaneMask writes, LaneMask reads)   before a copy some of whose lanes write zeros
//   void diverge(const Exec&)                                 a branch split the warp
//   void hold(const Exec&, LaneMask lanes)                    a branch's own predicate kept enabled lanes
//   void arrive(const Exec&, const BarrierArrival&)           a BAR or UCGABAR, with the lanes enabled or none
//   void phase(const Exec&, const PhaseRecord&)               a SYNCS, the same; what a STAS completes
//   void copy(const Exec&, const Op&, const CopiedBox*)       a box or a stretch; null: no lane is enabled
#pragma once

#include <bit>
#include <deque>
#include <string>

#include "base/error.h"
#include "emulation/machine/address.h"
#include "emulation/machine/convergence.h"
#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/machine/phases.h"
#include "emulation/machine/tensor_copy.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {

/// Observes nothing: for runs that only need values.
struct NoObserver {
  void execute(const Exec&, const Op&, LaneMask) {}
  void compute(const Exec&, const Op&) {}
  void access(const Exec&, const Op&, LaneMask, MemorySpace) {}
  void fill(const Exec&, LaneMask, LaneMask) {}
  void diverge(const Exec&) {}
  void hold(const Exec&, LaneMask) {}
  void arrive(const Exec&, const BarrierArrival&) {}
  void phase(const Exec&, const PhaseRecord&) {}
  void copy(const Exec&, const Op&, const CopiedBox*) {}
};

/// What all blocks of a launch share.
struct LaunchState {
  const DecodedKernel* kernel = nullptr;
  const ConstantBanks* constants = nullptr;
  const OutsideCalls* outside = nullptr;
  GlobalMemory* global = nullptr;
  Dim3 grid, block, cluster{0, 0, 0};
  std::uint32_t shared_bytes = 0;
  int sm = 0;
  std::uint64_t instruction_limit = 0;  ///< warp instructions a block may execute; 0: no limit

  /// Of one block where the launch has no clusters.
  Dim3 cluster_extent() const { return cluster.x != 0 ? cluster : Dim3{1, 1, 1}; }
};

class BlockExecutor {
 public:
  explicit BlockExecutor(const LaunchState& launch, GlobalView::Writes writes = GlobalView::Writes::Done);
  BlockExecutor(const BlockExecutor&) = delete;
  BlockExecutor& operator=(const BlockExecutor&) = delete;

  int warps() const { return static_cast<int>(state_.warps.size()); }
  std::uint64_t executed() const { return state_.clock; }

  /// Emulates one block, which is a cluster by itself, from start to end.
  template <class Observer>
  void run(const Dim3& block, Observer& observer) {
    start(block);
    advance(observer);
  }

  // The blocks of a cluster, each in an executor of its own: join() them, start() each, then run_on() in turns.
  void join(ClusterState& cluster) {
    state_.cluster = &cluster;
    state_.cluster_rank = static_cast<std::uint32_t>(cluster.blocks.size());
    cluster.blocks.push_back(&state_);
    shares_ = true;
  }
  /// Runs warps until all wait or have exited, or others should have a turn. False: none could go on.
  template <class Observer>
  bool run_on(Observer& observer) {
    const std::uint64_t before = state_.clock;
    run_warps(observer);
    return state_.clock != before;
  }
  bool ended() const;
  /// What its warps wait for, a line for each; empty if it has ended.
  std::string describe_waits() const;
  /// The place of the first that waits.
  std::string waiting_place() const;

  // Blocks side by side, each in an executor of its own: start(), then advance() until it says that the block has
  // ended.
  /// Has advance() come back in front of everything by which a block meets others (op.h), and now and then.
  void pause_at_meetings() { pauses_ = true; }
  void start(const Dim3& block) {
    reset(block);
    next_warp_ = 0;
    progress_ = at_meeting_ = false;
  }
  /// False: it pauses. The next call carries out what it pauses at.
  template <class Observer>
  bool advance(Observer& observer) {
    if (!run_warps(observer)) return false;
    check_finished();
    return true;
  }
  bool at_meeting() const { return at_meeting_; }
  // Of the meeting it pauses at.
  std::size_t meeting_warp() const { return next_warp_; }
  std::uint32_t meeting_pc() const { return x_.pc; }
  /// Where the warps are that have not ended, a line for each of the first few.
  std::string places() const;
  /// Whether a warp of this block or of one before it has asked for the same word again.
  bool waited() const { return waited_; }
  /// So many times its warp has asked for this word already.
  std::uint32_t asked_before() const { return state_.warps[next_warp_].asked.before; }

 private:
  /// Until all warps wait or have exited. False: it pauses, or others should have a turn.
  template <class Observer>
  bool run_warps(Observer& observer) {
    for (const std::uint64_t until = state_.clock + kTurn;;) {
      for (; next_warp_ < state_.warps.size(); ++next_warp_) {
        run_warp(state_.warps[next_warp_], observer);
        if (at_meeting_) return false;
      }
      const bool progress = progress_;
      next_warp_ = 0;
      progress_ = false;
      if (!progress) return true;
      if ((pauses_ || shares_) && state_.clock >= until) return false;
    }
  }

  // Instructions that a warp gets before the others have a turn; it may be spinning on what another must write.
  static constexpr std::uint64_t kTurn = 1u << 16;
  // Lanes that spin on what other lanes of their warp must write say so with YIELD. Without it one side of a branch
  // runs until it waits or exits, as in hardware, since the sides share the uniform registers. Code that never yields
  // gets this many turns.
  static constexpr std::uint32_t kPatience = 256;

  void reset(const Dim3& block);
  void check_finished() const;
  [[noreturn]] void fail_runaway(const Warp& warp, std::uint32_t pc) const;

  template <class Observer>
  void run_warp(Warp& warp, Observer& observer) {
    const std::uint64_t until = state_.clock + kTurn;
    std::size_t current = meeting_split_;
    const bool resumes = at_meeting_;
    if (resumes && carry_out_meeting(warp, observer)) {
      // In vain, it seems: the others first.
      progress_ = true;
      end_turn(warp, current);
      return;
    }
    for (bool first = resumes; first || choose_split(warp, current); first = false) {
      progress_ = true;
      enter(warp);
      bool switched = false;
      while (run_straight(warp, warp.splits[current], observer)) {
        const Op& op = state_.kernel->ops[x_.pc];
        if (op.kind == OpKind::Memory) {
          at_meeting_ = true;
          meeting_split_ = current;
          return;
        }
        const ControlResult result = execute_control(x_, op, current);
        if (result.diverged) observer.diverge(x_);
        if (result.held != 0) observer.hold(x_, result.held);
        if (op.kind == OpKind::BlockBarrier || op.kind == OpKind::ClusterBarrier) observer.arrive(x_, result.arrival);
        if (op.kind == OpKind::PhaseBarrier) observer.phase(x_, result.phase);
        if (state_.clock >= limit_) fail_runaway(warp, x_.pc);
        if (result.next == Next::Switch) {
          switched = true;
          warp.turns = 0;
          break;
        }
        if (state_.clock >= until && op.kind == OpKind::Branch) break;
      }
      if (state_.clock >= until) {
        if (!switched) end_turn(warp, current);
        break;
      }
    }
  }

  /// Whether the warp asks for the same word again.
  template <class Observer>
  bool carry_out_meeting(Warp& warp, Observer& observer) {
    at_meeting_ = false;
    enter(warp);
    Split& split = warp.splits[meeting_split_];
    const Op& op = state_.kernel->ops[split.pc];
    x_.active = split.mask;
    x_.pc = split.pc;
    run_memory(op, split.mask & (warp.predicates[op.guard] ^ op.guard_flip), observer);
    ++split.pc;
    Asked& last = warp.asked;
    if (!asks(op)) {
      last.pc = ~0u;
      return false;
    }
    const std::uint64_t address = x_.address[static_cast<std::size_t>(std::countr_zero(x_.enabled))];
    const bool again = last.pc == x_.pc && last.lanes == x_.enabled && last.address == address;
    last = {x_.pc, x_.enabled, address, again ? last.before + 1 : 0};
    waited_ |= again;
    return again;
  }

  void enter(Warp& warp);
  /// Has the split that ran go on next time, or after many turns the others.
  static void end_turn(Warp& warp, std::size_t current);

  /// Executes up to the next control instruction, or meeting if it pauses at them, and stops in front of its effect (it
  /// has been reported).
  template <class Observer>
  bool run_straight(Warp& warp, Split& split, Observer& observer) {
    const Op* ops = state_.kernel->ops.data();
    const std::size_t size = state_.kernel->ops.size();
    const LaneMask active = split.mask;
    x_.active = active;
    for (std::uint32_t pc = split.pc;; ++pc) {
      if (pc >= size) fail_end(warp, pc);
      const Op& op = ops[pc];
      const LaneMask enabled = active & (warp.predicates[op.guard] ^ op.guard_flip);
      x_.pc = pc;
      ++state_.clock;
      observer.execute(x_, op, enabled);
      switch (op.kind) {
        case OpKind::Skip:
          break;
        case OpKind::Plain:
          if (enabled == 0) break;
          x_.enabled = op.uniform ? ~LaneMask{0} : enabled;
          x_.full = op.uniform || enabled == warp.live;
          observer.compute(x_, op);
          op.run(x_, op);
          break;
        case OpKind::Memory:
          if (pauses_ && enabled != 0 && meets(op)) {
            split.pc = pc;
            return true;
          }
          run_memory(op, enabled, observer);
          break;
        case OpKind::Copy:
          run_copy(op, enabled, observer);
          break;
        case OpKind::TensorCopy:
          run_tensor_copy(op, enabled, observer);
          break;
        case OpKind::RemoteStore:
          run_remote_store(op, enabled, observer);
          break;
        default:
          split.pc = pc;
          x_.enabled = enabled;
          return true;
      }
    }
  }

  template <class Observer>
  void run_memory(const Op& op, LaneMask enabled, Observer& observer) {
    x_.enabled = enabled & op.lanes;
    if (x_.enabled == 0) {
      observer.access(x_, op, 0, op.space == MemorySpace::Generic ? MemorySpace::Global : op.space);
      return;
    }
    x_.full = false;
    const LaneMask lanes = compute_addresses(x_, op);
    observer.access(x_, op, lanes, x_.space);
    if (!op.value_needed) {
      if (op.leaves_store) leave_store(x_, op);
      return;
    }
    x_.full = x_.enabled == x_.warp->live;
    move_data(x_, op);
  }

  template <class Observer>
  void run_copy(const Op& op, LaneMask enabled, Observer& observer) {
    const LaneMask read = op.carry_out ? enabled & x_.predicate(op.p[0]) : enabled;
    x_.full = false;
    x_.enabled = read;
    Op part = op;
    part.space = MemorySpace::Global;
    if (enabled != 0) compute_copy_source(x_, part);
    if (read != enabled) observer.fill(x_, enabled, read);
    observer.access(x_, op, read, MemorySpace::Global);
    if (op.value_needed) {
      for (auto& bytes : x_.warp->copied) bytes.fill(0);
      if (read != 0) move_data(x_, part);
    }
    x_.enabled = enabled;
    part.space = MemorySpace::Shared;
    part.run = copy_target_handler();
    if (enabled != 0) compute_copy_target(x_, part);
    observer.access(x_, op, enabled, MemorySpace::Shared);
    if (op.value_needed && enabled != 0) move_data(x_, part);
  }

  template <class Observer>
  void run_tensor_copy(const Op& op, LaneMask enabled, Observer& observer) {
    x_.enabled = enabled;
    if (enabled == 0) {
      observer.copy(x_, op, nullptr);
      return;
    }
    TensorMap map;
    const CopiedBox box = read_copy(x_, op, map);
    observer.copy(x_, op, &box);
    if (op.value_needed) move_copy(x_, op, box);
    if (box.inward()) complete_bytes(x_, box.blocks, box.barrier, box.bytes);
  }

  template <class Observer>
  void run_remote_store(const Op& op, LaneMask enabled, Observer& observer) {
    x_.enabled = enabled;
    if (enabled == 0) {
      observer.access(x_, op, 0, MemorySpace::Shared);
      observer.phase(x_, {});
      return;
    }
    x_.full = false;
    const LaneMask lanes = compute_addresses(x_, op);
    observer.access(x_, op, lanes, x_.space);
    if (op.value_needed) move_data(x_, op);
    observer.phase(x_, complete_stores(x_, op));
  }

  [[noreturn]] void fail_end(const Warp& warp, std::uint32_t pc) const;

  GlobalView global_;
  BlockState state_;
  ClusterState alone_;
  Exec x_;
  std::uint64_t limit_;
  // Where advance() goes on.
  bool pauses_ = false;
  bool shares_ = false;    ///< with the other blocks of its cluster
  bool progress_ = false;  ///< some warp has executed something since the first had its turn
  bool at_meeting_ = false;
  bool waited_ = false;
  std::size_t next_warp_ = 0, meeting_split_ = 0;
};

/// The blocks of a cluster, which run at the same time.
class ClusterExecutor {
 public:
  explicit ClusterExecutor(const LaunchState& launch, GlobalView::Writes writes = GlobalView::Writes::Done)
      : extent_(launch.cluster_extent()) {
    for (std::uint64_t rank = 0; rank < extent_.count(); ++rank) blocks_.emplace_back(launch, writes);
    if (blocks_.size() == 1) return;
    for (BlockExecutor& block : blocks_) block.join(cluster_);
  }
  ClusterExecutor(const ClusterExecutor&) = delete;
  ClusterExecutor& operator=(const ClusterExecutor&) = delete;

  std::size_t size() const { return blocks_.size(); }
  int warps() const { return blocks_.front().warps(); }
  std::uint64_t executed() const {
    std::uint64_t sum = 0;
    for (const BlockExecutor& block : blocks_) sum += block.executed();
    return sum;
  }
  /// The block of each rank in the cluster that `block` belongs to.
  Dim3 block_at(const Dim3& block, std::uint64_t rank) const {
    const auto r = static_cast<std::uint32_t>(rank);
    return {block.x - block.x % extent_.x + r % extent_.x, block.y - block.y % extent_.y + r / extent_.x % extent_.y,
            block.z - block.z % extent_.z + r / extent_.x / extent_.y};
  }
  std::size_t rank_of(const Dim3& block) const {
    return block.x % extent_.x + extent_.x * (block.y % extent_.y + std::size_t{extent_.y} * (block.z % extent_.z));
  }

  /// Emulates the cluster that `block` belongs to from start to end; observer_of(rank) is told of each block.
  template <class ObserverOf>
  void run(const Dim3& block, ObserverOf&& observer_of) {
    if (blocks_.size() == 1) {
      blocks_.front().run(block, observer_of(std::size_t{0}));
      return;
    }
    for (std::size_t rank = 0; rank < blocks_.size(); ++rank) blocks_[rank].start(block_at(block, rank));
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t rank = 0; rank < blocks_.size(); ++rank) progress |= blocks_[rank].run_on(observer_of(rank));
    }
    check_finished();
  }

 private:
  void check_finished() const;

  Dim3 extent_;
  ClusterState cluster_;
  std::deque<BlockExecutor> blocks_;
};

}  // namespace forewarp::emulation
