// Bits: logic, shifts, permutations, counting, moves, predicate logic. Semantics: sass.md 2.3.
#include <algorithm>
#include <bit>

#include "emulation/machine/exec.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {

template <int kRows>
static void move_rows(Exec& x, const Op& op) {
  for (std::uint32_t r = 0; r < kRows; ++r) {
    const std::uint32_t* a = x.row(op.a.row + r * kRowBytes);
    std::uint32_t* d = x.full ? x.register_row(op.dst + r * kRowBytes) : x.scratch[r].lane.data();
    FW_LANES d[i] = a[i];
  }
  if (!x.full) merge_rows(x, op.dst, kRows);
}

void move_rows1(Exec& x, const Op& op) { move_rows<1>(x, op); }
void move_rows2(Exec& x, const Op& op) { move_rows<2>(x, op); }
void move_rows4(Exec& x, const Op& op) { move_rows<4>(x, op); }

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;
using i64 = std::int64_t;

u64 join(u32 low, u32 high) { return low | static_cast<u64>(high) << 32; }

// --- LOP3 ------------------------------------------------------------------------------------------------------------

/// All-ones where bit `index` of the table is set.
u32 table_mask(u32 table, int index) { return (table >> index & 1u) != 0 ? ~0u : 0u; }

u32 choose(u32 selector, u32 one, u32 zero) { return zero ^ (selector & (zero ^ one)); }

/// Result bit = table[a << 2 | b << 1 | c], as a tree of choices.
struct ThreeInputLogic {
  u32 m0, m1, m2, m3, m4, m5, m6, m7;
  explicit ThreeInputLogic(u32 t)
      : m0(table_mask(t, 0)),
        m1(table_mask(t, 1)),
        m2(table_mask(t, 2)),
        m3(table_mask(t, 3)),
        m4(table_mask(t, 4)),
        m5(table_mask(t, 5)),
        m6(table_mask(t, 6)),
        m7(table_mask(t, 7)) {}
  u32 operator()(u32 a, u32 b, u32 c) const {
    return choose(a, choose(b, choose(c, m7, m6), choose(c, m5, m4)), choose(b, choose(c, m3, m2), choose(c, m1, m0)));
  }
};

template <class F>
void logic(Exec& x, const Op& op, F f) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const u32 fa = op.a.flip, fb = op.b.flip, fc = op.c.flip;
  if (!op.carry_out) {
    write_row(x, op, [&](u32* d) { FW_LANES d[i] = f(a[i] ^ fa, b[i] ^ fb, c[i] ^ fc); });
    return;
  }
  alignas(64) u32 result[kWarpLanes];
  write_row(x, op, [&](u32* d) { FW_LANES result[i] = d[i] = f(a[i] ^ fa, b[i] ^ fb, c[i] ^ fc); });
  const LaneMask nonzero = pack_lanes(x, result), with = x.predicate(op.p[0]);
  x.set_predicate(op.pdst[0], op.combine == 0 ? nonzero & with : nonzero | with);
}

void lop3(Exec& x, const Op& op) { logic(x, op, ThreeInputLogic(op.immediate)); }
void lop_and(Exec& x, const Op& op) {
  logic(x, op, [](u32 a, u32 b, u32) { return a & b; });
}
void lop_or(Exec& x, const Op& op) {
  logic(x, op, [](u32 a, u32 b, u32) { return a | b; });
}
void lop_xor(Exec& x, const Op& op) {
  logic(x, op, [](u32 a, u32 b, u32) { return a ^ b; });
}

LaneMask three_predicates(Exec& x, const Op& op, u32 table) {
  return ThreeInputLogic(table)(x.predicate(op.p[0]), x.predicate(op.p[1]), x.predicate(op.p[2]));
}

void plop3(Exec& x, const Op& op) {
  const LaneMask first = three_predicates(x, op, op.immediate & 0xffu);
  const LaneMask second = three_predicates(x, op, op.immediate >> 8 & 0xffu);
  x.set_predicate(op.pdst[0], first);
  x.set_predicate(op.pdst[1], second);
}

// --- shifts ----------------------------------------------------------------------------------------------------------

/// One word of the 64-bit value {high:low} shifted. Amounts clamp at the width, or wrap.
template <bool kToLeft, bool kUpper, bool kArithmetic>
void shf(Exec& x, const Op& op) {
  const u32 *low = x.row(op.a), *amount = x.row(op.b), *high = x.row(op.c);
  const u32 width = (op.variant & kShiftWide) != 0 ? 64 : 32;
  const bool wrap = (op.variant & kShiftWrap) != 0;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 s = wrap ? amount[i] & (width - 1) : std::min(amount[i], width);
      const u64 v = join(low[i], high[i]);
      u64 r;
      if constexpr (kToLeft) {
        r = s >= 64 ? 0 : v << (s & 63);
      } else if constexpr (kArithmetic) {
        r = static_cast<u64>(static_cast<i64>(v) >> std::min(s, 63u));
      } else {
        r = s >= 64 ? 0 : v >> (s & 63);
      }
      d[i] = static_cast<u32>(kUpper ? r >> 32 : r);
    }
  });
}

/// The usual forms with an amount known in advance: one 32-bit shift. op.immediate < 32.
void shift_left(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const u32 s = op.immediate;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = a[i] << s; });
}
void shift_right(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const u32 s = op.immediate;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = a[i] >> s; });
}
void shift_right_signed(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const u32 s = op.immediate;
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = static_cast<u32>(static_cast<i32>(a[i]) >> s); });
}

Handler shift_handler(std::uint8_t v) {
  const bool upper = (v & kShiftHigh) != 0, arithmetic = (v & kShiftSigned) != 0;
  if ((v & kShiftLeft) != 0) return upper ? shf<true, true, false> : shf<true, false, false>;
  if (upper) return arithmetic ? shf<false, true, true> : shf<false, true, false>;
  return arithmetic ? shf<false, false, true> : shf<false, false, false>;
}

// --- bytes and bits --------------------------------------------------------------------------------------------------

enum PermuteMode : std::uint8_t { kIndex, kForward, kBackward, kReplicate8, kEdgeLeft, kEdgeRight, kReplicate16 };

/// The selector nibbles that a mode stands for; index mode has them in the operand.
u32 permute_selector(std::uint8_t mode, u32 s) {
  static constexpr std::uint16_t kTable[7][4] = {{0, 0, 0, 0},
                                                 {0x3210, 0x4321, 0x5432, 0x6543},
                                                 {0x5670, 0x6701, 0x7012, 0x0123},
                                                 {0x0000, 0x1111, 0x2222, 0x3333},
                                                 {0x3210, 0x3211, 0x3222, 0x3333},
                                                 {0x0000, 0x1110, 0x2210, 0x3210},
                                                 {0x1010, 0x3232, 0x1010, 0x3232}};
  return mode == kIndex ? s : kTable[mode][s & 3u];
}

void prmt(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *s = x.row(op.b), *c = x.row(op.c);
  const std::uint8_t mode = op.variant;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 selector = mode == kIndex ? s[i] : permute_selector(mode, s[i]);
      u32 out = 0;
      for (u32 byte = 0; byte < 4; ++byte) {
        const u32 n = selector >> (4 * byte);
        u32 value = ((n & 4u) != 0 ? c[i] : a[i]) >> (8 * (n & 3u)) & 0xffu;
        const u32 sign = (value & 0x80u) != 0 ? 0xffu : 0u;
        value = (n & 8u) != 0 ? sign : value;
        out |= value << (8 * byte);
      }
      d[i] = out;
    }
  });
}

template <class F>
void unary(Exec& x, const Op& op, F f) {
  const u32* a = x.row(op.a);
  const IntegerModifier ma(op.a);
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) d[i] = f(ma(a[i]));
  });
}

u32 reverse_bits(u32 v) {
  v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
  v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
  v = (v >> 8 & 0x00ff00ffu) | (v & 0x00ff00ffu) << 8;
  return v >> 16 | v << 16;
}

void popc(Exec& x, const Op& op) {
  unary(x, op, [](u32 v) { return static_cast<u32>(std::popcount(v)); });
}
void brev(Exec& x, const Op& op) { unary(x, op, reverse_bits); }

/// Highest set bit, or for signed operands the highest that differs from the sign; .SH counts from the top.
void flo(Exec& x, const Op& op) {
  const bool sign = (op.variant & 1) != 0, from_top = (op.variant & 2) != 0;
  unary(x, op, [&](u32 v) {
    if (sign && (v >> 31) != 0) v = ~v;
    if (v == 0) return ~0u;
    const auto zeros = static_cast<u32>(std::countl_zero(v));
    return from_top ? zeros : 31u - zeros;
  });
}

/// Ones: `width` of them from bit `first` on. .W wraps both at 32, else they clamp.
void bmsk(Exec& x, const Op& op) {
  const u32 *first = x.row(op.a), *width = x.row(op.b);
  const bool wrap = op.variant != 0;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 f = wrap ? first[i] & 31u : std::min(first[i], 32u);
      const u32 w = wrap ? width[i] & 31u : std::min(width[i], 32u);
      d[i] = static_cast<u32>(((u64{1} << w) - 1) << f);
    }
  });
}

/// Keeps the low `width` bits, extending their sign unless .U32.
void sgxt(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *width = x.row(op.b);
  const bool sign = (op.variant & 1) != 0, wrap = (op.variant & 2) != 0;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 w = wrap ? width[i] & 31u : std::min(width[i], 32u);
      const u64 kept = a[i] & ((u64{1} << w) - 1);
      const bool negative = sign && w != 0 && (kept >> ((w - 1) & 63u) & 1u) != 0;
      d[i] = static_cast<u32>(negative ? kept | ~u64{0} << w : kept);
    }
  });
}

// --- predicates as registers -----------------------------------------------------------------------------------------

/// d = a with the bits of `mask` replaced by predicates, whose bit 0 lies at bit op.variant.
void p2r(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *mask = x.row(op.b);
  const int first = op.uniform ? kUniformPredicates : 0, shift = op.variant;
  alignas(64) u32 bits[kWarpLanes] = {};
  for (int p = 0; p < kPredicateTrue; ++p) {
    const LaneMask value = x.predicates[first + p];
    const u32* bit = x.lane_bit.lane.data();
    FW_LANES bits[i] |= ((value & bit[i]) != 0 ? 1u : 0u) << p;
  }
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = (a[i] & ~(mask[i] << shift)) | (bits[i] & mask[i]) << shift; });
}

void r2p(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *mask = x.row(op.b);
  const int first = op.uniform ? kUniformPredicates : 0, shift = op.variant;
  for (int p = 0; p < kPredicateTrue; ++p) {
    alignas(64) u32 value[kWarpLanes], taken[kWarpLanes];
    FW_LANES value[i] = a[i] >> shift >> p & 1u;
    FW_LANES taken[i] = mask[i] >> p & 1u;
    const LaneMask lanes = x.enabled & pack_lanes(x, taken);
    x.predicates[first + p] = (x.predicates[first + p] & ~lanes) | (pack_lanes(x, value) & lanes);
  }
}

// --- decoding --------------------------------------------------------------------------------------------------------

bool decode_predicate_file(const OperandReader& r, Op& op, bool to_register) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  const Operand* packed = to_register ? r.destination() : (r.values() > 0 ? &r.value(0) : nullptr);
  op.variant = static_cast<std::uint8_t>(packed != nullptr ? packed->byte * 8 : 0);
  const Modifier bytes[] = {Modifier::Byte1, Modifier::Byte2, Modifier::Byte3};
  for (int i = 0; i < 3; ++i) {
    if (r.has(bytes[i])) op.variant = static_cast<std::uint8_t>(8 * (i + 1));
  }
  op.uniform = r.instruction().opcode == Opcode::UP2UR || r.instruction().opcode == Opcode::UR2UP;
  op.run = to_register ? p2r : r2p;
  return true;
}

bool decode_unary(const OperandReader& r, Op& op, Handler run) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.run = run;
  return true;
}

}  // namespace

bool emulate_lop3(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  if (r.values() < 4) return false;
  op.immediate = r.immediate(3) & 0xffu;
  op.p[0] = r.predicate(0);
  if (r.predicates() == 0) op.p[0].flip = ~op.p[0].flip;  // combine with false
  op.combine = r.has(Modifier::PAND) ? 0 : 1;
  op.carry_out = op.pdst[0] != kDiscardedPredicate;
  op.run = op.immediate == 0xc0 ? lop_and : op.immediate == 0xfc ? lop_or : op.immediate == 0x3c ? lop_xor : lop3;
  return true;
}

bool emulate_plop3(const OperandReader& r, Op& op) {
  if (r.values() != 2 || r.predicates() != 3) return false;
  for (std::size_t i = 0; i < 3; ++i) op.p[i] = r.predicate(i);
  op.immediate = (r.immediate(0) & 0xffu) | (r.immediate(1) & 0xffu) << 8;
  op.run = plop3;
  return true;
}

bool emulate_shf(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  const bool wide = r.has(Modifier::U64) || r.has(Modifier::S64);
  op.variant =
      static_cast<std::uint8_t>((r.has(Modifier::L) ? kShiftLeft : 0) | (r.has(Modifier::HI) ? kShiftHigh : 0) |
                                (r.has(Modifier::W) ? kShiftWrap : 0) | (wide ? kShiftWide : 0) |
                                (r.has(Modifier::S32) || r.has(Modifier::S64) ? kShiftSigned : 0));
  op.run = shift_handler(op.variant);
  u32 amount = 0;
  if (!r.literal(1, amount) || amount >= 32) return true;
  op.immediate = amount;
  const auto is_zero = [&](std::size_t i) {
    u32 v = 1;
    return r.literal(i, v) && v == 0;
  };
  if ((op.variant & kShiftLeft) != 0 && (op.variant & kShiftHigh) == 0) {
    op.run = shift_left;  // the low word does not see the high one
    op.carry_out = true;
  } else if ((op.variant & kShiftLeft) == 0 && (op.variant & kShiftHigh) != 0 && is_zero(0)) {
    op.run = (op.variant & kShiftSigned) != 0 ? shift_right_signed : shift_right;
    op.a = op.c;
    op.carry_out = true;
  }
  return true;
}

bool emulate_prmt(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.variant = r.has(Modifier::F4E)    ? kForward
               : r.has(Modifier::B4E)  ? kBackward
               : r.has(Modifier::RC8)  ? kReplicate8
               : r.has(Modifier::ECL)  ? kEdgeLeft
               : r.has(Modifier::ECR)  ? kEdgeRight
               : r.has(Modifier::RC16) ? kReplicate16
                                       : kIndex;
  op.run = prmt;
  return true;
}

bool emulate_mov(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.run = move_rows1;
  return op.a.flip == 0;
}

bool emulate_popc(const OperandReader& r, Op& op) { return decode_unary(r, op, popc); }
bool emulate_brev(const OperandReader& r, Op& op) { return decode_unary(r, op, brev); }

bool emulate_flo(const OperandReader& r, Op& op) {
  op.variant = static_cast<std::uint8_t>((r.has(Modifier::U32) ? 0 : 1) | (r.has(Modifier::SH) ? 2 : 0));
  return decode_unary(r, op, flo);
}

bool emulate_bmsk(const OperandReader& r, Op& op) {
  op.variant = r.has(Modifier::W) ? 1 : 0;
  return decode_unary(r, op, bmsk);
}

bool emulate_sgxt(const OperandReader& r, Op& op) {
  op.variant = static_cast<std::uint8_t>((r.has(Modifier::U32) ? 0 : 1) | (r.has(Modifier::W) ? 2 : 0));
  return decode_unary(r, op, sgxt);
}

bool emulate_p2r(const OperandReader& r, Op& op) { return decode_predicate_file(r, op, true); }
bool emulate_r2p(const OperandReader& r, Op& op) { return decode_predicate_file(r, op, false); }

}  // namespace forewarp::emulation
