#include "advise/whole_waves.h"

#include <algorithm>

#include "trace/class_index.h"

namespace forewarp::advise {

namespace {

constexpr std::uint64_t kMostBlocks = 1 << 22;  ///< whose classes are looked up

/// Its outermost extent cut so that at most so many blocks are left; {0, 0, 0} if that leaves none.
Dim3 cut(const Dim3& grid, std::uint64_t most) {
  Dim3 left = grid;
  if (grid.z > 1) {
    left.z = static_cast<std::uint32_t>(std::min<std::uint64_t>(grid.z, most / (std::uint64_t{grid.x} * grid.y)));
  } else if (grid.y > 1) {
    left.y = static_cast<std::uint32_t>(std::min<std::uint64_t>(grid.y, most / grid.x));
  } else {
    left.x = static_cast<std::uint32_t>(std::min<std::uint64_t>(grid.x, most));
  }
  return left.count() == 0 ? Dim3{0, 0, 0} : left;
}

}  // namespace

std::shared_ptr<const KernelTrace> whole_waves(const KernelTrace& trace, std::uint64_t blocks_per_wave) {
  const LaunchInfo& l = trace.launch;
  const std::uint64_t blocks = l.grid.count();
  if (blocks_per_wave == 0 || blocks <= blocks_per_wave || blocks % blocks_per_wave == 0 || blocks > kMostBlocks)
    return nullptr;
  if (l.inferred_blocks > 0 || l.side_by_side > 0 || l.cluster.count() > 1) return nullptr;
  const Dim3 left = cut(l.grid, blocks / blocks_per_wave * blocks_per_wave);
  // Rows that leave out half a wave more than they must say little about whole waves.
  if (left.count() == 0 || blocks / blocks_per_wave * blocks_per_wave - left.count() > blocks_per_wave / 2)
    return nullptr;
  auto out = std::make_shared<KernelTrace>(trace);
  out->launch.grid = left;
  out->launch.counted.clear();
  const ClassIndex index(trace);
  for (BlockClass& cls : out->classes) cls.population = 0;
  for (std::uint64_t b = 0; b < left.count(); ++b) ++out->classes[index.class_of(b)].population;
  std::erase_if(out->classes, [](const BlockClass& cls) { return cls.population == 0; });
  return out;
}

}  // namespace forewarp::advise
