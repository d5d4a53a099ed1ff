// Packed 16-bit floats: two elements a lane, half or bfloat16. Sums and products are made in double and rounded once.
#include <array>
#include <cmath>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"
#include "program/analysis.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

/// Op::variant of this file; how each source is read lies in Op::immediate, three bits a source (HalfSelect).
enum HalfFlags : std::uint8_t { kBrain = 1, kWideResult = 2, kFlush = 4, kSaturate = 8, kRelu = 16 };

u32 select_half(const Op& op, int source) { return op.immediate >> (3 * source) & 7u; }

/// Element e (0 low, 1 high) of a source as 16 bits.
u32 element(u32 packed, u32 select, int e) {
  const int from = select == static_cast<u32>(HalfSelect::H0)       ? 0
                   : select == static_cast<u32>(HalfSelect::H1)     ? 1
                   : select == static_cast<u32>(HalfSelect::Turned) ? 1 - e
                                                                    : e;
  return packed >> (16 * from) & 0xffffu;
}

double decode(u32 bits, std::uint8_t flags) {
  if ((flags & kBrain) != 0) return static_cast<double>(brain_to_float(bits));
  if ((flags & kFlush) != 0 && (bits & 0x7c00u) == 0) bits &= 0x8000u;
  return static_cast<double>(half_to_float(bits));
}

u32 finish(double v, std::uint8_t flags) {
  if ((flags & kSaturate) != 0) v = v >= 1 ? 1 : v > 0 ? v : 0;
  if ((flags & kRelu) != 0 && v < 0) v = 0;
  u32 bits = (flags & kBrain) != 0 ? Brain::encode(v) : Half::encode(v);
  if ((flags & kFlush) != 0 && (flags & kBrain) == 0 && (bits & 0x7c00u) == 0) bits &= 0x8000u;
  return bits;
}

struct AddHalves {
  static double apply(double a, double b, double) { return odd_sum(a, b); }
};
struct MultiplyHalves {
  static double apply(double a, double b, double) { return a * b; }  // exact: 22 bits at most
};
struct FuseHalves {
  static double apply(double a, double b, double c) { return odd_sum(a * b, c); }
};

template <class F>
void packed(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const FloatModifier ma(op.a), mb(op.b), mc(op.c);
  const std::uint8_t flags = op.variant;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      if ((x.enabled >> i & 1u) == 0) continue;
      const u32 pa = ma(a[i]), pb = mb(b[i]), pc = mc(c[i]);
      const auto value = [&](int e) {
        return F::apply(decode(element(pa, select_half(op, 0), e), flags),
                        decode(element(pb, select_half(op, 1), e), flags),
                        decode(element(pc, select_half(op, 2), e), flags));
      };
      if ((flags & kWideResult) != 0) {
        const auto wide = static_cast<float>(value(0));
        const u32 bits = canonical((flags & kRelu) != 0 && wide < 0 ? 0.0f : wide);
        d[i] = (flags & kSaturate) != 0 ? saturate(bits) : bits;
      } else {
        d[i] = finish(value(0), flags) | finish(value(1), flags) << 16;
      }
    }
  });
}

/// HADD2.F32 d, -RZ, x.H0_H0: the conversion of one half, by far the most frequent use.
void widen(Exec& x, const Op& op) {
  const u32* b = x.row(op.b);
  const FloatModifier mb(op.b);
  const u32 shift = select_half(op, 1) == static_cast<u32>(HalfSelect::H1) ? 16 : 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) d[i] = canonical(half_to_float(mb(b[i]) >> shift & 0xffffu));
  });
}

u32 compare_bit(double l, double r) { return l < r ? kLess : l == r ? kEqual : l > r ? kGreater : kUnordered; }

/// Lanes whose element e satisfies the comparison in Op::d.add.
std::array<LaneMask, 2> compare_halves(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  std::array<LaneMask, 2> outcome{};
  for (int i = 0; i < kWarpLanes; ++i) {
    for (int e = 0; e < 2; ++e) {
      const double l = decode(element(ma(a[i]), select_half(op, 0), e), op.variant);
      const double r = decode(element(mb(b[i]), select_half(op, 1), e), op.variant);
      if ((compare_bit(l, r) & op.d.add) != 0) outcome[static_cast<std::size_t>(e)] |= 1u << i;
    }
  }
  return outcome;
}

LaneMask join(const Op& op, LaneMask m, LaneMask with) {
  return op.combine == 0 ? m & with : op.combine == 1 ? m | with : m ^ with;
}

/// Two predicates, one an element; .H_AND joins the elements into the first and negates it into the second.
void hsetp2(Exec& x, const Op& op) {
  const LaneMask with = x.predicate(op.p[0]);
  const std::array<LaneMask, 2> outcome = compare_halves(x, op);
  const bool both = op.carry_out;
  const LaneMask first = both ? outcome[0] & outcome[1] : outcome[0];
  const LaneMask second = both ? ~first : outcome[1];
  x.set_predicate(op.pdst[0], join(op, first, with));
  x.set_predicate(op.pdst[1], join(op, second, with));
}

void hset2(Exec& x, const Op& op) {
  const LaneMask with = x.predicate(op.p[0]);
  const std::array<LaneMask, 2> outcome = compare_halves(x, op);
  const LaneMask low = join(op, outcome[0], with), high = join(op, outcome[1], with);
  const u32 one = op.target;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i)
      d[i] = ((low >> i & 1u) != 0 ? one : 0u) | ((high >> i & 1u) != 0 ? one << 16 : 0u);
  });
}

u32 choose_extreme(u32 l, u32 r, bool minimum, bool keep_nan, std::uint8_t flags) {
  const double vl = decode(l, flags), vr = decode(r, flags);
  const bool nl = vl != vl, nr = vr != vr;
  if ((nl && nr) || (keep_nan && (nl || nr))) return Half::kNan;
  if (nl) return r;
  if (nr) return l;
  if (vl == vr) return minimum ? l | r : l & r;
  return (vl < vr) == minimum ? l : r;
}

void hmnmx2(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  const LaneMask minimum = x.predicate(op.p[0]);
  const bool keep_nan = op.carry_out;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      u32 out = 0;
      for (int e = 0; e < 2; ++e) {
        const u32 l = element(ma(a[i]), select_half(op, 0), e), r = element(mb(b[i]), select_half(op, 1), e);
        out |= choose_extreme(l, r, (minimum >> i & 1u) != 0, keep_nan, op.variant) << (16 * e);
      }
      d[i] = out;
    }
  });
}

/// The least or greatest of three, half by half.
void vhmnmx(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const FloatModifier ma(op.a), mb(op.b), mc(op.c);
  const LaneMask minimum = x.predicate(op.p[0]);
  const bool keep_nan = op.carry_out;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const bool least = (minimum >> i & 1u) != 0;
      u32 out = 0;
      for (int e = 0; e < 2; ++e) {
        const u32 first = element(ma(a[i]), select_half(op, 0), e), second = element(mb(b[i]), select_half(op, 1), e);
        const u32 third = element(mc(c[i]), select_half(op, 2), e);
        const u32 of_two = choose_extreme(first, second, least, keep_nan, op.variant);
        out |= choose_extreme(of_two, third, least, keep_nan, op.variant) << (16 * e);
      }
      d[i] = out;
    }
  });
}

// --- decoding --------------------------------------------------------------------------------------------------------

void read_sources(const OperandReader& r, Op& op) {
  op.a = r.half(0);
  op.b = r.half(1);
  op.c = r.half(2);
  for (std::size_t i = 0; i < 3 && i < r.values(); ++i) {
    op.immediate |= static_cast<u32>(r.value(i).half) << (3 * i);
  }
  op.variant =
      static_cast<std::uint8_t>((r.has(Modifier::BF16_V2) || r.has(Modifier::BF16) ? kBrain : 0) |
                                (r.has(Modifier::F32) ? kWideResult : 0) | (r.has(Modifier::FTZ) ? kFlush : 0) |
                                (r.has(Modifier::SAT) ? kSaturate : 0) | (r.has(Modifier::RELU) ? kRelu : 0));
}

void read_comparison(const OperandReader& r, Op& op) {
  read_sources(r, op);
  op.p[0] = r.predicate(0);
  op.combine = combination(r.instruction());
  op.d.add = comparison_bits(r.instruction());
}

bool is_zero_operand(const OperandReader& r, std::size_t i) {
  return i < r.values() && r.value(i).kind == OperandKind::Register && r.value(i).index == kRegisterZero;
}

}  // namespace

bool emulate_hadd2(const OperandReader& r, Op& op) {
  read_sources(r, op);
  const bool plain = op.variant == kWideResult && is_zero_operand(r, 0) && r.value(0).negate &&
                     (r.value(1).half == HalfSelect::H0 || r.value(1).half == HalfSelect::H1);
  op.run = plain ? widen : packed<AddHalves>;
  return true;
}

bool emulate_hmul2(const OperandReader& r, Op& op) {
  read_sources(r, op);
  op.run = packed<MultiplyHalves>;
  return true;
}

/// HFMA2.MMA d, -RZ, RZ, imm: a way to load a constant.
bool emulate_hfma2(const OperandReader& r, Op& op) {
  read_sources(r, op);
  if (is_disguised_move(r.instruction()) && (op.variant & ~kBrain) == 0 && op.c.flip == 0) {
    // -0 * 0 is -0, and -0 + v is v for every v, zeros included.
    op.a = op.c;
    op.run = move_rows1;
  } else {
    op.run = packed<FuseHalves>;
  }
  return true;
}

bool emulate_hsetp2(const OperandReader& r, Op& op) {
  read_comparison(r, op);
  op.carry_out = r.has(Modifier::H_AND);
  op.run = hsetp2;
  return true;
}

bool emulate_hset2(const OperandReader& r, Op& op) {
  read_comparison(r, op);
  op.target = !r.has(Modifier::BF) ? 0xffffu : (op.variant & kBrain) != 0 ? 0x3f80u : 0x3c00u;
  op.run = hset2;
  return true;
}

bool emulate_vhmnmx(const OperandReader& r, Op& op) {
  read_comparison(r, op);
  op.carry_out = r.has(Modifier::Nan);
  op.run = vhmnmx;
  return r.values() == 3 && !r.has(Modifier::XORSIGN) && !r.has(Modifier::RELU);
}

bool emulate_hmnmx2(const OperandReader& r, Op& op) {
  read_comparison(r, op);
  op.carry_out = r.has(Modifier::Nan);
  op.run = hmnmx2;
  return !r.has(Modifier::XORSIGN);
}

}  // namespace forewarp::emulation
