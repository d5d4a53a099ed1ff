// Integer arithmetic: adds with carries, multiplies, address arithmetic, comparisons, minima. Uniform-datapath versions
// are the same functions, since uniform registers are rows too. Semantics: sass.md 2.3.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "emulation/machine/exec.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

u64 join(u32 low, u32 high) { return low | static_cast<u64>(high) << 32; }

/// Lanes of a mask as 0 or 1.
void spread_bit(const Exec& x, LaneMask mask, u32* out) {
  const u32* bit = x.lane_bit.lane.data();
  FW_LANES out[i] = (mask & bit[i]) != 0 ? 1u : 0u;
}

// --- IADD3 -----------------------------------------------------------------------------------------------------------

void iadd3(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const u32 fa = op.a.flip, fb = op.b.flip, fc = op.c.flip, k = op.a.add + op.b.add + op.c.add;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = (a[i] ^ fa) + (b[i] ^ fb) + (c[i] ^ fc) + k; });
}

/// Carries out and in. The two carry predicates together hold the carry: 0, 1 or 2. With .X a '-' is a bitwise NOT, so
/// the decoder has cleared the summand 1 of the negations.
template <bool kCarryIn>
void iadd3_carry(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const u32 fa = op.a.flip, fb = op.b.flip, fc = op.c.flip;
  const u64 k = u64{op.a.add} + op.b.add + op.c.add;
  alignas(64) u32 in0[kWarpLanes] = {}, in1[kWarpLanes] = {}, carry[kWarpLanes];
  if constexpr (kCarryIn) {
    spread_bit(x, x.predicate(op.p[0]), in0);
    spread_bit(x, x.predicate(op.p[1]), in1);
  }
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u64 s = u64{a[i] ^ fa} + (b[i] ^ fb) + (c[i] ^ fc) + k + in0[i] + in1[i];
      d[i] = static_cast<u32>(s);
      carry[i] = static_cast<u32>(s >> 32);
    }
  });
  if (!op.carry_out) return;
  x.set_predicate(op.pdst[0], pack_lanes(x, carry));
  FW_LANES carry[i] >>= 1;
  x.set_predicate(op.pdst[1], pack_lanes(x, carry));
}

/// UIADD3.64.
void iadd64(Exec& x, const Op& op) {
  const auto value = [&](const Source& s, int i) {
    const u64 raw = x.row(s)[i] | u64{x.high(s)[i]} << 32;
    return (raw ^ (s.flip != 0 ? ~u64{0} : 0)) + s.add;
  };
  write_pair(x, op, [&](u32* low, u32* high) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const u64 sum = value(op.a, i) + value(op.b, i) + value(op.c, i);
      low[i] = static_cast<u32>(sum);
      high[i] = static_cast<u32>(sum >> 32);
    }
  });
}

// --- IMAD ------------------------------------------------------------------------------------------------------------

void imad(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const IntegerModifier ma(op.a), mb(op.b), mc(op.c);
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = ma(a[i]) * mb(b[i]) + mc(c[i]); });
}

void imad_x(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const u32 fc = op.c.flip;
  const IntegerModifier ma(op.a), mb(op.b);
  alignas(64) u32 in[kWarpLanes], carry[kWarpLanes];
  spread_bit(x, x.predicate(op.p[0]), in);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u64 s = u64{ma(a[i]) * mb(b[i])} + (c[i] ^ fc) + in[i];
      d[i] = static_cast<u32>(s);
      carry[i] = static_cast<u32>(s >> 32);
    }
  });
  if (op.carry_out) x.set_predicate(op.pdst[0], pack_lanes(x, carry));
}

template <bool kSigned>
u64 product(u32 a, u32 b) {
  if constexpr (kSigned) return static_cast<u64>(i64{static_cast<i32>(a)} * static_cast<i32>(b));
  return u64{a} * b;
}

/// a * b + c with a 64-bit c; kHigh keeps the upper word alone.
template <bool kSigned, bool kHigh>
void imad_wide(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *cl = x.row(op.c), *ch = x.high(op.c);
  const IntegerModifier ma(op.a), mb(op.b);
  const u32 fc = op.c.flip, kc = op.c.add;
  const auto sum = [&](int i) { return product<kSigned>(ma(a[i]), mb(b[i])) + join(cl[i] ^ fc, ch[i] ^ fc) + kc; };
  if constexpr (kHigh) {
    write_row(x, op, [&](u32* d) { FW_LANES d[i] = static_cast<u32>(sum(i) >> 32); });
  } else {
    write_pair(x, op, [&](u32* d, u32* h) {
      FW_LANES {
        const u64 s = sum(i);
        d[i] = static_cast<u32>(s);
        h[i] = static_cast<u32>(s >> 32);
      }
    });
  }
}

/// The same with a carry in (.X) and a carry out.
template <bool kSigned, bool kHigh>
void imad_wide_carry(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *cl = x.row(op.c), *ch = x.high(op.c);
  const IntegerModifier ma(op.a), mb(op.b);
  const u32 fc = op.c.flip, kc = op.c.add;
  alignas(64) u32 in[kWarpLanes] = {}, carry[kWarpLanes];
  if (op.variant != 0) spread_bit(x, x.predicate(op.p[0]), in);
  const auto lane = [&](int i) {
    const u64 p = product<kSigned>(ma(a[i]), mb(b[i])), c = join(cl[i] ^ fc, ch[i] ^ fc);
    const u64 first = p + c, s = first + kc + in[i];
    carry[i] = static_cast<u32>(first < p) | static_cast<u32>(s < first);
    return s;
  };
  if constexpr (kHigh) {
    write_row(x, op, [&](u32* d) { FW_LANES d[i] = static_cast<u32>(lane(i) >> 32); });
  } else {
    write_pair(x, op, [&](u32* d, u32* h) {
      FW_LANES {
        const u64 s = lane(i);
        d[i] = static_cast<u32>(s);
        h[i] = static_cast<u32>(s >> 32);
      }
    });
  }
  if (op.carry_out) x.set_predicate(op.pdst[0], pack_lanes(x, carry));
}

Handler wide_handler(bool is_signed, bool high, bool carry) {
  if (carry) {
    if (high) return is_signed ? imad_wide_carry<true, true> : imad_wide_carry<false, true>;
    return is_signed ? imad_wide_carry<true, false> : imad_wide_carry<false, false>;
  }
  if (high) return is_signed ? imad_wide<true, true> : imad_wide<false, true>;
  return is_signed ? imad_wide<true, false> : imad_wide<false, false>;
}

// --- LEA -------------------------------------------------------------------------------------------------------------

/// (a << s) + b, or with kHigh the upper word of {c:a} << s, plus b; .X adds a carry and reads '-' as NOT.
template <bool kHigh>
void lea(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const u32 fa = op.a.flip, fb = op.b.flip, s = op.immediate;
  const u64 k = u64{op.a.add} + op.b.add;
  const bool extend = op.variant != 0;
  alignas(64) u32 in[kWarpLanes] = {}, carry[kWarpLanes];
  if (op.d.add != 0) spread_bit(x, x.predicate(op.p[0]), in);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      u32 shifted = a[i] << s;
      if constexpr (kHigh) {
        const u32 high = extend ? static_cast<u32>(static_cast<i32>(a[i]) >> 31) : c[i];
        shifted = static_cast<u32>((join(a[i], high) << s) >> 32);
      }
      const u64 sum = u64{shifted ^ fa} + (b[i] ^ fb) + k + in[i];
      d[i] = static_cast<u32>(sum);
      carry[i] = static_cast<u32>(sum >> 32);
    }
  });
  if (op.carry_out) x.set_predicate(op.pdst[0], pack_lanes(x, carry));
}

void lea_plain(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const u32 fa = op.a.flip, fb = op.b.flip, s = op.immediate, k = op.a.add + op.b.add;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = ((a[i] << s) ^ fa) + (b[i] ^ fb) + k; });
}

// --- comparisons -----------------------------------------------------------------------------------------------------

template <class T>
u32 compare(T a, T b, u32 less, u32 equal, u32 greater) {
  return a < b ? less : a == b ? equal : greater;
}

template <class T>
LaneMask compare_lanes(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const IntegerModifier ma(op.a), mb(op.b);
  const u32 less = op.variant & kLess, equal = op.variant & kEqual, greater = op.variant & kGreater;
  alignas(64) u32 flag[kWarpLanes];
  FW_LANES flag[i] = compare<T>(static_cast<T>(ma(a[i])), static_cast<T>(mb(b[i])), less, equal, greater);
  return pack_lanes(x, flag);
}

template <class T>
void isetp(Exec& x, const Op& op) {
  write_comparison(x, op, compare_lanes<T>(x, op));
}

/// The upper half of a 64-bit comparison: where the words are equal the lower half's outcome decides.
template <class T>
void isetp_ex(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const IntegerModifier ma(op.a), mb(op.b);
  alignas(64) u32 same[kWarpLanes];
  FW_LANES same[i] = ma(a[i]) == mb(b[i]) ? 1u : 0u;
  const LaneMask equal = pack_lanes(x, same);
  const LaneMask low = x.predicate(op.p[1]);
  write_comparison(x, op, (equal & low) | (~equal & compare_lanes<T>(x, op)));
}

template <class T>
void iset(Exec& x, const Op& op) {
  const LaneMask with = x.predicate(op.p[0]), outcome = compare_lanes<T>(x, op);
  const LaneMask set = op.combine == 0 ? outcome & with : op.combine == 1 ? outcome | with : outcome ^ with;
  const u32 one = op.immediate;
  write_row(x, op, [&](u32* d) {
    const u32* bit = x.lane_bit.lane.data();
    FW_LANES d[i] = (set & bit[i]) != 0 ? one : 0u;
  });
}

template <class T>
void imnmx(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const IntegerModifier ma(op.a), mb(op.b);
  alignas(64) u32 minimum[kWarpLanes];
  spread_mask(x, x.predicate(op.p[0]), minimum);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const T l = static_cast<T>(ma(a[i])), r = static_cast<T>(mb(b[i]));
      const u32 low = static_cast<u32>(l < r ? l : r), high = static_cast<u32>(l < r ? r : l);
      d[i] = (low & minimum[i]) | (high & ~minimum[i]);
    }
  });
}

/// min or max of a + b and c.
template <class T>
void viaddmnmx(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const IntegerModifier ma(op.a), mb(op.b), mc(op.c);
  alignas(64) u32 minimum[kWarpLanes];
  spread_mask(x, x.predicate(op.p[0]), minimum);
  const bool relu = op.variant != 0;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const T l = static_cast<T>(ma(a[i]) + mb(b[i])), r = static_cast<T>(mc(c[i]));
      T v = minimum[i] != 0 ? (l < r ? l : r) : (l < r ? r : l);
      if (relu && v < T{0}) v = T{0};
      d[i] = static_cast<u32>(v);
    }
  });
}

// --- the rest --------------------------------------------------------------------------------------------------------

void sel(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const IntegerModifier ma(op.a), mb(op.b);
  alignas(64) u32 take[kWarpLanes];
  spread_mask(x, x.predicate(op.p[0]), take);
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = (ma(a[i]) & take[i]) | (mb(b[i]) & ~take[i]); });
}

void iabs(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const IntegerModifier ma(op.a);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 v = ma(a[i]);
      d[i] = (v >> 31) != 0 ? 0u - v : v;
    }
  });
}

void vabsdiff(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const IntegerModifier ma(op.a), mb(op.b), mc(op.c);
  const bool is_signed = op.variant != 0;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 l = ma(a[i]), r = mb(b[i]);
      const bool less = is_signed ? static_cast<i32>(l) < static_cast<i32>(r) : l < r;
      d[i] = (less ? r - l : l - r) + mc(c[i]);
    }
  });
}

/// Byte-wise |a - b|, with the source c added to each byte's place.
void vabsdiff4(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const bool is_signed = op.variant != 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 out = 0;
      for (int s = 0; s < 32; s += 8) {
        const int l = is_signed ? static_cast<std::int8_t>(a[i] >> s) : static_cast<std::uint8_t>(a[i] >> s);
        const int r = is_signed ? static_cast<std::int8_t>(b[i] >> s) : static_cast<std::uint8_t>(b[i] >> s);
        out |= (static_cast<u32>(l < r ? r - l : l - r) & 0xffu) << s;
      }
      d[i] = out + c[i];
    }
  });
}

int byte_of(u32 word, int shift, bool is_signed) {
  return is_signed ? static_cast<std::int8_t>(word >> shift) : static_cast<std::uint8_t>(word >> shift);
}

/// IDP.4A: c + sum of four byte products. variant bit 0: a signed, bit 1: b signed.
void idp4a(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const bool sa = (op.variant & 1) != 0, sb = (op.variant & 2) != 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 sum = c[i];
      for (int s = 0; s < 32; s += 8) sum += static_cast<u32>(byte_of(a[i], s, sa) * byte_of(b[i], s, sb));
      d[i] = sum;
    }
  });
}

/// IDP.2A: c + a's two halves times the lower or (immediate 16) the upper two bytes of b. variant as of idp4a.
void idp2a(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const bool sa = (op.variant & 1) != 0, sb = (op.variant & 2) != 0;
  const int at = static_cast<int>(op.immediate);
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 sum = c[i];
      for (int k = 0; k < 2; ++k) {
        const u32 bits = a[i] >> (16 * k) & 0xffffu;
        const std::int32_t half = sa ? static_cast<std::int16_t>(bits) : static_cast<std::int32_t>(bits);
        sum += static_cast<u32>(half) * static_cast<u32>(byte_of(b[i], at + 8 * k, sb));
      }
      d[i] = sum;
    }
  });
}

void viadd16x2(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  write_row(x, op,
            [&](u32* d) { FW_LANES d[i] = ((a[i] + b[i]) & 0xffffu) | ((a[i] & 0xffff0000u) + (b[i] & 0xffff0000u)); });
}

// --- decoding --------------------------------------------------------------------------------------------------------

/// .U32 clears the sign; the compiler writes IMAD.WIDE.U32 and IMAD.HI.U32.
bool is_signed(const OperandReader& r) { return !r.has(Modifier::U32) && !r.has(Modifier::U64); }

void clear_negation_carry(Op& op) { op.a.add = op.b.add = op.c.add = 0; }

bool carries_out(const Op& op) { return op.pdst[0] != kDiscardedPredicate || op.pdst[1] != kDiscardedPredicate; }

}  // namespace

bool emulate_iadd(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.p[0] = r.predicate(0);
  op.p[1] = r.predicate(1);
  if (r.predicates() < 2) op.p[1].flip = ~op.p[1].flip;  // a missing second carry is false
  op.carry_out = carries_out(op);
  if (r.has(Modifier::B64)) {
    op.a = r.integer64(0);
    op.b = r.integer64(1);
    op.c = r.integer64(2);
    op.run = iadd64;
    return !op.carry_out && !r.has(Modifier::X);
  }
  if (r.has(Modifier::B16x2)) {
    op.run = viadd16x2;
    return r.values() == 2;
  }
  if (r.has(Modifier::X)) {
    clear_negation_carry(op);
    op.run = iadd3_carry<true>;
  } else {
    op.run = op.carry_out ? iadd3_carry<false> : iadd3;
  }
  return true;
}

bool emulate_imad(const OperandReader& r, Op& op) {
  const bool wide = r.has(Modifier::WIDE), high = r.has(Modifier::HI), with_carry = r.has(Modifier::X);
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = wide || high ? r.integer64(2) : r.integer(2);
  op.p[0] = r.predicate(0);
  op.carry_out = carries_out(op);
  if (with_carry) op.c.add = 0;
  if (wide || high) {
    op.variant = with_carry ? 1 : 0;
    op.run = wide_handler(is_signed(r), high, with_carry || op.carry_out);
    return true;
  }
  // IMAD.MOV copies: a and b are RZ.
  std::uint32_t zero = 1;
  if (!with_carry && r.literal(0, zero) && zero == 0 && op.c.flip == 0 && op.a.flip == 0) {
    op.a = op.c;
    op.run = move_rows1;
    return true;
  }
  op.run = with_carry || op.carry_out ? imad_x : imad;
  if (!with_carry && op.carry_out) return false;
  return true;
}

bool emulate_lea(const OperandReader& r, Op& op) {
  const bool high = r.has(Modifier::HI), extend = r.has(Modifier::SX32), with_carry = r.has(Modifier::X);
  op.a = r.integer(0);
  op.b = r.integer(1);
  // LEA d, a, b, shift; LEA.HI d, a, b, a_high, shift; LEA.HI.SX32 d, a, b, shift.
  const std::size_t shift_at = high && !extend ? 3 : 2;
  if (high && !extend) op.c = r.integer(2);
  std::uint32_t shift = 0;
  if (!r.literal(shift_at, shift)) return false;
  op.immediate = shift & 31u;
  op.variant = extend ? 1 : 0;
  op.p[0] = r.predicate(0);
  op.carry_out = carries_out(op);
  op.d.add = with_carry ? 1 : 0;
  if (with_carry) op.a.add = op.b.add = 0;
  if (high) {
    op.run = lea<true>;
  } else {
    op.run = with_carry || op.carry_out ? lea<false> : lea_plain;
  }
  return true;
}

bool emulate_isetp(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.variant = comparison_bits(r.instruction());
  op.combine = combination(r.instruction());
  op.p[0] = r.predicate(0);
  op.p[1] = r.predicate(1);
  const bool sign = is_signed(r);
  if (r.instruction().opcode == Opcode::ISET) {
    op.immediate = r.has(Modifier::BF) ? 0x3f800000u : ~0u;
    op.run = sign ? iset<i32> : iset<u32>;
  } else if (r.has(Modifier::EX)) {
    op.run = sign ? isetp_ex<i32> : isetp_ex<u32>;
  } else {
    op.run = sign ? isetp<i32> : isetp<u32>;
  }
  return true;
}

bool emulate_idp(const OperandReader& r, Op& op) {
  if (r.has(Modifier::Dot2)) {
    op.a = r.integer(0);
    op.b = r.integer(1);
    op.c = r.integer(2);
    op.variant = static_cast<std::uint8_t>((r.has(Modifier::S16) ? 1 : 0) | (r.has(Modifier::S8) ? 2 : 0));
    op.immediate = r.has(Modifier::HI) ? 16 : 0;
    op.run = idp2a;
    return r.has(Modifier::HI) != r.has(Modifier::LO);
  }
  if (!r.has(Modifier::Dot4)) return false;
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  const Instruction& in = r.instruction();
  int side = 0;
  for (int m = 0; m < in.modifier_count && side < 2; ++m) {
    const Modifier modifier = in.modifier_list[static_cast<std::size_t>(m)];
    if (modifier != Modifier::S8 && modifier != Modifier::U8) continue;
    if (modifier == Modifier::S8) op.variant = static_cast<std::uint8_t>(op.variant | 1 << side);
    ++side;
  }
  op.run = idp4a;
  return true;
}

bool emulate_imnmx(const OperandReader& r, Op& op) {
  if (r.values() != 2) return false;
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.p[0] = r.predicate(0);
  op.run = is_signed(r) ? imnmx<i32> : imnmx<u32>;
  return true;
}

namespace {

/// The least or greatest of three, of whole words or of halves; with Relu not below zero.
template <class T, bool Relu>
void vimnmx3(Exec& x, const Op& op) {
  constexpr int kBits = 8 * sizeof(T);
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const IntegerModifier ma(op.a), mb(op.b), mc(op.c);
  const LaneMask minimum = x.predicate(op.p[0]);
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 out = 0;
      for (int part = 0; part < 32; part += kBits) {
        const auto of = [part](u32 word) { return static_cast<T>(word >> part); };
        const auto three = {of(ma(a[i])), of(mb(b[i])), of(mc(c[i]))};
        T v = (minimum >> i & 1u) != 0 ? std::min(three) : std::max(three);
        if (Relu) v = std::max(v, T{0});
        out |= static_cast<u32>(static_cast<std::make_unsigned_t<T>>(v)) << part;
      }
      d[i] = out;
    }
  });
}

}  // namespace

bool emulate_vimnmx3(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.p[0] = r.predicate(0);
  const bool relu = r.has(Modifier::RELU);
  if (r.has(Modifier::S16x2)) {
    op.run = relu ? vimnmx3<std::int16_t, true> : vimnmx3<std::int16_t, false>;
  } else if (r.has(Modifier::U16x2)) {
    op.run = vimnmx3<std::uint16_t, false>;
  } else if (is_signed(r)) {
    op.run = relu ? vimnmx3<i32, true> : vimnmx3<i32, false>;
  } else {
    op.run = vimnmx3<u32, false>;
  }
  return r.values() == 3;
}

bool emulate_viaddmnmx(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.p[0] = r.predicate(0);
  op.variant = r.has(Modifier::RELU) ? 1 : 0;
  op.run = is_signed(r) ? viaddmnmx<i32> : viaddmnmx<u32>;
  return !r.has(Modifier::S16x2) && !r.has(Modifier::U16x2) && !r.has(Modifier::B16x2);
}

bool emulate_sel(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.p[0] = r.predicate(0);
  op.run = sel;
  return true;
}

bool emulate_iabs(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.run = iabs;
  return true;
}

bool emulate_vabsdiff(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.variant = !r.has(Modifier::U32);
  op.run = vabsdiff;
  return true;
}

bool emulate_vabsdiff4(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.variant = r.has(Modifier::S8);
  op.run = vabsdiff4;
  return true;
}

}  // namespace forewarp::emulation
