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
  auto value = static_cast<std::int64_t>(argument.bits);
  if (argument.kind == ArgumentKind::I32) value = static_cast<std::int32_t>(argument.bits);
  const bool is_signed = argument.kind == ArgumentKind::I32 || argument.kind == ArgumentKind::I64;
  if (is_signed && value < 0) return value >= -(std::int64_t{1} << (bits - 1));
  return (static_cast<std::uint64_t>(value) >> bits) == 0;
}

std::uint64_t bits_of(const Argument& argument, std::span<const std::uint64_t> addresses) {
  if (argument.kind != ArgumentKind::Pointer) return argument.bits;
  FW_CHECK(argument.buffer >= 0 && static_cast<std::size_t>(argument.buffer) < addresses.size(),
           "argument without an address");
  return addresses[static_cast<std::size_t>(argument.buffer)] + argument.offset;
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
  }
  return "?";
}

std::vector<std::uint64_t> argument_bits(const Launch& launch, std::span<const std::uint64_t> addresses) {
  std::vector<std::uint64_t> bits;
  bits.reserve(launch.arguments.size());
  for (const Argument& argument : launch.arguments) bits.push_back(bits_of(argument, addresses));
  return bits;
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
    const std::uint64_t bits = bits_of(argument, addresses);
    std::memcpy(area.data() + slots[i].offset, &bits, std::min<std::size_t>(slots[i].size, sizeof bits));
  }
  return area;
}

}  // namespace forewarp
