// Tensor maps: what a kernel hands to the tensor memory accelerator (CUtensorMap). A launch file says what
// cuTensorMapEncodeTiled is told; the rules are the driver's. The 128 bytes of a real map are the driver's own affair:
// the simulator passes an encoding of its own, which only it reads, and the runner replaces it by the driver's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace forewarp {

inline constexpr std::uint32_t kTensorMapBytes = 128;
inline constexpr std::uint32_t kTensorMapAlignment = 64;
inline constexpr int kMostTensorDims = 5;

enum class TensorType : std::uint8_t { U8, U16, U32, I32, U64, I64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz };
enum class TensorInterleave : std::uint8_t { None, B16, B32 };
enum class TensorSwizzle : std::uint8_t { None, B32, B64, B128 };
enum class TensorPromotion : std::uint8_t { None, B64, B128, B256 };
enum class TensorFill : std::uint8_t { Zeros, Nan };

std::uint32_t element_bytes(TensorType);
bool is_float(TensorType);
/// Bytes of a row of shared memory within which 16-byte chunks change places; 0: they do not.
std::uint32_t swizzle_bytes(TensorSwizzle);

/// Dimensions are innermost first. Lengths and steps are in elements, strides in bytes; there is none for the innermost
/// dimension, whose elements are neighbours.
struct TensorMap {
  std::uint64_t address = 0;
  TensorType type = TensorType::U8;
  TensorInterleave interleave = TensorInterleave::None;
  TensorSwizzle swizzle = TensorSwizzle::None;
  TensorPromotion promotion = TensorPromotion::None;
  TensorFill fill = TensorFill::Zeros;
  int rank = 1;
  std::array<std::uint64_t, kMostTensorDims> shape{1, 1, 1, 1, 1};
  std::array<std::uint64_t, kMostTensorDims> strides{};  ///< strides[0] is that of an element
  std::array<std::uint32_t, kMostTensorDims> box{1, 1, 1, 1, 1};
  std::array<std::uint32_t, kMostTensorDims> steps{1, 1, 1, 1, 1};

  /// Elements of a box along a dimension: those that are stepped over are not fetched.
  std::uint32_t extent(int dimension) const {
    const auto d = static_cast<std::size_t>(dimension);
    return (box[d] + steps[d] - 1) / steps[d];
  }
  std::uint64_t box_bytes() const;
  /// From the first byte of the tensor to behind its last one.
  std::uint64_t reach() const;
  bool operator==(const TensorMap&) const = default;
};

/// What the driver would find wrong: "WHAT is wrong" of the first thing; empty if nothing is.
std::string tensor_map_fault(const TensorMap&);

/// Our own encoding: the address first, so that a launch file's pointer can be put there.
std::array<std::uint8_t, kTensorMapBytes> encode_tensor_map(const TensorMap&);
/// Nothing if the bytes are no map of ours.
std::optional<TensorMap> decode_tensor_map(std::span<const std::uint8_t>);

}  // namespace forewarp
