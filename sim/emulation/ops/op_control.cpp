// Control instructions: only their operands are read here, the executor carries them out. What has no effect on what
// is emulated (fences, cache hints, scoreboard waits) counts and does nothing.
#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

/// BRX R2, displacement; RET.REL R2, function; CALL.ABS R2: a place in bytes in a register pair, plus a known one.
bool decode_indirect(const OperandReader& r, Op& op, OpKind kind) {
  if (r.values() == 0) return false;
  op.a = r.integer64(0);
  op.target = r.target() != nullptr ? r.target()->immediate : 0;
  op.kind = kind;
  return true;
}

bool decode_convergence(const OperandReader& r, Op& op, OpKind kind) {
  if (r.barrier() == nullptr) return false;
  op.immediate = r.barrier()->index;
  op.p[0] = r.predicate(0);
  op.kind = kind;
  return true;
}

/// BMOV: a convergence barrier to a register or back, each lane its own.
void bmov_to_register(Exec& x, const Op& op) {
  auto& barrier = x.warp->barrier[op.immediate];
  write_row(x, op, [&](u32* d) {
    for (std::size_t i = 0; i < kWarpLanes; ++i) d[i] = barrier[i];
  });
  if (op.variant == 0) return;
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    if ((x.enabled >> i & 1u) != 0) barrier[i] = 0;
  }
}
void bmov_to_barrier(Exec& x, const Op& op) {
  auto& barrier = x.warp->barrier[op.immediate];
  const u32* a = x.row(op.a);
  for (std::size_t i = 0; i < kWarpLanes; ++i) {
    if ((x.enabled >> i & 1u) != 0) barrier[i] = a[i];
  }
}

/// QSPC: whether a generic address lies in the space that the modifier names.
void qspc(Exec& x, const Op& op) {
  const u32 *low = x.row(op.a), *high = x.high(op.a);
  LaneMask in = 0;
  for (int i = 0; i < kWarpLanes; ++i) {
    const std::uint64_t address =
        (low[i] | static_cast<std::uint64_t>(high[i]) << 32) + static_cast<std::uint64_t>(op.offset);
    const bool shared = address - kSharedWindow < kWindowBytes, local = address - kLocalWindow < kWindowBytes;
    const bool yes = op.variant == 0 ? shared : op.variant == 1 ? local : !shared && !local;
    in |= static_cast<LaneMask>(yes) << i;
  }
  x.set_predicate(op.pdst[0], in);
}

/// The byte address of the next instruction, counted from the kernel's first.
void lepc(Exec& x, const Op& op) {
  const u32 next = (x.pc + 1) * 16;
  write_pair(x, op, [&](u32* d, u32* h) {
    FW_LANES {
      d[i] = next;
      h[i] = 0;
    }
  });
}

bool decode_as(Op& op, OpKind kind) {
  op.kind = kind;
  return true;
}

}  // namespace

bool emulate_bra(const OperandReader& r, Op& op) {
  if (r.target() == nullptr) return false;
  op.target = r.target()->immediate;
  op.p[0] = r.predicate(0);             // BRA P1, target: taken where guard and predicate hold
  op.a = r.integer(0);                  // BRA.DIV UR4, target
  op.carry_out = r.has(Modifier::ANY);  // BRA.U.ANY: where it holds for one lane, all go
  op.kind = r.has(Modifier::DIV)    ? OpKind::BranchDivergent
            : r.has(Modifier::CONV) ? OpKind::BranchConverged
                                    : OpKind::Branch;
  return true;
}

bool emulate_call(const OperandReader& r, Op& op) {
  if (r.values() > 0) return decode_indirect(r, op, OpKind::IndirectBranch);
  if (r.target() == nullptr) return false;
  op.target = r.target()->immediate;
  op.kind = OpKind::Call;
  return true;
}

bool emulate_bmov(const OperandReader& r, Op& op) {
  if (r.barrier() == nullptr) return false;
  op.immediate = r.barrier()->index;
  op.variant = r.has(Modifier::CLEAR) ? 1 : 0;
  op.a = r.integer(0);
  op.run = r.destination() != nullptr ? bmov_to_register : bmov_to_barrier;
  return r.has(Modifier::B32);
}

bool emulate_warpsync(const OperandReader& r, Op& op) {
  op.kind = r.has(Modifier::COLLECTIVE) ? OpKind::WarpSyncCollective : OpKind::WarpSync;
  op.variant = r.has(Modifier::ALL) || r.values() == 0 ? 1 : 0;
  op.a = r.integer(0);
  if (r.target() != nullptr) op.target = r.target()->immediate;
  op.carry_out = r.has(Modifier::EXCLUSIVE);
  return !(op.carry_out && (op.variant != 0 || op.kind == OpKind::WarpSyncCollective));
}

/// BAR: a = barrier, b = threads (absent: all of the block), p[0] what BAR.RED reduces.
bool emulate_bar(const OperandReader& r, Op& op) {
  op.kind = OpKind::BlockBarrier;
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.has_uniform = r.values() > 1;  // a thread count is given
  u32 bits = 0;
  // A single register holds the thread count in its bits 16..27 (sass.md 2.5).
  op.carry_out = r.values() == 1 && !r.literal(0, bits);
  op.p[0] = r.predicate(0);
  const bool arrive = r.has(Modifier::ARV), reduce = r.has(Modifier::RED);
  op.variant = static_cast<std::uint8_t>(arrive   ? BarrierAction::Arrive
                                         : reduce ? BarrierAction::Reduce
                                                  : BarrierAction::Sync);
  op.combine = static_cast<std::uint8_t>(r.has(Modifier::POPC)  ? ReduceOperation::Popc
                                         : r.has(Modifier::AND) ? ReduceOperation::And
                                                                : ReduceOperation::Or);
  return (arrive || reduce || r.has(Modifier::SYNC)) && !r.has(Modifier::SCAN);
}

bool emulate_qspc(const OperandReader& r, Op& op) {
  if (r.memory() == nullptr) return false;
  op.a = r.index_source(*r.memory());
  op.offset = r.memory()->offset;
  op.variant = r.has(Modifier::S) ? 0 : r.has(Modifier::L) ? 1 : 2;
  op.run = qspc;
  return true;
}

bool emulate_exit(const OperandReader& r, Op& op) {
  op.p[0] = r.predicate(0);
  return decode_as(op, OpKind::Exit);
}

bool emulate_brx(const OperandReader& r, Op& op) { return decode_indirect(r, op, OpKind::IndirectBranch); }
bool emulate_ret(const OperandReader& r, Op& op) { return decode_indirect(r, op, OpKind::Return); }
bool emulate_bssy(const OperandReader& r, Op& op) { return decode_convergence(r, op, OpKind::BarrierSet); }
bool emulate_bsync(const OperandReader& r, Op& op) { return decode_convergence(r, op, OpKind::BarrierSync); }
bool emulate_break(const OperandReader& r, Op& op) { return decode_convergence(r, op, OpKind::BarrierBreak); }
bool emulate_endcollective(const OperandReader&, Op& op) { return decode_as(op, OpKind::EndCollective); }
bool emulate_yield(const OperandReader&, Op& op) { return decode_as(op, OpKind::Yield); }
bool emulate_nanosleep(const OperandReader&, Op& op) { return decode_as(op, OpKind::Sleep); }

bool emulate_lepc(const OperandReader&, Op& op) {
  op.run = lepc;
  return true;
}

/// Fences, cache hints, waits for scoreboards: no effect on what is emulated.
bool emulate_nothing(const OperandReader&, Op& op) { return decode_as(op, OpKind::Skip); }

}  // namespace forewarp::emulation
