#include "launch/parameters.h"

#include <algorithm>
#include <cstring>

namespace forewarp {
namespace {

bool is_integer(ArgumentKind kind) {
  return kind == ArgumentKind::I32 || kind == ArgumentKind::U32 || kind == ArgumentKind::I64 ||
         kind == ArgumentKind::U64;
}

/// bool, char and short parameters have no argument kind of their own: an integer whose value fits will do.
bool fits_narrow(const Argument& argument, std::uint32_t size) {
  if (!is_integer(argument.kind) || size == 0 || size >= argument.size()) return false;
  const std::uint32_t bits = size * 8;
  auto value = static_cast<std::int64_t>(argument.bits());
  if (argument.kind == ArgumentKind::I32) value = static_cast<std::int32_t>(argument.bits());
  const bool is_signed = argument.kind == ArgumentKind::I32 || argument.kind == ArgumentKind::I64;
  if (is_signed && value < 0) return value >= -(std::int64_t{1} << (bits - 1));
  return (static_cast<std::uint64_t>(value) >> bits) == 0;
}

/// The argument's bytes, its pointers as addresses.
std::vector<std::uint8_t> placed(const Argument& argument, std::span<const std::uint64_t> addresses) {
  std::vector<std::uint8_t> bytes = argument.bytes;
  for (const Argument::PlacedPointer& p : argument.pointers) {
    const std::uint64_t address = address_of(p.pointer, addresses);
    FW_CHECK(p.at + sizeof address <= bytes.size(), "a pointer beyond its argument");
    std::memcpy(bytes.data() + p.at, &address, sizeof address);
  }
  return bytes;
}

}  // namespace

std::string argument_kind_text(ArgumentKind kind) {
  switch (kind) {
    case ArgumentKind::Pointer:
      return "pointer";
    case ArgumentKind::I32:
      return "i32";
    case ArgumentKind::U32:
      return "u32";
    case ArgumentKind::I64:
      return "i64";
    case ArgumentKind::U64:
      return "u64";
    case ArgumentKind::F32:
      return "f32";
    case ArgumentKind::F64:
      return "f64";
    case ArgumentKind::F16:
      return "f16";
    case ArgumentKind::Bf16:
      return "bf16";
    case ArgumentKind::Bytes:
      return "bytes";
    case ArgumentKind::Struct:
      return "struct";
    case ArgumentKind::TensorMap:
      return "tensor_map";
  }
  return "?";
}

std::uint64_t address_of(const Pointer& pointer, std::span<const std::uint64_t> addresses) {
  FW_CHECK(pointer.buffer >= 0 && static_cast<std::size_t>(pointer.buffer) < addresses.size(),
           "a pointer without an address");
  return addresses[static_cast<std::size_t>(pointer.buffer)] + pointer.offset;
}

std::vector<std::uint8_t> pack_parameters(const Launch& launch, std::span<const std::uint64_t> addresses,
                                          std::span<const ParameterSlot> slots) {
  if (launch.arguments.size() != slots.size())
    throw InputError(launch.where, "kernel " + launch.kernel + " takes " + std::to_string(slots.size()) +
                                       " arguments, but args has " + std::to_string(launch.arguments.size()));
  std::size_t size = 0;
  for (const ParameterSlot& slot : slots) size = std::max<std::size_t>(size, std::size_t{slot.offset} + slot.size);
  std::vector<std::uint8_t> area(size);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const Argument& argument = launch.arguments[i];
    if (argument.size() != slots[i].size && !fits_narrow(argument, slots[i].size))
      throw InputError(argument.where, "argument " + std::to_string(i) + " of kernel " + launch.kernel + " has " +
                                           std::to_string(slots[i].size) + " bytes, but " +
                                           argument_kind_text(argument.kind) + " has " +
                                           std::to_string(argument.size()));
    for (const std::uint32_t map : argument.maps) {
      if (map + kTensorMapBytes > slots[i].size)
        throw InputError(argument.where, "argument " + std::to_string(i) + " of kernel " + launch.kernel +
                                             " has no room for a tensor map of 128 bytes");
    }
    const std::vector<std::uint8_t> bytes = placed(argument, addresses);
    std::copy_n(bytes.begin(), slots[i].size, area.begin() + slots[i].offset);
  }
  return area;
}

std::vector<std::uint32_t> map_places(const Launch& launch, std::span<const ParameterSlot> slots) {
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < launch.arguments.size(); ++i)
    for (const std::uint32_t map : launch.arguments[i].maps) places.push_back(slots[i].offset + map);
  return places;
}

}  // namespace forewarp
