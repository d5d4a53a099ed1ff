// Single precision: arithmetic with its rounding modes, comparisons, selections, and the special function unit, whose
// exact bits NVIDIA does not publish: results are computed in double and rounded (sass.md 2.4).
#include <cmath>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

enum FloatFlags : std::uint8_t { kFlush = 4, kSaturate = 8 };  // bits 0..1: Rounding

Rounding rounding_of(const Op& op) { return static_cast<Rounding>(op.variant & 3); }

struct Add {
  static constexpr int kSources = 2;
  static float apply(float a, float b, float) { return a + b; }
};
struct Multiply {
  static constexpr int kSources = 2;
  static float apply(float a, float b, float) { return a * b; }
};
struct FusedMultiplyAdd {
  static constexpr int kSources = 3;
  static float apply(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
};

/// The common case: to nearest, denormals kept.
template <class F>
void arithmetic(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const FloatModifier ma(op.a), mb(op.b), mc(op.c);
  write_row(x, op, [&](u32* d) {
    FW_LANES d[i] =
        canonical(F::apply(as_float(ma(a[i])), as_float(mb(b[i])), F::kSources == 3 ? as_float(mc(c[i])) : 0.0f));
  });
}

/// Any rounding, FTZ and SAT. op.immediate is the power of two that .D2/.M2 ... scale a product by.
template <class F>
__attribute__((noinline)) void arithmetic_special(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const FloatModifier ma(op.a), mb(op.b), mc(op.c);
  const bool flush = (op.variant & kFlush) != 0, sat = (op.variant & kSaturate) != 0;
  const float scale = as_float(op.immediate);
  write_row(x, op, [&](u32* d) {
    const RoundingScope scope(rounding_of(op));
    FW_LANES {
      u32 sa = ma(a[i]), sb = mb(b[i]), sc = mc(c[i]);
      if (flush) sa = flush_bits(sa), sb = flush_bits(sb), sc = flush_bits(sc);
      u32 r = canonical(F::apply(as_float(sa) * scale, as_float(sb), as_float(sc)));
      if (flush) r = flush_bits(r);
      d[i] = sat ? saturate(r) : r;
    }
  });
}

// --- comparisons -----------------------------------------------------------------------------------------------------

LaneMask compare_floats(Exec& x, const Op& op, bool flush) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  const u32 less = op.variant & kLess, equal = op.variant & kEqual, greater = op.variant & kGreater,
            unordered = op.variant & kUnordered;
  alignas(64) u32 flag[kWarpLanes];
  FW_LANES {
    u32 sa = ma(a[i]), sb = mb(b[i]);
    if (flush) sa = flush_bits(sa), sb = flush_bits(sb);
    const float l = as_float(sa), r = as_float(sb);
    flag[i] = l < r ? less : l == r ? equal : l > r ? greater : unordered;
  }
  return pack_lanes(x, flag);
}

void fsetp(Exec& x, const Op& op) { write_comparison(x, op, compare_floats(x, op, op.immediate != 0)); }

void fset(Exec& x, const Op& op) {
  const LaneMask with = x.predicate(op.p[0]), outcome = compare_floats(x, op, op.immediate != 0);
  const LaneMask set = op.combine == 0 ? outcome & with : op.combine == 1 ? outcome | with : outcome ^ with;
  const u32 one = op.c.add;
  write_row(x, op, [&](u32* d) {
    const u32* bit = x.lane_bit.lane.data();
    FW_LANES d[i] = (set & bit[i]) != 0 ? one : 0u;
  });
}

/// Orders -0 below +0; a NaN loses against a number unless .NAN.
void fmnmx(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  const bool flush = (op.variant & 1) != 0, keep_nan = (op.variant & 2) != 0;
  alignas(64) u32 minimum[kWarpLanes];
  spread_mask(x, x.predicate(op.p[0]), minimum);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      u32 sa = ma(a[i]), sb = mb(b[i]);
      if (flush) sa = flush_bits(sa), sb = flush_bits(sb);
      const float l = as_float(sa), r = as_float(sb);
      // Equal values differ in their sign at most: the smaller has more bits set, the larger fewer.
      const u32 low = l == r ? (sa | sb) : l < r ? sa : sb;
      const u32 high = l == r ? (sa & sb) : l < r ? sb : sa;
      const bool na = l != l, nb = r != r;
      u32 v = minimum[i] != 0 ? low : high;
      v = na ? sb : nb ? sa : v;
      d[i] = (na && nb) || (keep_nan && (na || nb)) ? kCanonicalNan : v;
    }
  });
}

void fsel(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  const bool flush = op.variant != 0;
  alignas(64) u32 take[kWarpLanes];
  spread_mask(x, x.predicate(op.p[0]), take);
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const u32 v = (ma(a[i]) & take[i]) | (mb(b[i]) & ~take[i]);
      d[i] = flush ? flush_bits(v) : v;
    }
  });
}

/// Whether a / b needs the slow path: a divisor, dividend or quotient whose exponent the fast path cannot hold. The
/// hardware's exact limits are not published; these are safe ones. A dividend of zero takes the slow path: the counts
/// of an H200 show it.
void fchk(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  alignas(64) u32 slow[kWarpLanes];
  FW_LANES {
    const u32 sa = ma(a[i]) & 0x7fffffffu, sb = mb(b[i]) & 0x7fffffffu;
    const int ea = static_cast<int>(sa >> 23), eb = static_cast<int>(sb >> 23), apart = ea - eb;
    const bool bad_a = ea == 255 || ea < 24;
    const bool bad_b = eb == 0 || eb > 252;
    slow[i] = bad_a || bad_b || apart > 125 || apart < -125 ? 1u : 0u;
  }
  x.set_predicate(op.pdst[0], pack_lanes(x, slow));
}

// --- special functions -----------------------------------------------------------------------------------------------

enum Function : std::uint8_t {
  kCos,
  kSin,
  kExp2,
  kLog2,
  kReciprocal,
  kRootReciprocal,
  kReciprocal64,
  kRootReciprocal64,
  kRoot,
  kTanh
};

double special_function(std::uint8_t function, double v) {
  // Sine and cosine get their argument in turns: the compiler has multiplied by 1 / 2 pi.
  constexpr double kTurn = 6.283185307179586;
  switch (function) {
    case kCos:
      return std::cos(std::remainder(v, 1.0) * kTurn);
    case kSin:
      return std::sin(std::remainder(v, 1.0) * kTurn);
    case kExp2:
      return std::exp2(v);
    case kLog2:
      return std::log2(v);
    case kReciprocal:
      return 1.0 / v;
    case kRootReciprocal:
      return 1.0 / std::sqrt(v);
    case kRoot:
      return std::sqrt(v);
    default:
      return std::tanh(v);
  }
}

/// Denormals count as zero on the way in and out; the compiler scales around that where it matters.
void mufu(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const FloatModifier ma(op.a);
  const bool flush = op.variant != kTanh;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      if ((x.enabled >> i & 1u) == 0) continue;
      const u32 v = flush ? flush_bits(ma(a[i])) : ma(a[i]);
      const u32 r = canonical(static_cast<float>(special_function(op.variant, as_float(v))));
      d[i] = flush ? flush_bits(r) : r;
    }
  });
}

/// Upper words in and out: an approximation of 1 / v or 1 / sqrt(v) for the double whose lower word is taken as zero.
void mufu64(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const FloatModifier ma(op.a);
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 high = ma(a[i]);
      if ((high & 0x7ff00000u) == 0) high &= 0x80000000u;
      const double v = as_double(0, high);
      const double r = op.variant == kReciprocal64 ? 1.0 / v : 1.0 / std::sqrt(v);
      d[i] = static_cast<u32>(std::bit_cast<std::uint64_t>(r) >> 32);
    }
  });
}

// --- decoding --------------------------------------------------------------------------------------------------------

std::uint8_t rounding_bits(const OperandReader& r) {
  const Rounding mode = r.has(Modifier::RM)   ? Rounding::Down
                        : r.has(Modifier::RP) ? Rounding::Up
                        : r.has(Modifier::RZ) ? Rounding::Zero
                                              : Rounding::Nearest;
  return static_cast<std::uint8_t>(mode);
}

/// .D2 .D4 .D8 .M2 .M4 .M8: the product is scaled by that power of two.
float product_scale(const OperandReader& r) {
  return r.has(Modifier::D2)   ? 0.5f
         : r.has(Modifier::D4) ? 0.25f
         : r.has(Modifier::D8) ? 0.125f
         : r.has(Modifier::M2) ? 2.0f
         : r.has(Modifier::M4) ? 4.0f
         : r.has(Modifier::M8) ? 8.0f
                               : 1.0f;
}

template <class F>
bool decode_arithmetic(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.c = r.single(2);
  const bool flush = r.has(Modifier::FTZ) || r.has(Modifier::FMZ);
  op.variant =
      static_cast<std::uint8_t>(rounding_bits(r) | (flush ? kFlush : 0) | (r.has(Modifier::SAT) ? kSaturate : 0));
  const float scale = product_scale(r);
  op.immediate = as_bits(scale);
  op.run = op.variant == 0 && scale == 1.0f ? arithmetic<F> : arithmetic_special<F>;
  return true;
}

}  // namespace

bool emulate_fsetp(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.variant = comparison_bits(r.instruction());
  op.combine = combination(r.instruction());
  op.p[0] = r.predicate(0);
  op.immediate = r.has(Modifier::FTZ) ? 1 : 0;
  if (r.instruction().opcode == Opcode::FSETP) {
    op.run = fsetp;
    return true;
  }
  op.c.add = r.has(Modifier::BF) ? 0x3f800000u : ~0u;  // .BF: a float one instead of all ones
  op.run = fset;
  return true;
}

bool emulate_mufu(const OperandReader& r, Op& op) {
  struct Name {
    Modifier modifier;
    Function function;
  };
  static constexpr Name kNames[] = {{Modifier::COS, kCos},
                                    {Modifier::SIN, kSin},
                                    {Modifier::EX2, kExp2},
                                    {Modifier::LG2, kLog2},
                                    {Modifier::RCP, kReciprocal},
                                    {Modifier::RSQ, kRootReciprocal},
                                    {Modifier::RCP64H, kReciprocal64},
                                    {Modifier::RSQ64H, kRootReciprocal64},
                                    {Modifier::SQRT, kRoot},
                                    {Modifier::TANH, kTanh}};
  if (r.has(Modifier::F16)) return false;
  for (const Name& n : kNames) {
    if (!r.has(n.modifier)) continue;
    op.a = r.single(0);
    op.variant = n.function;
    op.run = n.function == kReciprocal64 || n.function == kRootReciprocal64 ? mufu64 : mufu;
    return true;
  }
  return false;
}

bool emulate_fadd(const OperandReader& r, Op& op) { return decode_arithmetic<Add>(r, op); }
bool emulate_fmul(const OperandReader& r, Op& op) { return decode_arithmetic<Multiply>(r, op); }
bool emulate_ffma(const OperandReader& r, Op& op) { return decode_arithmetic<FusedMultiplyAdd>(r, op); }

bool emulate_fmnmx(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.p[0] = r.predicate(0);
  op.variant = static_cast<std::uint8_t>((r.has(Modifier::FTZ) ? 1 : 0) | (r.has(Modifier::Nan) ? 2 : 0));
  op.run = fmnmx;
  return !r.has(Modifier::XORSIGN);
}

bool emulate_fsel(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.p[0] = r.predicate(0);
  op.variant = r.has(Modifier::FTZ) ? 1 : 0;
  op.run = fsel;
  return true;
}

bool emulate_fchk(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.run = fchk;
  return true;
}

}  // namespace forewarp::emulation
