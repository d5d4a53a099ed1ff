// Serialises a timing result for the cache. Only the engine that wrote the bytes reads them (it is part of the key), so
// records are copied as they lie in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "timing/result.h"

namespace forewarp {

std::vector<std::uint8_t> encode_timing(const TimingResult&);
/// Nothing if the bytes are not a timing result.
std::optional<TimingResult> decode_timing(const std::vector<std::uint8_t>&);

}  // namespace forewarp
