// Conversions between formats. Modifiers are read in the order written: F2F.F32.F64 makes a float of a double.
#include <cmath>
#include <limits>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

enum class Format : std::uint8_t { F32, F64, F16, Bf16, S32, U32, S64, U64, S16, U16, S8, U8 };

bool is_float(Format f) { return f <= Format::Bf16; }
bool is_signed(Format f) { return f == Format::S32 || f == Format::S64 || f == Format::S16 || f == Format::S8; }
bool is_wide(Format f) { return f == Format::F64 || f == Format::S64 || f == Format::U64; }
int integer_bits(Format f) {
  switch (f) {
    case Format::S64:
    case Format::U64:
      return 64;
    case Format::S32:
    case Format::U32:
      return 32;
    case Format::S16:
    case Format::U16:
      return 16;
    default:
      return 8;
  }
}

// Op fields of this file: variant = rounding, immediate packs the formats and flags.
constexpr u32 pack_formats(Format to, Format from) { return static_cast<u32>(to) | static_cast<u32>(from) << 4; }
Format to_format(const Op& op) { return static_cast<Format>(op.immediate & 15u); }
Format from_format(const Op& op) { return static_cast<Format>(op.immediate >> 4 & 15u); }
enum ConversionFlags : std::uint8_t { kFlush = 1, kSaturate = 2, kNanToZero = 4, kRelu = 8, kClamp = 16 };

/// The integer that `mode` rounds to, as a double.
double round_whole(double v, Rounding mode) {
  switch (mode) {
    case Rounding::Down:
      return std::floor(v);
    case Rounding::Up:
      return std::ceil(v);
    case Rounding::Zero:
      return std::trunc(v);
    default:
      return std::nearbyint(v);
  }
}

/// Rounds a double once to the destination format; the bits of F64 are returned whole.
u64 encode_float(double v, Format to, Rounding mode, bool clamp) {
  switch (to) {
    case Format::F64:
      return std::bit_cast<u64>(v);
    case Format::F16:
      return Half::encode(v, mode, clamp);
    case Format::Bf16:
      return Brain::encode(v, mode, clamp);
    default:
      break;
  }
  if (v != v) return kCanonicalNan;
  float f = static_cast<float>(v);
  const double back = static_cast<double>(f);
  const float infinity = std::numeric_limits<float>::infinity();
  const bool too_high = back > v, too_low = back < v;
  if (too_high && (mode == Rounding::Down || (mode == Rounding::Zero && v > 0))) f = std::nextafterf(f, -infinity);
  if (too_low && (mode == Rounding::Up || (mode == Rounding::Zero && v < 0))) f = std::nextafterf(f, infinity);
  return as_bits(f);
}

double decode_float(u64 raw, Format from, bool flush) {
  switch (from) {
    case Format::F64:
      return std::bit_cast<double>(raw);
    case Format::F16:
      return static_cast<double>(half_to_float(static_cast<u32>(raw) & 0xffffu));
    case Format::Bf16:
      return static_cast<double>(brain_to_float(static_cast<u32>(raw) & 0xffffu));
    default:
      return static_cast<double>(as_float(flush ? flush_bits(static_cast<u32>(raw)) : static_cast<u32>(raw)));
  }
}

/// A 64-bit integer to float with one rounding: through double only where that is exact.
u64 integer_to_float(bool negative, u64 magnitude, Format to, Rounding mode) {
  // Keep 63 - 10 bits and a sticky bit, so that the double is exact and rounding it again cannot go wrong.
  int shift = 0;
  u64 kept = magnitude;
  if (to != Format::F64) {
    while (kept >> 52 != 0) {
      kept = kept >> 1 | (kept & 1u);
      ++shift;
    }
    const double v = std::ldexp(static_cast<double>(kept), shift);
    return encode_float(negative ? -v : v, to, mode, false);
  }
  const RoundingScope scope(mode);
  volatile double v = static_cast<double>(magnitude >> 32);
  v = v * 4294967296.0;
  volatile double low = static_cast<double>(magnitude & 0xffffffffu);
  if (negative) {
    v = -v;
    low = -low;
  }
  v = v + low;
  return std::bit_cast<u64>(static_cast<double>(v));
}

/// The range of an integer format as doubles: values at or beyond `over` clamp to the largest.
struct IntegerRange {
  double under, over;
  u64 lowest, highest;
};

IntegerRange range_of(Format f) {
  const int bits = integer_bits(f);
  const u64 mask = bits == 64 ? ~u64{0} : (u64{1} << bits) - 1;
  if (is_signed(f)) {
    return {-std::ldexp(1.0, bits - 1), std::ldexp(1.0, bits - 1), (u64{1} << (bits - 1)) & mask, mask >> 1};
  }
  return {0.0, std::ldexp(1.0, bits), 0, mask};
}

/// Clamps to the destination. NaN becomes zero, or without .NTZ the value with only the top bit set (PTX ISA, cvt).
u64 float_to_integer(double v, Format to, Rounding mode, bool nan_to_zero) {
  if (v != v) return nan_to_zero ? 0 : u64{1} << (integer_bits(to) - 1);
  const double whole = round_whole(v, mode);
  const IntegerRange range = range_of(to);
  if (whole >= range.over) return range.highest;
  if (whole <= range.under) return range.lowest;
  if (is_signed(to)) return static_cast<u64>(static_cast<i64>(whole));
  return static_cast<u64>(whole);
}

u64 source_bits(const u32* low, const u32* high, int i, Format from, u32 byte, const FloatModifier& m) {
  if (is_wide(from)) return low[i] | static_cast<u64>(m(high[i])) << 32;
  return m(low[i]) >> (8 * byte);
}

u64 extend_integer(u64 raw, Format from) {
  const int unused = 64 - integer_bits(from);
  if (is_signed(from)) return static_cast<u64>(static_cast<i64>(raw << unused) >> unused);
  return raw << unused >> unused;
}

/// One lane of any conversion of this file but F2FP.
u64 convert(const Op& op, u64 raw) {
  const Format to = to_format(op), from = from_format(op);
  const auto mode = static_cast<Rounding>(op.variant);
  const bool flush = (op.combine & kFlush) != 0;
  if (is_float(from)) {
    const double v = decode_float(raw, from, flush);
    if (!is_float(to)) return float_to_integer(v, to, mode, (op.combine & kNanToZero) != 0);
    if (op.carry_out)
      return encode_float(v != v ? v : std::copysign(round_whole(v, mode), v), to, Rounding::Nearest, false);
    double out = v;
    if ((op.combine & kSaturate) != 0) out = v >= 1 ? 1 : v > 0 ? v : 0;
    const u64 bits = encode_float(out, to, mode, (op.combine & kClamp) != 0);
    return flush && to == Format::F32 ? flush_bits(static_cast<u32>(bits)) : bits;
  }
  const u64 value = extend_integer(raw, from);
  const bool negative = is_signed(from) && (value >> 63) != 0;
  const u64 magnitude = negative ? 0 - value : value;
  if (is_float(to)) return integer_to_float(negative, magnitude, to, mode);
  // I2I saturates.
  const IntegerRange range = range_of(to);
  if (negative) {
    if (!is_signed(to)) return 0;
    return magnitude > range.highest + 1 ? range.lowest : value;
  }
  return value > range.highest ? range.highest : value;
}

void convert_lanes(Exec& x, const Op& op) {
  const u32 *low = x.row(op.a), *high = x.high(op.a);
  const FloatModifier m(op.a);
  const Format from = from_format(op), to = to_format(op);
  const auto byte = static_cast<u32>(op.scale);
  if (is_wide(to)) {
    write_pair(x, op, [&](u32* d, u32* h) {
      for (int i = 0; i < kWarpLanes; ++i) {
        if ((x.enabled >> i & 1u) == 0) continue;
        const u64 r = convert(op, source_bits(low, high, i, from, byte, m));
        d[i] = static_cast<u32>(r);
        h[i] = static_cast<u32>(r >> 32);
      }
    });
    return;
  }
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      if ((x.enabled >> i & 1u) == 0) continue;
      d[i] = static_cast<u32>(convert(op, source_bits(low, high, i, from, byte, m)));
    }
  });
}

// The frequent ones, vectorised.

void i2f_s32(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const IntegerModifier m(op.a);
  write_row(x, op, [&](u32* d) { FW_LANES d[i] = as_bits(static_cast<float>(static_cast<std::int32_t>(m(a[i])))); });
}

/// Of rounding to the nearest and towards zero: flushing does not matter to either.
template <Rounding kMode>
void f2i_s32(Exec& x, const Op& op) {
  static_assert(kMode == Rounding::Nearest || kMode == Rounding::Zero);
  constexpr float kOver = 2147483648.0f, kMost = 2147483520.0f;  // the first above the integers, the last below that
  const u32* a = x.row(op.a);
  const FloatModifier m(op.a);
  const u32 no_number = (op.combine & kNanToZero) != 0 ? 0 : 0x80000000u;
  write_row(x, op, [&](u32* d) {
    FW_LANES {
      const float v = as_float(m(a[i]));
      const float whole = kMode == Rounding::Zero ? __builtin_truncf(v) : __builtin_nearbyintf(v);
      const float inside = whole < -kOver ? -kOver : whole > kMost ? kMost : whole;
      const auto value = static_cast<u32>(static_cast<std::int32_t>(v == v ? inside : 0.0f));
      d[i] = v != v ? no_number : whole >= kOver ? 0x7fffffffu : value;
    }
  });
}

template <class Format16>
u32 pack_one(u32 bits, const Op& op);

template <>
u32 pack_one<Half>(u32 bits, const Op& op) {
  if (op.variant != 0 || (op.combine & kClamp) != 0) {
    return Half::encode(static_cast<double>(as_float(bits)), static_cast<Rounding>(op.variant),
                        (op.combine & kClamp) != 0);
  }
  return float_to_half(as_float(bits));
}
template <>
u32 pack_one<Brain>(u32 bits, const Op& op) {
  if (op.variant != 0 || (op.combine & kClamp) != 0) {
    return Brain::encode(static_cast<double>(as_float(bits)), static_cast<Rounding>(op.variant),
                         (op.combine & kClamp) != 0);
  }
  return float_to_brain(as_float(bits));
}

/// Two floats to one packed pair: the second source becomes the low half.
template <class Format16>
void f2fp(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  const bool relu = (op.combine & kRelu) != 0;
  const auto clip = [&](u32 v) { return relu && (v >> 31) != 0 && as_float(v) == as_float(v) ? 0u : v; };
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      d[i] = pack_one<Format16>(clip(mb(b[i])), op) | pack_one<Format16>(clip(ma(a[i])), op) << 16;
    }
  });
}

/// fp8 as half: exact. e5m2 is the upper byte of one; e4m3 has one NaN and no infinity.
u32 widen_byte(u32 byte, bool e5m2) {
  if (e5m2) return (byte & 0x7fu) > 0x7cu ? Half::kNan : byte << 8;
  if ((byte & 0x7fu) == 0x7fu) return Half::kNan;
  const u32 exponent = byte >> 3 & 15u, fraction = byte & 7u, sign = (byte & 0x80u) << 8;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, static_cast<int>(exponent) - 10);
  return sign | Half::encode(magnitude);
}

/// F2FP.F16.E4M3.UNPACK_B: two bytes, of the lower or (.H1) the upper half of a register, become two halves.
void unpack_bytes(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const u32 shift = op.immediate;
  const bool e5m2 = op.variant != 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const u32 pair = a[i] >> shift;
      d[i] = widen_byte(pair & 0xffu, e5m2) | widen_byte(pair >> 8 & 0xffu, e5m2) << 16;
    }
  });
}

/// The nearest fp8, ties to even; what is too large becomes the largest finite one, as with .satfinite.
u32 narrow_to_byte(double value, bool e5m2) {
  if (value != value) return 0x7f;
  const int kept = e5m2 ? 2 : 3, lowest = e5m2 ? -16 : -9;  // bits behind the leading one; exponent of the least step
  const double most = e5m2 ? 57344 : 448;
  const u32 sign = std::signbit(value) ? 0x80u : 0u;
  const double magnitude = std::fabs(value);
  if (magnitude >= most) return sign | (e5m2 ? 0x7bu : 0x7eu);
  const int unit = magnitude == 0 ? lowest : std::max(std::ilogb(magnitude) - kept, lowest);
  const double steps = std::nearbyint(std::ldexp(magnitude, -unit));
  // A significand of 2 << kept carries into the exponent.
  return sign | ((static_cast<u32>(unit - lowest) << kept) + static_cast<u32>(steps));
}

/// Two values to two bytes in the lower half of the result, the lower half of c in the upper. variant: e5m2.
template <class Pair>
void pack_bytes(Exec& x, const Op& op, const Pair& pair) {
  const u32* c = x.row(op.c);
  const bool e5m2 = op.variant != 0, relu = (op.combine & kRelu) != 0;
  const auto byte = [&](double v) { return narrow_to_byte(relu && v < 0 ? 0.0 : v, e5m2); };
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const auto [low, high] = pair(i);
      d[i] = byte(low) | byte(high) << 8 | c[i] << 16;
    }
  });
}

/// F2FP.E4M3.F32.PACK_AB_MERGE_C: two floats, the second source first.
void pack_floats(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b);
  const FloatModifier ma(op.a), mb(op.b);
  pack_bytes(x, op, [&](int i) {
    return std::pair{static_cast<double>(as_float(mb(b[i]))), static_cast<double>(as_float(ma(a[i])))};
  });
}

/// F2FP.E4M3.F16.UNPACK_B_MERGE_C: a pair of halves.
void pack_halves(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  pack_bytes(x, op, [&](int i) { return std::pair{Half::decode(a[i] & 0xffffu), Half::decode(a[i] >> 16)}; });
}

/// F2FP.TF32.F32.PACK_B: to the ten bits behind the point that TF32 has.
void round_to_tf32(Exec& x, const Op& op) {
  constexpr u32 kDropped = 0x1fff;
  const u32* a = x.row(op.a);
  const FloatModifier m(op.a);
  const bool nearest = static_cast<Rounding>(op.variant) == Rounding::Nearest, relu = (op.combine & kRelu) != 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const u32 bits = m(a[i]), even = bits >> 13 & 1u;
      const bool special = (bits & 0x7f800000u) == 0x7f800000u;
      const u32 rounded = (special || !nearest ? bits : bits + kDropped / 2 + even) & ~kDropped;
      d[i] = as_float(bits) != as_float(bits) ? 0x7fffffffu : relu && (bits >> 31) != 0 ? 0u : rounded;
    }
  });
}

/// F2FP.F16.F32.MERGE_C with nothing to merge: one float to the lower half.
template <class Format16>
void pack_single(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  const FloatModifier m(op.a);
  const bool relu = (op.combine & kRelu) != 0;
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i) {
      const u32 bits = m(a[i]);
      d[i] = relu && (bits >> 31) != 0 && as_float(bits) == as_float(bits) ? 0u : pack_one<Format16>(bits, op);
    }
  });
}

/// I2IP, F2IP: two integers or floats saturated to bytes or halfwords, the second source lowest; what of c has room
/// above them stays.
template <bool kOfFloats>
void pack_integers(Exec& x, const Op& op) {
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  const FloatModifier ma(op.a), mb(op.b);
  const Format to = to_format(op);
  const int bits = integer_bits(to);
  const double low = is_signed(to) ? -std::ldexp(1.0, bits - 1) : 0;
  const double high = std::ldexp(1.0, is_signed(to) ? bits - 1 : bits) - 1;
  const bool from_signed = is_signed(from_format(op));
  const auto value = [&](u32 word, const FloatModifier& m) {
    double v = from_signed ? static_cast<double>(static_cast<std::int32_t>(word)) : static_cast<double>(word);
    if (kOfFloats) v = round_whole(static_cast<double>(as_float(m(word))), static_cast<Rounding>(op.variant));
    if (v != v) v = 0;
    return static_cast<u32>(static_cast<std::int32_t>(v < low ? low : v > high ? high : v)) & ((1u << bits) - 1);
  };
  write_row(x, op, [&](u32* d) {
    for (int i = 0; i < kWarpLanes; ++i)
      d[i] = value(b[i], mb) | value(a[i], ma) << bits | (bits == 8 ? c[i] << 16 : 0u);
  });
}

// --- decoding --------------------------------------------------------------------------------------------------------

std::uint8_t rounding_bits(const OperandReader& r) {
  const bool down = r.has(Modifier::RM) || r.has(Modifier::FLOOR);
  const bool up = r.has(Modifier::RP) || r.has(Modifier::CEIL);
  const bool zero = r.has(Modifier::RZ) || r.has(Modifier::TRUNC);
  const Rounding mode = down ? Rounding::Down : up ? Rounding::Up : zero ? Rounding::Zero : Rounding::Nearest;
  return static_cast<std::uint8_t>(mode);
}

/// The formats among the modifiers, in order.
std::vector<Format> formats_of(const Instruction& in) {
  struct Name {
    Modifier modifier;
    Format format;
  };
  static constexpr Name kNames[] = {
      {Modifier::F32, Format::F32},   {Modifier::F64, Format::F64}, {Modifier::F16, Format::F16},
      {Modifier::BF16, Format::Bf16}, {Modifier::S32, Format::S32}, {Modifier::U32, Format::U32},
      {Modifier::S64, Format::S64},   {Modifier::U64, Format::U64}, {Modifier::S16, Format::S16},
      {Modifier::U16, Format::U16},   {Modifier::S8, Format::S8},   {Modifier::U8, Format::U8}};
  std::vector<Format> found;
  for (int m = 0; m < in.modifier_count; ++m) {
    for (const Name& n : kNames) {
      if (n.modifier == in.modifier_list[static_cast<std::size_t>(m)]) found.push_back(n.format);
    }
  }
  return found;
}

bool decode_conversion(const OperandReader& r, Op& op, Format to, Format from) {
  const bool float_source = is_float(from);
  op.a = from == Format::F64 ? r.dual(0) : float_source ? r.single(0) : is_wide(from) ? r.integer64(0) : r.integer(0);
  if (from == Format::F16 || from == Format::Bf16) op.a = r.half(0);
  op.immediate = pack_formats(to, from);
  op.variant = rounding_bits(r);
  op.scale = r.values() > 0 ? r.value(0).byte : 0;
  if (r.values() > 0 && r.value(0).half == HalfSelect::H1) op.scale = 2;
  op.combine =
      static_cast<std::uint8_t>((r.has(Modifier::FTZ) ? kFlush : 0) | (r.has(Modifier::SAT) ? kSaturate : 0) |
                                (r.has(Modifier::NTZ) ? kNanToZero : 0) | (r.has(Modifier::SATFINITE) ? kClamp : 0));
  op.run = convert_lanes;
  if (to == Format::F32 && from == Format::S32 && op.variant == 0) op.run = i2f_s32;
  if (to == Format::S32 && from == Format::F32 && op.scale == 0) {
    if (static_cast<Rounding>(op.variant) == Rounding::Nearest) op.run = f2i_s32<Rounding::Nearest>;
    if (static_cast<Rounding>(op.variant) == Rounding::Zero) op.run = f2i_s32<Rounding::Zero>;
  }
  return float_source || op.a.flip == 0 || op.run == i2f_s32;
}

}  // namespace

bool emulate_f2fp(const OperandReader& r, Op& op) {
  if (r.has(Modifier::UNPACK_B) && r.has(Modifier::F16) && r.has(Modifier::E4M3) != r.has(Modifier::E5M2) &&
      r.values() == 1 && !r.has(Modifier::RELU)) {
    op.a = r.integer(0);
    op.variant = r.has(Modifier::E5M2);
    op.immediate = 8u * r.value(0).byte;
    op.run = unpack_bytes;
    return op.a.flip == 0;
  }
  const bool to_bytes = r.has(Modifier::E4M3) != r.has(Modifier::E5M2) && r.has(Modifier::SATFINITE);
  const bool of_floats = r.has(Modifier::PACK_AB_MERGE_C) && r.has(Modifier::F32) && r.values() == 3;
  const bool of_halves = r.has(Modifier::UNPACK_B_MERGE_C) && r.has(Modifier::F16) && r.values() == 2;
  if (to_bytes && (of_floats || of_halves)) {
    op.a = of_floats ? r.single(0) : r.integer(0);
    if (of_floats) op.b = r.single(1);
    op.c = r.integer(of_floats ? 2 : 1);
    op.variant = r.has(Modifier::E5M2);
    op.combine = static_cast<std::uint8_t>(r.has(Modifier::RELU) ? kRelu : 0);
    op.run = of_floats ? pack_floats : pack_halves;
    const bool whole = of_floats || (op.a.flip == 0 && r.value(0).byte == 0 && r.value(0).half == HalfSelect::Packed);
    return whole && op.c.flip == 0 && rounding_bits(r) == 0;
  }
  op.variant = rounding_bits(r);
  op.combine =
      static_cast<std::uint8_t>((r.has(Modifier::RELU) ? kRelu : 0) | (r.has(Modifier::SATFINITE) ? kClamp : 0));
  const bool even_or_zero = op.variant == static_cast<std::uint8_t>(Rounding::Nearest) ||
                            op.variant == static_cast<std::uint8_t>(Rounding::Zero);
  if (r.has(Modifier::TF32) && r.has(Modifier::F32) && r.has(Modifier::PACK_B) && r.values() == 1 && even_or_zero &&
      !r.has(Modifier::RNA) && !r.has(Modifier::SATFINITE)) {
    op.a = r.single(0);
    op.run = round_to_tf32;
    return true;
  }
  const bool to_half = r.has(Modifier::F16) != r.has(Modifier::BF16);
  if (r.has(Modifier::MERGE_C) && r.has(Modifier::F32) && to_half && r.values() == 2 &&
      r.value(1).kind == OperandKind::Register && r.value(1).index == kRegisterZero) {
    op.a = r.single(0);
    op.run = r.has(Modifier::BF16) ? pack_single<Brain> : pack_single<Half>;
    return true;
  }
  const bool merge = r.has(Modifier::PACK_AB_MERGE_C) || r.has(Modifier::MERGE_C) || r.has(Modifier::UNPACK_B);
  if (merge || r.has(Modifier::E4M3) || r.has(Modifier::E5M2) || r.has(Modifier::TF32) || r.values() != 2) return false;
  op.a = r.single(0);
  op.b = r.single(1);
  op.run = r.has(Modifier::BF16) ? f2fp<Brain> : f2fp<Half>;
  return true;
}

namespace {

/// The two formats of a packing conversion, the target first.
bool read_packing(const OperandReader& r, Op& op) {
  const std::vector<Format> found = formats_of(r.instruction());
  if (found.size() != 2 || is_float(found[0]) || integer_bits(found[0]) > 16 || r.values() != 3) return false;
  op.immediate = pack_formats(found[0], found[1]);
  op.c = r.integer(2);
  return op.c.flip == 0;
}

}  // namespace

bool emulate_i2ip(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.run = pack_integers<false>;
  return read_packing(r, op) && r.has(Modifier::SAT) && op.a.flip == 0 && op.b.flip == 0 &&
         (from_format(op) == Format::S32 || from_format(op) == Format::U32);
}

bool emulate_f2ip(const OperandReader& r, Op& op) {
  op.a = r.single(0);
  op.b = r.single(1);
  op.variant = rounding_bits(r);
  op.run = pack_integers<true>;
  return read_packing(r, op) && from_format(op) == Format::F32 && r.has(Modifier::NTZ) && !r.has(Modifier::FTZ);
}

bool emulate_f2f(const OperandReader& r, Op& op) {
  const std::vector<Format> found = formats_of(r.instruction());
  return found.size() == 2 && is_float(found[0]) && is_float(found[1]) && decode_conversion(r, op, found[0], found[1]);
}

bool emulate_i2i(const OperandReader& r, Op& op) {
  const std::vector<Format> found = formats_of(r.instruction());
  return found.size() == 2 && !is_float(found[0]) && !is_float(found[1]) &&
         decode_conversion(r, op, found[0], found[1]);
}

/// What nvdisasm leaves unsaid: F2I makes an S32 of an F32, I2F an F32 of an S32, FRND works on F32.
bool emulate_f2i(const OperandReader& r, Op& op) {
  Format to = Format::S32, from = Format::F32;
  for (const Format f : formats_of(r.instruction())) (is_float(f) ? from : to) = f;
  return decode_conversion(r, op, to, from);
}

bool emulate_i2f(const OperandReader& r, Op& op) {
  Format to = Format::F32, from = Format::S32;
  for (const Format f : formats_of(r.instruction())) (is_float(f) ? to : from) = f;
  return decode_conversion(r, op, to, from);
}

bool emulate_frnd(const OperandReader& r, Op& op) {
  const std::vector<Format> found = formats_of(r.instruction());
  const Format format = found.empty() ? Format::F32 : found[0];
  op.carry_out = true;
  return is_float(format) && decode_conversion(r, op, format, format);
}

}  // namespace forewarp::emulation
