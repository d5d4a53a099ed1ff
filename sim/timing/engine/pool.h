// A pool of items addressed by number: one growing array, so nothing is allocated once the run has passed its peak. The
// numbers of free items are kept apart from them: which comes next is known without waiting for the host's memory, as
// an item that was given back long ago is in none of its near caches. References are valid until the next take().
#pragma once

#include <cstdint>
#include <vector>

namespace forewarp {

template <typename T>
class Pool {
 public:
  std::uint32_t take() {
    if (free_.empty()) {
      items_.emplace_back();
      return static_cast<std::uint32_t>(items_.size() - 1);
    }
    const std::uint32_t id = free_.back();
    free_.pop_back();
    items_[id] = T{};
    return id;
  }
  void give(std::uint32_t id) { free_.push_back(id); }
  T& operator[](std::uint32_t id) { return items_[id]; }
  const T& operator[](std::uint32_t id) const { return items_[id]; }
  void prefetch(std::uint32_t id) const { __builtin_prefetch(items_.data() + id); }

 private:
  std::vector<T> items_;
  std::vector<std::uint32_t> free_;  ///< the last given is taken first
};

}  // namespace forewarp
