// Types and constants that every stage shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forewarp {

inline constexpr int kWarpLanes = 32;
inline constexpr std::size_t kGroupWarps = 4;  ///< of a warpgroup
inline constexpr int kWarpSlots = 16;          ///< most warps a sub-partition of the model holds
inline constexpr int kSectorBytes = 32;        ///< unit of L1, L2 and DRAM transfers
inline constexpr int kLineBytes = 128;         ///< unit of L1 and L2 tags: four sectors

using Cycle = std::uint64_t;     ///< SM clock cycles since the launch
using LaneMask = std::uint32_t;  ///< bit i = lane i of a warp

inline constexpr Cycle kNever = ~Cycle{0};

/// Extent of a grid or block, or an index into one.
struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  std::uint64_t count() const { return std::uint64_t{x} * y * z; }
  bool operator==(const Dim3&) const = default;
};

}  // namespace forewarp
