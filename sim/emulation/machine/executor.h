// Runs the warps of one block in turns, each until it waits, and reports to an observer, a policy class:
//
//   void execute(const Exec&, const Op&, LaneMask enabled)   every warp instruction, before its effect
//   void compute(const Exec&, const Op&)                      before the handler of a plain instruction runs
//   void access(const Exec&, const Op&, LaneMask lanes, MemorySpace)   a memory instruction, its addresses in the Exec
//   void diverge(const Exec&)                                 a branch split the warp
//   void hold(const Exec&, LaneMask lanes)                    a branch's own predicate kept enabled lanes
#pragma once

#include <bit>
#include <string>

#include "base/error.h"
#include "emulation/machine/address.h"
#include "emulation/machine/convergence.h"
#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {

/// Observes nothing: for runs that only need values.
struct NoObserver {
  void execute(const Exec&, const Op&, LaneMask) {}
  void compute(const Exec&, const Op&) {}
  void access(const Exec&, const Op&, LaneMask, MemorySpace) {}
  void diverge(const Exec&) {}
  void hold(const Exec&, LaneMask) {}
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
    reset(block);
    for (bool progress = true; progress;) {
      progress = false;
      for (Warp& warp : state_.warps) progress |= run_warp(warp, observer);
    }
    check_finished();
  }

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
  bool run_warp(Warp& warp, Observer& observer) {
    const std::uint64_t until = state_.clock + kTurn;
    std::size_t current = 0;
    bool progress = false;
    while (choose_split(warp, current)) {
      progress = true;
      enter(warp);
      bool switched = false;
      while (run_straight(warp, warp.splits[current], observer)) {
        const Op& op = state_.kernel->ops[x_.pc];
        const ControlResult result = execute_control(x_, op, current);
        if (result.diverged) observer.diverge(x_);
        if (result.held != 0) observer.hold(x_, result.held);
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
    return progress;
  }

  void enter(Warp& warp);
  /// Has the split that ran go on next time, or after many turns the others.
  static void end_turn(Warp& warp, std::size_t current);

  /// Executes up to the next control instruction and stops in front of its effect (it has been reported).
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
          run_memory(op, enabled, observer);
          break;
        case OpKind::Copy:
          run_copy(op, enabled, observer);
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
    if (!op.value_needed) return;
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

  [[noreturn]] void fail_end(const Warp& warp, std::uint32_t pc) const;

  GlobalView global_;
  BlockState state_;
  Exec x_;
  std::uint64_t limit_;
};

}  // namespace forewarp::emulation
