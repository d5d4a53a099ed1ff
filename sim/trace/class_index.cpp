#include "trace/class_index.h"

#include "base/error.h"

namespace forewarp {

ClassIndex::ClassIndex(const KernelTrace& trace) : trace_(trace) {
  for (std::uint32_t i = 0; i < trace.classes.size(); ++i) {
    const BlockClass& c = trace.classes[i];
    const std::uint64_t linear =
        (std::uint64_t{c.representative.z} * trace.launch.grid.y + c.representative.y) * trace.launch.grid.x +
        c.representative.x;
    if (c.single) {
      singles_.emplace(linear, i);
    } else {
      shared_.push_back(i);
      places_.push_back(trace.place(c.representative));
    }
  }
}

std::uint32_t ClassIndex::class_of(std::uint64_t linear_block) const {
  if (!singles_.empty()) {
    const auto found = singles_.find(linear_block);
    if (found != singles_.end()) return found->second;
  }
  const BlockPlace place = trace_.place(trace_.block_index(linear_block));
  for (std::size_t i = 0; i < shared_.size(); ++i)
    if (trace_.classes[shared_[i]].contains({places_[i], place})) return shared_[i];
  throw InternalError("block " + std::to_string(linear_block) + " belongs to no class of the trace");
}

}  // namespace forewarp
