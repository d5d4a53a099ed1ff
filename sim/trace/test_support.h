// Small traces and patterns for the tests of this folder.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "trace/trace.h"

namespace forewarp::testing {

/// Lane l of `lanes` at byte `address(l)`.
inline AccessPattern pattern_of(MemorySpace space, MemoryKind kind, int bytes,
                                const std::function<std::int64_t(int)>& address, LaneMask lanes = 0xffffffffu) {
  AccessPattern p;
  p.lanes = lanes;
  p.space = space;
  p.kind = kind;
  p.bytes = static_cast<std::uint8_t>(bytes);
  bool first = true;
  std::int64_t base = 0;
  for (int l = 0; l < kWarpLanes; ++l) {
    if (!(lanes >> l & 1)) continue;
    if (first) base = address(l);
    first = false;
    p.offsets[static_cast<std::size_t>(l)] = static_cast<std::int32_t>(address(l) - base);
  }
  p.base_offset = static_cast<std::uint8_t>(base & (kLineBytes - 1));
  return p;
}

}  // namespace forewarp::testing
