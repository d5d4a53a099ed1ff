#include "timing/loop_progress.h"

#include <map>
#include <utility>

namespace forewarp {
std::vector<double> moved_between(const LoopProgress& earlier, const LoopProgress& later) {
  std::vector<double> moved(later.blocks.size());
  for (std::size_t b = 0; b < moved.size(); ++b) moved[b] = later.blocks[b].position - earlier.blocks[b].position;
  return moved;
}

std::vector<double> steady_moves(const LoopProgress& progress, std::span<const double> moved) {
  struct Sum {
    double moved = 0, blocks = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> groups;
  for (std::size_t b = 0; b < moved.size(); ++b) {
    Sum& sum = groups[{progress.blocks[b].cls, progress.blocks[b].sm_warps}];
    sum.moved += moved[b];
    sum.blocks += 1;
  }
  std::vector<double> means(moved.size());
  for (std::size_t b = 0; b < moved.size(); ++b) {
    const Sum& sum = groups[{progress.blocks[b].cls, progress.blocks[b].sm_warps}];
    means[b] = sum.moved / sum.blocks;
  }
  return means;
}

}  // namespace forewarp
