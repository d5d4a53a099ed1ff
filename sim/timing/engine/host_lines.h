// Arrays aligned to the host's cache lines, so that a set of an L2 slice spans as few of them as possible.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace forewarp {

template <typename T>
struct HostLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  HostLineAllocator() = default;
  template <typename U>
  HostLineAllocator(const HostLineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, kAlignment); }
  bool operator==(const HostLineAllocator&) const { return true; }
};

template <typename T>
using HostLines = std::vector<T, HostLineAllocator<T>>;

}  // namespace forewarp
