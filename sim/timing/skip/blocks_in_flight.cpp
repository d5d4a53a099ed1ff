#include "timing/skip/blocks_in_flight.h"

#include <algorithm>

namespace forewarp {
namespace {

BlockProgress progress(const Sm& sm, const ResidentBlock& block, const KernelTrace& trace) {
  BlockProgress progress;
  progress.block = block.linear;
  double done = 0, all = 0;
  for (const std::uint16_t index : block.warps) {
    const Warp& warp = sm.warp(index);
    const auto way = static_cast<double>(trace.classes[warp.cls].paths[warp.path].instructions);
    const double behind = warp.alive ? way - static_cast<double>(warp.cursor.ahead()) : way;
    done += behind;
    all += way;
    progress.leads.push_back(behind / way);
  }
  progress.done = all > 0 ? done / all : 1;
  for (double& lead : progress.leads) lead -= progress.done;
  return progress;
}

}  // namespace

std::vector<std::vector<BlockProgress>> blocks_in_flight(const Gpu& gpu, const KernelTrace& trace) {
  std::vector<std::vector<BlockProgress>> blocks(gpu.sms());
  for (std::size_t id = 0; id < gpu.sms(); ++id) {
    const Sm& sm = gpu.sm(static_cast<std::uint16_t>(id));
    for (const ResidentBlock block : sm.residents()) blocks[id].push_back(progress(sm, block, trace));
    std::ranges::sort(blocks[id], {}, &BlockProgress::block);
  }
  return blocks;
}

}  // namespace forewarp
