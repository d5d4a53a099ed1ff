// Reports what a block executes to a BlockTraceBuilder, and to its Shadow what depends on the block index.
#pragma once

#include "emulation/classes/shadow.h"
#include "emulation/machine/address.h"
#include "trace/builder.h"

namespace forewarp::emulation {

class TraceObserver {
 public:
  TraceObserver(BlockTraceBuilder& builder, Shadow& shadow) : builder_(builder), shadow_(shadow) {}

  void execute(const Exec& x, const Op& op, LaneMask enabled) {
    builder_.execute(x.warp->index, x.pc, x.active, enabled);
    shadow_.guard(x, op);
    if (op.kind >= OpKind::Branch && op.kind != OpKind::Skip) [[unlikely]]
      shadow_.control(x, op);
  }

  void compute(const Exec& x, const Op& op) { shadow_.compute(x, op); }

  void access(const Exec& x, const Op& op, LaneMask lanes, MemorySpace space) {
    const BlockSlope slope = shadow_.access(x, op, lanes, space);
    const std::uint64_t* addresses = x.address.data();
    if (space == MemorySpace::Local && lanes != 0) {
      interleave_local(x, local_.data());
      addresses = local_.data();
    }
    builder_.access(x.warp->index, x.pc, lanes, addresses, space, slope, true);
  }

  void diverge(const Exec& x) { builder_.diverge(x.warp->index, x.pc); }

  void hold(const Exec& x, LaneMask lanes) { builder_.hold(x.pc, lanes); }

  void arrive(const Exec& x, const BarrierArrival& arrival) { builder_.arrive(x.warp->index, x.enabled, arrival); }

  void phase(const Exec& x, const PhaseRecord& record) { builder_.phase(x.warp->index, x.enabled, record); }

  void copy(const Exec&, const Op&, const CopiedBox*) {}

 private:
  BlockTraceBuilder& builder_;
  Shadow& shadow_;
  std::array<std::uint64_t, kWarpLanes> local_{};
};

/// For a block of which only the counts are wanted.
class CountObserver {
 public:
  explicit CountObserver(BlockTraceBuilder& builder) : builder_(builder) {}

  void execute(const Exec& x, const Op&, LaneMask enabled) { builder_.execute(x.warp->index, x.pc, x.active, enabled); }

  void compute(const Exec&, const Op&) {}

  void access(const Exec& x, const Op&, LaneMask lanes, MemorySpace space) {
    const std::uint64_t* addresses = x.address.data();
    if (space == MemorySpace::Local && lanes != 0) {
      interleave_local(x, local_.data());
      addresses = local_.data();
    }
    builder_.access(x.warp->index, x.pc, lanes, addresses, space, {}, true);
  }

  void diverge(const Exec& x) { builder_.diverge(x.warp->index, x.pc); }

  void hold(const Exec& x, LaneMask lanes) { builder_.hold(x.pc, lanes); }

  void arrive(const Exec& x, const BarrierArrival& arrival) { builder_.arrive(x.warp->index, x.enabled, arrival); }

  void phase(const Exec& x, const PhaseRecord& record) { builder_.phase(x.warp->index, x.enabled, record); }

  void copy(const Exec&, const Op&, const CopiedBox*) {}

 private:
  BlockTraceBuilder& builder_;
  std::array<std::uint64_t, kWarpLanes> local_{};
};

}  // namespace forewarp::emulation
