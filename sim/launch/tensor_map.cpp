#include "launch/tensor_map.h"

#include <algorithm>
#include <cstring>

namespace forewarp {
namespace {

// The driver's limits (cuTensorMapEncodeTiled).
constexpr std::uint64_t kMostLength = std::uint64_t{1} << 32, kMostStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMostBox = 256, kMostStep = 8;

/// As it lies in the 128 bytes.
struct Encoded {
  std::uint64_t address;
  std::uint32_t mark;
  std::uint8_t rank, type, interleave, swizzle;
  std::uint8_t promotion, fill;
  std::uint8_t steps[kMostTensorDims];
  std::uint8_t unused;
  std::uint16_t box[kMostTensorDims];
  std::uint16_t unused_too;
  std::uint64_t shape[kMostTensorDims];
  std::uint64_t strides[kMostTensorDims - 1];
};
static_assert(sizeof(Encoded) <= kTensorMapBytes);
constexpr std::uint32_t kMark = 0x70616d74;  // "tmap"

std::string dimension(const char* what, int d) { return std::string(what) + "[" + std::to_string(d) + "] "; }

std::string length_fault(const TensorMap& m, int d) {
  const auto i = static_cast<std::size_t>(d);
  const std::uint64_t grain = m.interleave == TensorInterleave::B32 ? 32 : 16;
  if (m.shape[i] == 0 || m.shape[i] > kMostLength) return dimension("shape", d) + "must be from 1 to 2^32";
  if (m.box[i] == 0 || m.box[i] > kMostBox) return dimension("box", d) + "must be from 1 to 256 elements";
  if (m.steps[i] == 0 || m.steps[i] > kMostStep) return dimension("element_strides", d) + "must be from 1 to 8";
  if (d == 0) return {};
  if (m.strides[i] % grain != 0 || m.strides[i] >= kMostStride)
    return dimension("strides", d - 1) + "must be a multiple of " + std::to_string(grain) + " bytes below 2^40";
  return {};
}

}  // namespace

std::uint32_t element_bytes(TensorType type) {
  switch (type) {
    case TensorType::U8:
      return 1;
    case TensorType::U16:
    case TensorType::F16:
    case TensorType::Bf16:
      return 2;
    case TensorType::U64:
    case TensorType::I64:
    case TensorType::F64:
      return 8;
    default:
      return 4;
  }
}

bool is_float(TensorType type) { return type >= TensorType::F16; }

std::uint32_t swizzle_bytes(TensorSwizzle swizzle) {
  return swizzle == TensorSwizzle::None ? 0 : 16u << static_cast<unsigned>(swizzle);
}

std::uint64_t TensorMap::box_bytes() const {
  std::uint64_t elements = 1;
  for (int d = 0; d < rank; ++d) elements *= extent(d);
  return elements * element_bytes(type);
}

std::uint64_t TensorMap::reach() const {
  std::uint64_t last = element_bytes(type);
  for (std::size_t d = 0; d < static_cast<std::size_t>(rank); ++d) last += (shape[d] - 1) * strides[d];
  return last;
}

std::string tensor_map_fault(const TensorMap& m) {
  if (m.rank < 1 || m.rank > kMostTensorDims) return "shape must have 1 to 5 dimensions";
  if (m.interleave != TensorInterleave::None && m.rank < 3) return "interleave takes at least 3 dimensions";
  if (m.address % (m.interleave == TensorInterleave::B32 ? 32 : 16) != 0)
    return "pointer must be aligned to 16 bytes, to 32 with interleave 32B";
  for (int d = 0; d < m.rank; ++d)
    if (std::string fault = length_fault(m, d); !fault.empty()) return fault;
  if (m.interleave == TensorInterleave::None) {
    const std::uint32_t inner = m.box[0] * element_bytes(m.type);
    if (inner % 16 != 0) return "box[0] must take a multiple of 16 bytes, not " + std::to_string(inner);
    const std::uint32_t most = swizzle_bytes(m.swizzle);
    if (most != 0 && inner > most)
      return "box[0] takes " + std::to_string(inner) + " bytes, more than the swizzle's " + std::to_string(most);
  }
  if (m.interleave == TensorInterleave::B32 && m.swizzle != TensorSwizzle::B32)
    return "interleave 32B takes swizzle 32B";
  if (m.fill == TensorFill::Nan && !is_float(m.type)) return "fill nan takes a floating-point type";
  return {};
}

std::array<std::uint8_t, kTensorMapBytes> encode_tensor_map(const TensorMap& m) {
  Encoded e{};
  e.address = m.address;
  e.mark = kMark;
  e.rank = static_cast<std::uint8_t>(m.rank);
  e.type = static_cast<std::uint8_t>(m.type);
  e.interleave = static_cast<std::uint8_t>(m.interleave);
  e.swizzle = static_cast<std::uint8_t>(m.swizzle);
  e.promotion = static_cast<std::uint8_t>(m.promotion);
  e.fill = static_cast<std::uint8_t>(m.fill);
  for (std::size_t d = 0; d < kMostTensorDims; ++d) {
    e.steps[d] = static_cast<std::uint8_t>(m.steps[d]);
    e.box[d] = static_cast<std::uint16_t>(m.box[d]);
    e.shape[d] = m.shape[d];
    if (d > 0) e.strides[d - 1] = m.strides[d];
  }
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), &e, sizeof e);
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::uint8_t> bytes) {
  Encoded e{};
  if (bytes.size() < sizeof e) return {};
  std::memcpy(&e, bytes.data(), sizeof e);
  if (e.mark != kMark) return {};
  TensorMap m;
  m.address = e.address;
  m.rank = e.rank;
  m.type = static_cast<TensorType>(e.type);
  m.interleave = static_cast<TensorInterleave>(e.interleave);
  m.swizzle = static_cast<TensorSwizzle>(e.swizzle);
  m.promotion = static_cast<TensorPromotion>(e.promotion);
  m.fill = static_cast<TensorFill>(e.fill);
  m.strides[0] = element_bytes(m.type);
  for (std::size_t d = 0; d < kMostTensorDims; ++d) {
    m.steps[d] = e.steps[d];
    m.box[d] = e.box[d];
    m.shape[d] = e.shape[d];
    if (d > 0) m.strides[d] = e.strides[d - 1];
  }
  return m;
}

}  // namespace forewarp
