// What the families share: types of elements, and how tensors are filled.
#pragma once

#include "config/config.h"
#include "sketch/arithmetic.h"
#include "sketch/sketch.h"

namespace forewarp::sketch {

inline constexpr int kGridX = 0xc;                           ///< gridDim.x in bank 0
inline constexpr std::uint32_t kMinusInfinity = 0xff800000;  ///< as a float's bits

enum class Type : std::uint8_t { F32, F16, Bf16, Tf32, S8, U8, E4m3 };
Type read_type(const config::Node&, std::initializer_list<Type> accepted);
const char* type_name(Type);
int bytes_of(Type);
Fill random_fill(Type, std::uint32_t seed = 1);

/// An element in a register as a float, and back: what lies in memory.
Value widen(Writer&, Value, Type);
Value narrow(Writer&, Value, Type);
/// The e-th of the elements that lie side by side in registers, as a float.
Value element_of(Writer&, Value words, int e, Type);

Argument pointer_to(int buffer);
Argument number_argument(std::int64_t);

/// Steps of a sketch that a GPU could not run: block sizes and the like.
int read_block(config::Map&, int usual, Draft&);

inline std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
inline int log2_of(int power) {
  int bits = 0;
  while ((1 << bits) < power) ++bits;
  return bits;
}
inline bool is_power_of_two(std::int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace forewarp::sketch
