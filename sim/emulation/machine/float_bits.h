// Floating point as the GPU does it, where that differs from the host: canonical NaNs, flushed denormals, saturation,
// directed rounding, and the 16-bit formats.
#pragma once

#if defined(__SSE__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace forewarp::emulation {

inline constexpr std::uint32_t kCanonicalNan = 0x7fffffffu;

inline float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline std::uint32_t as_bits(float value) { return std::bit_cast<std::uint32_t>(value); }
inline double as_double(std::uint32_t low, std::uint32_t high) {
  return std::bit_cast<double>(low | static_cast<std::uint64_t>(high) << 32);
}

/// Denormals to zero of the same sign.
inline std::uint32_t flush_bits(std::uint32_t bits) { return (bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits; }
inline std::uint32_t canonical(float value) { return value == value ? as_bits(value) : kCanonicalNan; }
/// [0, 1]; NaN becomes 0.
inline std::uint32_t saturate(std::uint32_t bits) {
  const float v = as_float(bits);
  return v >= 1.0f ? 0x3f800000u : v > 0.0f ? bits : 0u;
}

enum class Rounding : std::uint8_t { Nearest, Down, Up, Zero };

/// Sets the host's rounding for a scope; loops over memory inside it stay inside it.
class RoundingScope {
 public:
  explicit RoundingScope(Rounding mode) : changed_(mode != Rounding::Nearest) {
    if (changed_) set(mode);
  }
  ~RoundingScope() {
    if (changed_) set(Rounding::Nearest);
  }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;

 private:
  static void set(Rounding mode) {
    asm volatile("" ::: "memory");
#if defined(__SSE__)
    static constexpr unsigned kModes[] = {_MM_ROUND_NEAREST, _MM_ROUND_DOWN, _MM_ROUND_UP, _MM_ROUND_TOWARD_ZERO};
    _MM_SET_ROUNDING_MODE(kModes[static_cast<int>(mode)]);
#else
    static constexpr int kModes[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    std::fesetround(kModes[static_cast<int>(mode)]);
#endif
    asm volatile("" ::: "memory");
  }
  bool changed_;
};

/// An IEEE-like 16-bit format; kExponentBits = 5 is half, 8 is bfloat16.
template <int kExponentBits>
struct Narrow {
  static constexpr int kMantissaBits = 15 - kExponentBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr std::uint32_t kInfinity = ((1u << kExponentBits) - 1) << kMantissaBits;
  static constexpr std::uint32_t kNan = 0x7fffu;

  static double decode(std::uint32_t bits) {
    const std::uint32_t magnitude = (bits & 0x7fffu) << (23 - kMantissaBits), sign = (bits & 0x8000u) << 16;
    // Scaled by a power of two the fields are those of a float, subnormal ones too.
    constexpr float kScale = std::bit_cast<float>((127u + 127u - kBias) << 23);
    const auto scaled = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * kScale);
    const std::uint32_t special = (bits & 0x7fffu) >= kInfinity ? 0x7f800000u : 0u;
    return static_cast<double>(std::bit_cast<float>(scaled | special | sign));
  }

  /// Rounds a double once. Callers that computed it inexactly have made it odd (see fused).
  static std::uint32_t encode(double value, Rounding mode = Rounding::Nearest, bool clamp = false) {
    if (value != value) return kNan;
    const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
    const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(value) & ~(std::uint64_t{1} << 63);
    if (magnitude == 0) return sign;
    if (magnitude >> 52 == 0x7ff) return sign | (clamp ? kInfinity - 1 : kInfinity);
    const int field = static_cast<int>(magnitude >> 52);  // value = significand * 2^(max(field, 1) - 1075)
    const std::uint64_t significand =
        (magnitude & ((std::uint64_t{1} << 52) - 1)) | (field != 0 ? std::uint64_t{1} << 52 : 0);
    const int unit = std::max(field - 1023 - kMantissaBits, kLowest);  // exponent of the last place that is kept
    const int drop = std::min(unit - std::max(field, 1) + 1075, 62);   // bits below it; all of them from 54 on
    std::uint64_t whole = significand >> drop;
    const std::uint64_t rest = significand & ((std::uint64_t{1} << drop) - 1), half = std::uint64_t{1} << (drop - 1);
    bool up = false;
    switch (mode) {
      case Rounding::Nearest:
        up = rest > half || (rest == half && (whole & 1) != 0);
        break;
      case Rounding::Up:
        up = rest > 0 && sign == 0;
        break;
      case Rounding::Down:
        up = rest > 0 && sign != 0;
        break;
      case Rounding::Zero:
        break;
    }
    if (up) whole += 1;
    // Adding the mantissa to the exponent field lets a carry move into the next binade.
    const std::uint64_t bits = (static_cast<std::uint64_t>(unit - kLowest) << kMantissaBits) + whole;
    if (bits >= kInfinity) {
      const bool to_infinity = mode == Rounding::Nearest || mode == (sign == 0 ? Rounding::Up : Rounding::Down);
      return sign | (clamp || !to_infinity ? kInfinity - 1 : kInfinity);
    }
    return sign | static_cast<std::uint32_t>(bits);
  }

 private:
  static constexpr int kLowest = 1 - kBias - kMantissaBits;  ///< exponent of a subnormal's last place
};

using Half = Narrow<5>;
using Brain = Narrow<8>;

/// a + b in double, made odd when inexact, so that rounding it again to a narrower format rounds correctly.
inline double odd_sum(double a, double b) {
  const double s = a + b;
  if (!std::isfinite(s)) return s;
  const double t = s - a;
  const double error = (a - (s - t)) + (b - t);
  auto bits = std::bit_cast<std::uint64_t>(s);
  if (error == 0 || (bits & 1u) != 0) return s;
  bits += (error > 0) == (s > 0) ? 1 : ~std::uint64_t{0};
  return std::bit_cast<double>(bits);
}

/// Round to nearest even, as F2FP and the results of half arithmetic are packed.
inline std::uint32_t float_to_half(float v) {
#if defined(__F16C__)
  return v == v ? static_cast<std::uint32_t>(_cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT)) : Half::kNan;
#else
  return Half::encode(v);
#endif
}
inline float half_to_float(std::uint32_t bits) {
#if defined(__F16C__)
  return _cvtsh_ss(static_cast<std::uint16_t>(bits));
#else
  return static_cast<float>(Half::decode(bits));
#endif
}
inline std::uint32_t float_to_brain(float v) {
  if (v != v) return Brain::kNan;
  const std::uint32_t bits = as_bits(v);
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
inline float brain_to_float(std::uint32_t bits) { return as_float(bits << 16); }

}  // namespace forewarp::emulation
