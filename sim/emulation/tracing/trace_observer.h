// Reports what a block executes to a BlockTraceBuilder, and to its Shadow what depends on the block index.
#pragma once

#include "base/error.h"
#include "emulation/classes/shadow.h"
#include "emulation/machine/address.h"
#include "emulation/machine/tensor_copy.h"
#include "trace/builder.h"

namespace forewarp::emulation {

/// `box` null: the copy is not made.
inline void report_copy(BlockTraceBuilder& builder, const Exec& x, const CopiedBox* box, const BlockSlope& slope) {
  AccessPattern pattern;
  BoxTarget target;
  pattern.kind = box != nullptr ? box->kind : MemoryKind::AsyncCopy;
  pattern.space = MemorySpace::Global;
  if (box != nullptr) {
    target = {box->shared, box->barrier, box->bytes, box->blocks};
    if (box->any) {
      pattern.lanes = (LaneMask{1} << box->rank) - 1;
      pattern.base_offset = static_cast<std::uint8_t>(box->base % kLineBytes);
      std::uint64_t reach = 0;
      for (std::size_t d = 0; d < static_cast<std::size_t>(box->rank); ++d) {
        pattern.offsets[d] = static_cast<std::int32_t>(box->extent[d]);
        if (d > 0) reach += (box->extent[d] - 1) * box->pitch[d];
        // Of one row there is no next.
        if (d > 0 && box->extent[d] > 1) pattern.offsets[kBoxPitch + d] = static_cast<std::int32_t>(box->pitch[d]);
      }
      if (reach >> 31 != 0)
        throw InputError("instruction " + std::to_string(x.pc) + ": the rows of a box lie more than 2 GiB apart",
                         "use a smaller box or smaller strides");
    }
  }
  builder.copy(x.warp->index, x.pc, pattern, box != nullptr ? box->base : 0, slope, target);
}

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

  void fill(const Exec& x, LaneMask writes, LaneMask reads) { builder_.fill(x.pc, writes, reads, x.address.data()); }

  void diverge(const Exec& x) { builder_.diverge(x.warp->index, x.pc); }

  void hold(const Exec& x, LaneMask lanes) { builder_.hold(x.pc, lanes); }

  void arrive(const Exec& x, const BarrierArrival& arrival) { builder_.arrive(x.warp->index, x.enabled, arrival); }

  void phase(const Exec& x, const PhaseRecord& record) { builder_.phase(x.warp->index, x.enabled, record); }

  void copy(const Exec& x, const Op& op, const CopiedBox* box) {
    const BlockSlope slope = box != nullptr ? shadow_.copy(x, op, *box) : BlockSlope{};
    report_copy(builder_, x, box, slope);
  }

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

  void fill(const Exec& x, LaneMask writes, LaneMask reads) { builder_.fill(x.pc, writes, reads, x.address.data()); }

  void diverge(const Exec& x) { builder_.diverge(x.warp->index, x.pc); }

  void hold(const Exec& x, LaneMask lanes) { builder_.hold(x.pc, lanes); }

  void arrive(const Exec& x, const BarrierArrival& arrival) { builder_.arrive(x.warp->index, x.enabled, arrival); }

  void phase(const Exec& x, const PhaseRecord& record) { builder_.phase(x.warp->index, x.enabled, record); }

  void copy(const Exec& x, const Op&, const CopiedBox* box) { report_copy(builder_, x, box, {}); }

 private:
  BlockTraceBuilder& builder_;
  std::array<std::uint64_t, kWarpLanes> local_{};
};

}  // namespace forewarp::emulation
