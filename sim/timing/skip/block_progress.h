// How far a block in flight is.
#pragma once

#include <cstdint>

namespace forewarp {

struct BlockProgress {
  std::uint32_t block = 0;
  std::uint16_t sm = 0;
  double done = 0;  ///< part of its instructions
};

}  // namespace forewarp
