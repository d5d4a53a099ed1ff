// Limits of CUDA itself, alike on every GPU that forewarp knows, which more than one module checks.
#pragma once

#include <cstddef>
#include <cstdint>

namespace forewarp {

inline constexpr std::uint32_t kMostClusterBlocks = 16;  ///< 8 is portable; 16 after opting in
inline constexpr std::size_t kMostBoxDims = 5;           ///< of a box that TMA copies

}  // namespace forewarp
