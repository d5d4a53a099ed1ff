// Runs the warps of one block in turns, each until it waits, and reports to an observer, a policy class:
//
//   void execute(const Exec&, const Op&, LaneMask enabled)   every warp instruction, before its effect
//   void compute(const Exec&, const Op&)                      before the handler of a plain instruction runs
//   void access(const Exec&, const Op&, LaneMask lanes, MemorySpace)   a memory instruction, its addresses in the Exec
//   void diverge(const Exec&)                                 a branch split the warp
//   void hold(const Exec&, LaneMask lanes)                    a branch's own predicate kept enabled lanes
//   void arrive(const Exec&, const BarrierArrival&)           a BAR, with the lanes enabled or none
//   void phase(const Exec&, const PhaseRecord&)               a SYNCS, the same
//   void copy(const Exec&, const Op&, const CopiedBox*)       a box or a stretch; null: no lane is enabled
#pragma once

#include <bit>
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
};

class BlockExecutor {
 public:
  explicit BlockExecutor(const LaunchState& launch, GlobalView::Writes writes = GlobalView::Writes::Done);
  BlockExecutor(const BlockExecutor&) = delete;
  BlockExecutor& operator=(const BlockExecutor&) = delete;

  int warps() const { return static_cast<int>(state_.warps.size()); }
  std::uint64_t executed() const { return state_.clock; }

  /// Emulates one block from start to end.
  template <class Observer>
  void run(const Dim3& block, Observer& observer) {
    start(block);
    advance(observer);
  }

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
    for (const std::uint64_t until = state_.clock + kTurn;;) {
      for (; next_warp_ < state_.warps.size(); ++next_warp_) {
        run_warp(state_.warps[next_warp_], observer);
        if (at_meeting_) return false;
      }
      if (!progress_) break;
      next_warp_ = 0;
      progress_ = false;
      if (pauses_ && state_.clock >= until) return false;
    }
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
        if (op.kind == OpKind::BlockBarrier) observer.arrive(x_, result.arrival);
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
    if (read != 0) compute_copy_source(x_, part);
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
    if (box.inward()) complete_bytes(x_, box.barrier, box.bytes);
  }

  [[noreturn]] void fail_end(const Warp& warp, std::uint32_t pc) const;

  GlobalView global_;
  BlockState state_;
  Exec x_;
  std::uint64_t limit_;
  // Where advance() goes on.
  bool pauses_ = false;
  bool progress_ = false;  ///< some warp has executed something since the first had its turn
  bool at_meeting_ = false;
  bool waited_ = false;
  std::size_t next_warp_ = 0, meeting_split_ = 0;
};

}  // namespace forewarp::emulation
