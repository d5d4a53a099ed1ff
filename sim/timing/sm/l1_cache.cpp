#include "timing/sm/l1_cache.h"

#include <algorithm>

namespace forewarp {

L1Cache::L1Cache(std::uint32_t bytes, int ways)
    : sets_(std::max<std::uint64_t>(1, bytes / static_cast<std::uint32_t>(kLineBytes * ways))), ways_(ways) {
  lines_.resize(sets_ * static_cast<std::uint64_t>(ways_));
}

void L1Cache::clear() { std::fill(lines_.begin(), lines_.end(), Line{}); }

}  // namespace forewarp
