// float to f16, bf16 and e4m3, rounded to nearest even as on the GPU.
#pragma once

#include <bit>
#include <cstdint>

namespace forewarp {

inline std::uint16_t to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;  // NaN: the GPU's canonical one
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline std::uint16_t to_f16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result is a multiple of 2^-24: adding 0.5 leaves exactly those bits, rounded by the addition.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rebiased = magnitude - 0x38000000u;  // exponent bias 127 to 15
  return static_cast<std::uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
}

/// fp8 of four exponent and three mantissa bits; what is beyond its largest number, 448, becomes that number.
inline std::uint8_t to_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  if (magnitude > 0x7f800000u) return 0x7f;
  if (magnitude >= 0x43e00000u) return static_cast<std::uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) {
    // Below 2^-6 a multiple of 2^-9: adding 2^14 leaves exactly those bits, rounded by the addition.
    const float shifted = std::bit_cast<float>(magnitude) + 16384.f;
    return static_cast<std::uint8_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x46800000u));
  }
  const std::uint32_t rebiased = magnitude - 0x3c000000u;  // exponent bias 127 to 7
  return static_cast<std::uint8_t>(sign | ((rebiased + 0x7ffffu + ((rebiased >> 20) & 1u)) >> 20));
}

}  // namespace forewarp
