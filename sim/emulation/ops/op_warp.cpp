// Lanes together: shuffles, votes, matches, reductions; moves between lanes and uniform registers; special registers.
#include <algorithm>
#include <bit>

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

int first_lane(LaneMask m) { return std::countr_zero(m); }

// --- SHFL ------------------------------------------------------------------------------------------------------------

enum ShuffleMode : std::uint8_t { kIndexed, kUp, kDown, kButterfly };

/// As PTX shfl: c holds the clamp in bits 0..4 and the segment mask in bits 8..12.
void shfl(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  alignas(64) u32 from[kWarpLanes];
  LaneMask in_range = 0;
  for (u32 i = 0; i < kWarpLanes; ++i) {
    const u32 segment = c[i] >> 8 & 31u, clamp = c[i] & 31u, amount = b[i] & 31u;
    const u32 highest = (i & segment) | (clamp & ~segment);
    u32 source = 0;
    bool valid = false;
    switch (op.variant) {
      case kUp: {
        const int j = static_cast<int>(i) - static_cast<int>(amount);
        valid = j >= static_cast<int>(highest);
        source = static_cast<u32>(j);
        break;
      }
      case kDown:
        source = i + amount;
        valid = source <= highest;
        break;
      case kButterfly:
        source = i ^ amount;
        valid = source <= highest;
        break;
      default:
        source = (i & segment) | (amount & ~segment);
        valid = source <= highest;
        break;
    }
    in_range |= static_cast<LaneMask>(valid) << i;
    from[i] = valid ? source & 31u : i;
  }
  alignas(64) u32 value[kWarpLanes];
  FW_LANES value[i] = a[from[i]];
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = value[i]; });
  x.set_predicate(op.pdst[0], in_range);
}

// --- VOTE, MATCH, REDUX, ELECT ---------------------------------------------------------------------------------------

enum VoteMode : std::uint8_t { kAll, kAny, kEqualVote };

LaneMask vote_result(const Exec& x, const Op& op, LaneMask ballot) {
  switch (op.variant) {
    case kAll:
      return ballot == x.active ? ~0u : 0u;
    case kAny:
      return ballot != 0 ? ~0u : 0u;
    default:
      return ballot == 0 || ballot == x.active ? ~0u : 0u;
  }
}

/// Votes see the lanes whose guard is true.
void vote(Exec& x, const Op& op) {
  const LaneMask all = x.active;
  x.active = x.enabled;
  const LaneMask ballot = x.predicate(op.p[0]) & x.enabled;
  const LaneMask result = vote_result(x, op, ballot);
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = ballot; });
  x.set_predicate(op.pdst[0], result);
  x.active = all;
}

void set_uniform_predicate(Exec& x, int slot, LaneMask value) { x.predicates[slot] = value; }

void voteu(Exec& x, const Op& op) {
  const LaneMask ballot = x.predicate(op.p[0]) & x.active;
  write_uniform(x, op.dst, ballot);
  set_uniform_predicate(x, op.pdst[0], vote_result(x, op, ballot));
}

void match(Exec& x, const Op& op) {
  const u32 *low = x.row(op.a), *high = op.bytes == 8 ? x.high(op.a) : low;
  const auto same = [&](int i, int j) { return low[i] == low[j] && high[i] == high[j]; };
  alignas(64) u32 mask[kWarpLanes] = {};
  for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
    const int i = first_lane(m);
    for (LaneMask n = x.enabled; n != 0; n &= n - 1) {
      if (same(i, first_lane(n))) mask[i] |= n & (0u - n);
    }
  }
  LaneMask matched = x.enabled;
  if (op.variant == kAll) {
    const bool all = mask[first_lane(x.enabled)] == x.enabled;
    matched = all ? ~0u : 0u;
    FW_LANES mask[i] = all ? x.enabled : 0u;
  }
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = mask[i]; });
  x.set_predicate(op.pdst[0], matched);
}

enum ReduceKind : std::uint8_t { kSum, kMin, kMax, kAnd, kOr, kXor };

void redux(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const bool is_signed = op.combine != 0;
  u32 r = a[first_lane(x.enabled)];
  for (LaneMask m = x.enabled & (x.enabled - 1); m != 0; m &= m - 1) {
    const u32 v = a[first_lane(m)];
    const bool less = is_signed ? static_cast<i32>(v) < static_cast<i32>(r) : v < r;
    switch (op.variant) {
      case kSum:
        r += v;
        break;
      case kMin:
        r = less ? v : r;
        break;
      case kMax:
        r = less ? r : v;
        break;
      case kAnd:
        r &= v;
        break;
      case kOr:
        r |= v;
        break;
      default:
        r ^= v;
        break;
    }
  }
  write_uniform(x, op.dst, r);
}

void elect(Exec& x, const Op& op) {
  const LaneMask leader = x.enabled & (0u - x.enabled);
  write_uniform(x, op.dst, static_cast<u32>(first_lane(leader)));
  x.set_predicate(op.pdst[0], leader);
}

void r2ur(Exec& x, const Op& op) { write_uniform(x, op.dst, x.row(op.a)[first_lane(x.enabled)]); }

// --- special registers -----------------------------------------------------------------------------------------------

u32 thread_coordinate(const BlockState& block, u32 thread, SpecialRegister which) {
  const Dim3& extent = block.block;
  if (which == SpecialRegister::TidX) return thread % extent.x;
  if (which == SpecialRegister::TidY) return thread / extent.x % extent.y;
  return thread / extent.x / extent.y;
}

u32 lane_register(const Exec& x, SpecialRegister which, u32 lane) {
  const u32 bit = 1u << lane;
  switch (which) {
    case SpecialRegister::LaneId:
      return lane;
    case SpecialRegister::EqMask:
      return bit;
    case SpecialRegister::LtMask:
      return bit - 1;
    case SpecialRegister::LeMask:
      return bit | (bit - 1);
    case SpecialRegister::GtMask:
      return ~(bit | (bit - 1));
    case SpecialRegister::GeMask:
      return ~(bit - 1);
    default:
      return thread_coordinate(*x.block, static_cast<u32>(x.warp->index) * kWarpLanes + lane, which);
  }
}

u32 block_register(const Exec& x, SpecialRegister which) {
  const BlockState& block = *x.block;
  switch (which) {
    case SpecialRegister::CtaIdX:
      return block.index.x;
    case SpecialRegister::CtaIdY:
      return block.index.y;
    case SpecialRegister::CtaIdZ:
      return block.index.z;
    // %warpid is read out of bits 8..14 of the virtual id, %smid is 0 here.
    case SpecialRegister::VirtId:
      return static_cast<u32>(x.warp->index) << 8;
    case SpecialRegister::ClockLo:
    case SpecialRegister::GlobalTimerLo:
      return static_cast<u32>(block.clock);
    case SpecialRegister::ClockHi:
    case SpecialRegister::GlobalTimerHi:
      return static_cast<u32>(block.clock >> 32);
    case SpecialRegister::SwinHi:
      return static_cast<u32>(kSharedWindow >> 32);
    case SpecialRegister::SmemSize:
      return static_cast<u32>(block.shared.size());
    case SpecialRegister::CgaCtaId:
      return block.cluster_rank;
    default:
      return 0;
  }
}

bool differs_by_lane(SpecialRegister which) {
  switch (which) {
    case SpecialRegister::LaneId:
    case SpecialRegister::TidX:
    case SpecialRegister::TidY:
    case SpecialRegister::TidZ:
    case SpecialRegister::EqMask:
    case SpecialRegister::LtMask:
    case SpecialRegister::LeMask:
    case SpecialRegister::GtMask:
    case SpecialRegister::GeMask:
      return true;
    default:
      return false;
  }
}

void s2r_lane(Exec& x, const Op& op) {
  const auto which = static_cast<SpecialRegister>(op.variant);
  const Dim3& extent = x.block->block;
  if (which == SpecialRegister::TidX && extent.y == 1 && extent.z == 1) {
    const u32 first = static_cast<u32>(x.warp->index) * kWarpLanes;
    write_row(x, op, [&](u32* d) { FW_LANES d[i] = first + static_cast<u32>(i); });
    return;
  }
  write_row(x, op, [&](u32* d) {
    for (u32 i = 0; i < kWarpLanes; ++i) d[i] = lane_register(x, which, i);
  });
}

void s2r_block(Exec& x, const Op& op) {
  const u32 v = block_register(x, static_cast<SpecialRegister>(op.variant));
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = v; });
}

/// CS2R without .32 reads a pair: the register named and the one after it.
void cs2r_pair(Exec& x, const Op& op) {
  const auto which = static_cast<SpecialRegister>(op.variant);
  u32 low = block_register(x, which), high = 0;
  if (which == SpecialRegister::ClockLo || which == SpecialRegister::GlobalTimerLo) {
    high = static_cast<u32>(x.block->clock >> 32);
  }
  write_pair(x, op, [&](u32* d, u32* h) {
    FW_LANES {
      d[i] = low;
      h[i] = high;
    }
  });
}

void s2ur(Exec& x, const Op& op) {
  const auto which = static_cast<SpecialRegister>(op.variant);
  const auto lane = static_cast<u32>(first_lane(x.enabled));
  write_uniform(x, op.dst, differs_by_lane(which) ? lane_register(x, which, lane) : block_register(x, which));
}

/// Result of the block barrier the warp has passed last.
void b2r_result(Exec& x, const Op& op) {
  const u32 v = x.warp->barrier_result;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = v; });
  x.set_predicate(op.pdst[0], v != 0 ? ~0u : 0u);
}

// --- decoding --------------------------------------------------------------------------------------------------------

bool decode_vote(const OperandReader& r, Op& op, Handler run) {
  op.p[0] = r.predicate(0);
  op.variant = r.has(Modifier::ALL) ? kAll : r.has(Modifier::ANY) ? kAny : kEqualVote;
  op.run = run;
  return true;
}

}  // namespace

bool emulate_shfl(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.variant = r.has(Modifier::BFLY)   ? kButterfly
               : r.has(Modifier::DOWN) ? kDown
               : r.has(Modifier::UP)   ? kUp
                                       : kIndexed;
  op.run = shfl;
  return true;
}

bool emulate_redux(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.variant = r.has(Modifier::SUM)   ? kSum
               : r.has(Modifier::MIN) ? kMin
               : r.has(Modifier::MAX) ? kMax
               : r.has(Modifier::AND) ? kAnd
               : r.has(Modifier::XOR) ? kXor
               : r.has(Modifier::OR)  ? kOr
                                      : kSum;
  op.combine = r.has(Modifier::S32) ? 1 : 0;
  op.run = redux;
  return true;
}

bool emulate_s2r(const OperandReader& r, Op& op) {
  if (r.special() == nullptr || r.special()->special == SpecialRegister::Other) return false;
  const SpecialRegister which = r.special()->special;
  op.variant = static_cast<std::uint8_t>(which);
  const Opcode opcode = r.instruction().opcode;
  if (opcode == Opcode::S2UR) {
    op.run = s2ur;
  } else if (opcode == Opcode::CS2R && !r.has(Modifier::B32)) {
    op.run = cs2r_pair;
  } else {
    op.run = differs_by_lane(which) ? s2r_lane : s2r_block;
  }
  return true;
}

bool emulate_vote(const OperandReader& r, Op& op) { return decode_vote(r, op, vote); }
bool emulate_voteu(const OperandReader& r, Op& op) { return decode_vote(r, op, voteu); }

bool emulate_match(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.bytes = r.has(Modifier::U64) ? 8 : 4;
  op.variant = r.has(Modifier::ALL) ? kAll : kAny;
  op.run = match;
  return true;
}

bool emulate_elect(const OperandReader&, Op& op) {
  op.run = elect;
  return true;
}

bool emulate_r2ur(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.run = r2ur;
  return true;
}

bool emulate_b2r(const OperandReader& r, Op& op) {
  op.run = b2r_result;
  return r.has(Modifier::RESULT);
}

}  // namespace forewarp::emulation
