// The boxes that an SM's warps have asked for and that have not come, in the order in which they were asked for: what a
// fence of all kinds of accesses waits for.
#pragma once

#include <cstdint>
#include <deque>

namespace forewarp {

class BoxesUnderWay {
 public:
  /// A box is asked for; its number, for come().
  std::uint64_t ask() {
    come_.push_back(false);
    return asked() - 1;
  }
  /// Boxes that have been asked for so far.
  std::uint64_t asked() const { return first_ + come_.size(); }
  void come(std::uint64_t number) {
    come_[static_cast<std::size_t>(number - first_)] = true;
    for (; !come_.empty() && come_.front(); ++first_) come_.pop_front();
  }
  /// Whether the first `count` of them have come.
  bool have_come(std::uint64_t count) const { return first_ >= count; }

 private:
  std::deque<bool> come_;  ///< from number first_ on
  std::uint64_t first_ = 0;
};

}  // namespace forewarp
