// Writes a fill into memory that the caller owns, on all cores; make_buffer (launch.h) is this over a new vector.
#pragma once

#include <cstdint>
#include <span>

#include "launch/launch.h"

namespace forewarp {

/// Every byte of `bytes`, exactly as buffer.fill says. bytes.size() must be buffer.bytes.
void fill_buffer(const Buffer& buffer, std::span<std::uint8_t> bytes);

/// The part of that which begins `offset` bytes into the buffer; whole elements, and no fill from a file.
void fill_part(const Buffer& buffer, std::uint64_t offset, std::span<std::uint8_t> bytes);

/// Bytes of one element of a fill: buffers hold a whole number of them.
std::uint32_t element_bytes(const Fill& fill);

}  // namespace forewarp
