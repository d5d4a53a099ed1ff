// Lines to be touched in L2 one after another: each some lines after the host's processor has been asked for what that
// looks at, for the tags of a GPU's L2 are larger than the host's near caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "timing/memory.h"

namespace forewarp {

class TouchQueue {
 public:
  struct Touch {
    LinePlace place;
    std::uint16_t sm = 0;
    std::uint8_t sectors = 0;
    RequestKind kind = RequestKind::Read;
    std::uint8_t bytes = 0;
    bool full = true;
    bool counted = true;  ///< what it moves
  };

  /// Behind those that are waiting.
  void add(const Touch& touch, const MemorySystem& memory) {
    memory.prefetch(touch.place, touch.kind == RequestKind::Write, touch.sm);
    waiting_.push_back(touch);
  }
  /// Touches those that have waited long enough.
  void advance(MemorySystem& memory, L2Traffic& traffic) {
    if (waiting_.size() >= 2 * kAhead) touch(waiting_.size() - kAhead, memory, traffic);
  }
  /// Touches all that are waiting.
  void finish(MemorySystem& memory, L2Traffic& traffic) { touch(waiting_.size(), memory, traffic); }

 private:
  static constexpr std::size_t kAhead = 16;

  void touch(std::size_t count, MemorySystem& memory, L2Traffic& traffic) {
    for (const Touch& t : std::span(waiting_).first(count)) {
      const L2Traffic moved = memory.touch(t.place, t.sectors, t.kind, t.sm, t.full, t.bytes);
      if (t.counted) traffic += moved;
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  std::vector<Touch> waiting_;
};

}  // namespace forewarp
