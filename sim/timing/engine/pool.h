// A pool of items addressed by number: one growing array with a free list, so nothing is allocated once the run has
// passed its peak. T has a member `next`, which the owner may use for chains while the item is taken. References are
// valid until the next take().
#pragma once

#include <cstdint>
#include <vector>

namespace forewarp {

template <typename T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_ == kNone) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t id = free_;
    free_ = items_[id].next;
    items_[id] = T{};
    return id;
  }
  void give(std::uint32_t id) {
    items_[id].next = free_;
    free_ = id;
  }
  T& operator[](std::uint32_t id) { return items_[id]; }
  const T& operator[](std::uint32_t id) const { return items_[id]; }
  void prefetch(std::uint32_t id) const { __builtin_prefetch(items_.data() + id); }

 private:
  static constexpr std::uint32_t kNone = ~0u;
  std::vector<T> items_;
  std::uint32_t free_ = kNone;
};

}  // namespace forewarp
