// Where the warps of an SM are in their traces, for those who look at it from outside.
#pragma once

#include <cstdint>

namespace forewarp {

struct ResidentBlock {
  std::uint32_t block = 0;  ///< linear index
  std::uint16_t sm = 0, slot = 0;
};

struct WarpPosition {
  std::uint32_t cls = 0, path = 0;
  std::uint32_t run = 0;     ///< of the path, under way
  std::uint32_t left = 0;    ///< instructions of that run not issued yet
  std::uint32_t access = 0;  ///< memory instructions issued
  bool alive = false;        ///< false: it has left
};

/// Another point of a trace: the same instruction in one of its runs.
struct WarpPlace {
  std::uint32_t run = 0, access = 0;
};

}  // namespace forewarp
