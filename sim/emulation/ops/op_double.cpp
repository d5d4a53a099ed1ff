// Double precision: register pairs, low word first.
#include <cmath>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

/// One 64-bit source; '-' and '|x|' act on the upper word.
struct DoubleSource {
  const u32 *low, *high;
  FloatModifier modifier;
  DoubleSource(const Exec& x, const Source& s) : low(x.row(s)), high(x.high(s)), modifier(s) {}
  double operator[](int i) const { return as_double(low[i], modifier(high[i])); }
};

struct AddDoubles {
  static double apply(double a, double b, double) { return a + b; }
};
struct MultiplyDoubles {
  static double apply(double a, double b, double) { return a * b; }
};
struct FuseDoubles {
  static double apply(double a, double b, double c) { return __builtin_fma(a, b, c); }
};

template <class F>
__attribute__((noinline)) void arithmetic(Exec& x, const Op& op) {
  const DoubleSource a(x, op.a), b(x, op.b), c(x, op.c);
  write_pair(x, op, [&](u32* d, u32* h) {
    const RoundingScope scope(static_cast<Rounding>(op.variant));
    FW_LANES {
      const auto bits = std::bit_cast<std::uint64_t>(F::apply(a[i], b[i], c[i]));
      d[i] = static_cast<u32>(bits);
      h[i] = static_cast<u32>(bits >> 32);
    }
  });
}

void dsetp(Exec& x, const Op& op) {
  const DoubleSource a(x, op.a), b(x, op.b);
  const u32 less = op.variant & kLess, equal = op.variant & kEqual, greater = op.variant & kGreater,
            unordered = op.variant & kUnordered;
  alignas(64) u32 flag[kWarpLanes];
  for (int i = 0; i < kWarpLanes; ++i) {
    const double l = a[i], r = b[i];
    flag[i] = l < r ? less : l == r ? equal : l > r ? greater : unordered;
  }
  write_comparison(x, op, pack_lanes(x, flag));
}

/// DSETP.MIN/.MAX: the first predicate says that a is the result, the second that both are NaN. The compiler selects
/// the words and quiets the NaN itself.
void dsetp_extreme(Exec& x, const Op& op) {
  const DoubleSource a(x, op.a), b(x, op.b);
  const bool minimum = op.variant != 0;
  LaneMask first = 0, both = 0;
  for (int i = 0; i < kWarpLanes; ++i) {
    const double l = a[i], r = b[i];
    const bool nl = l != l, nr = r != r;
    const bool ahead = l == r ? std::signbit(l) == minimum : (l < r) == minimum;
    if (!nl && (nr || ahead)) first |= 1u << i;
    if (nl && nr) both |= 1u << i;
  }
  x.set_predicate(op.pdst[0], first);
  x.set_predicate(op.pdst[1], both);
}

std::uint8_t rounding_bits(const OperandReader& r) {
  const Rounding mode = r.has(Modifier::RM)   ? Rounding::Down
                        : r.has(Modifier::RP) ? Rounding::Up
                        : r.has(Modifier::RZ) ? Rounding::Zero
                                              : Rounding::Nearest;
  return static_cast<std::uint8_t>(mode);
}

bool decode_arithmetic(const OperandReader& r, Op& op, Handler run) {
  op.a = r.dual(0);
  op.b = r.dual(1);
  op.c = r.dual(2);
  op.variant = rounding_bits(r);
  op.run = run;
  return true;
}

}  // namespace

bool emulate_dadd(const OperandReader& r, Op& op) { return decode_arithmetic(r, op, arithmetic<AddDoubles>); }
bool emulate_dmul(const OperandReader& r, Op& op) { return decode_arithmetic(r, op, arithmetic<MultiplyDoubles>); }
bool emulate_dfma(const OperandReader& r, Op& op) { return decode_arithmetic(r, op, arithmetic<FuseDoubles>); }

bool emulate_dsetp(const OperandReader& r, Op& op) {
  op.a = r.dual(0);
  op.b = r.dual(1);
  op.combine = combination(r.instruction());
  op.p[0] = r.predicate(0);
  const bool minimum = r.has(Modifier::MIN);
  const bool extreme = minimum || r.has(Modifier::MAX);
  op.variant = extreme ? static_cast<std::uint8_t>(minimum) : comparison_bits(r.instruction());
  op.run = extreme ? dsetp_extreme : dsetp;
  return true;
}

}  // namespace forewarp::emulation
