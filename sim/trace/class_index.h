// Which class a block belongs to, for who asks about every block of a grid.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace forewarp {

/// Refers to the trace it was made from; single-block classes are found by hash, the few others by their conditions.
class ClassIndex {
 public:
  explicit ClassIndex(const KernelTrace& trace);
  std::uint32_t class_of(std::uint64_t linear_block) const;

 private:
  const KernelTrace& trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> singles_;  ///< linear block to class
  std::vector<std::uint32_t> shared_;                         ///< classes of several blocks
  std::vector<BlockPlace> places_;                            ///< of their representatives
};

}  // namespace forewarp
