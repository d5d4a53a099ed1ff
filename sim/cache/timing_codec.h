// A timing result to bytes and back, for the cache alone: the bytes are good for the program that wrote them (its
// engine is part of the key), so records go as they lie in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "timing/result.h"

namespace forewarp {

std::vector<std::uint8_t> encode_timing(const TimingResult&);
/// Nothing if the bytes are no timing result.
std::optional<TimingResult> decode_timing(const std::vector<std::uint8_t>&);

}  // namespace forewarp
