#include "timing/block_dispatcher.h"

#include <algorithm>
#include <numeric>

namespace forewarp {

BlockDispatcher::BlockDispatcher(const GpuModel& gpu, std::uint64_t blocks, int blocks_per_sm)
    : blocks_(blocks),
      free_slots_(static_cast<std::size_t>(gpu.chip.sm_count), blocks_per_sm),
      total_free_(gpu.chip.sm_count * blocks_per_sm),
      next_x16_(static_cast<std::uint64_t>(gpu.launch.start_cycles) * 16),
      interval_x16_(std::max(1, 256 / std::max(1, gpu.launch.blocks_per_cycle_x16))),
      block_end_cycles_(gpu.launch.block_end_cycles) {
  // SM numbers of a TPC are neighbours; the first SM of every TPC is filled before the second of any.
  for (int first = 0; first < gpu.chip.sms_per_tpc; ++first)
    for (int sm = first; sm < gpu.chip.sm_count; sm += gpu.chip.sms_per_tpc) order_.push_back(sm);
}

int BlockDispatcher::choose_sm() const {
  int best = -1, most = 0;
  for (const int sm : order_) {
    if (free_slots_[static_cast<std::size_t>(sm)] <= most) continue;
    most = free_slots_[static_cast<std::size_t>(sm)];
    best = sm;
  }
  return best;
}

BlockDispatcher::Grant BlockDispatcher::next(Cycle now) {
  std::erase_if(leaving_, [&](const Leaving& slot) {
    if (slot.at > now) return false;
    ++free_slots_[static_cast<std::size_t>(slot.sm)];
    ++total_free_;
    return true;
  });
  if (exhausted() || total_free_ == 0 || next_x16_ >= (now + 1) * 16) return {};
  const int sm = choose_sm();
  --free_slots_[static_cast<std::size_t>(sm)];
  --total_free_;
  next_x16_ = std::max(next_x16_, now * 16) + static_cast<std::uint64_t>(interval_x16_);
  return {next_block_++, sm};
}

Cycle BlockDispatcher::wake(Cycle now) const {
  if (exhausted()) return kNever;
  Cycle at = kNever;
  if (total_free_ > 0) {
    at = next_x16_ / 16;
  } else {
    for (const Leaving& slot : leaving_) at = std::min(at, slot.at);
    at = at == kNever ? at : std::max(at, next_x16_ / 16);
  }
  return at == kNever ? at : std::max(at, now + 1);
}

}  // namespace forewarp
