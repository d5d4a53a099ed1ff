// Reading and changing where warps are in their traces. Nothing else of an SM's state changes: what is in flight
// arrives, what is queued stays queued.
#include "timing/sm/sm.h"

namespace forewarp {

void Sm::add_residents(std::vector<ResidentBlock>& out) const {
  for (std::size_t slot = 0; slot < blocks_.size(); ++slot)
    if (blocks_[slot].used) out.push_back({blocks_[slot].linear, id_, static_cast<std::uint16_t>(slot)});
}

WarpPosition Sm::position(std::uint16_t slot, std::size_t w) const {
  const Warp& warp = warps_[blocks_[slot].warps[w]];
  WarpPosition at{warp.cls, warp.path, static_cast<std::uint32_t>(warp.run - warp.runs_begin), warp.left, 0,
                  warp.alive && !warp.done()};
  const WarpTrace& trace = context_.trace.classes[warp.cls].warps[w];
  at.access = static_cast<std::uint32_t>(warp.access - trace.accesses.data());
  return at;
}

void Sm::go_on_as(std::uint16_t slot, std::uint32_t linear, std::span<const WarpPlace> places) {
  Block& block = blocks_[slot];
  const std::uint32_t class_index = context_.classes.class_of(linear);
  const BlockClass& cls = context_.trace.classes[class_index];
  name_block(block, linear, cls);
  for (std::size_t w = 0; w < block.warps.size(); ++w) {
    Warp& warp = warps_[block.warps[w]];
    const WarpPath& path = cls.paths[cls.warps[w].path];
    warp.cls = class_index;
    warp.path = cls.warps[w].path;
    warp.runs_begin = path.runs.data();
    warp.runs_end = path.runs.data() + path.runs.size();
    warp.run = warp.runs_begin + places[w].run;
    warp.access = cls.warps[w].accesses.data() + places[w].access;
  }
}

}  // namespace forewarp
