// Packs a launch's arguments into a kernel's parameter area.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "launch/launch.h"

namespace forewarp {

/// Where a kernel expects a parameter: program.h's Parameter, without depending on that module.
struct ParameterSlot {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

/// The parameter area: arguments at their slots, gaps zero. addresses[i] belongs to Case::buffers[i].
/// InputError if the number or sizes of the arguments do not match the kernel's parameters.
std::vector<std::uint8_t> pack_parameters(const Launch& launch, std::span<const std::uint64_t> addresses,
                                          std::span<const ParameterSlot> slots);

/// addresses[i] belongs to Case::buffers[i].
std::uint64_t address_of(const Pointer& pointer, std::span<const std::uint64_t> addresses);

/// Offsets of tensor maps in the packed area, in our encoding (decode_tensor_map).
std::vector<std::uint32_t> map_places(const Launch& launch, std::span<const ParameterSlot> slots);

/// "f32", "pointer", ...: as launch files spell it.
std::string argument_kind_text(ArgumentKind kind);

}  // namespace forewarp
