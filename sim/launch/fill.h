// Writes the initial contents of a buffer into the caller's memory, on all cores. make_buffer (launch.h) allocates it.
#pragma once

#include <cstdint>
#include <span>

#include "launch/launch.h"

namespace forewarp {

/// Fills all of `bytes` as buffer.fill says. bytes.size() must be buffer.bytes. addresses[i] belongs to
/// Case::buffers[i].
void fill_buffer(const Buffer& buffer, std::span<const std::uint64_t> addresses, std::span<std::uint8_t> bytes);

/// Fills the part of the buffer that begins at `offset`, in whole elements. Not for fills from a file.
void fill_part(const Buffer& buffer, std::span<const std::uint64_t> addresses, std::uint64_t offset,
               std::span<std::uint8_t> bytes);

/// Element size of a fill in bytes; a buffer is a whole number of elements.
std::uint32_t element_bytes(const Fill& fill);

}  // namespace forewarp
