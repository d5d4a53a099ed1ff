#include "timing/block_dispatcher.h"

#include <algorithm>
#include <numeric>

#include "timing/gpu.h"

namespace forewarp {

std::vector<std::vector<int>> dispatch_groups(const GpuModel& gpu) {
  const std::vector<int>& sizes =
      gpu.launch.dispatch_groups.empty() ? gpu.chip.tpcs_per_gpc : gpu.launch.dispatch_groups;
  std::vector<std::vector<int>> left(gpu.chip.tpcs_per_gpc.size());  // TPCs that no group has yet, by GPC
  const std::vector<std::uint16_t> gpc_of = gpc_of_sms(gpu.chip);
  for (int tpc = 0; tpc < gpu.chip.sm_count / gpu.chip.sms_per_tpc; ++tpc)
    left[gpc_of[static_cast<std::size_t>(tpc * gpu.chip.sms_per_tpc)]].push_back(tpc);
  std::vector<std::vector<int>> groups(sizes.size());
  const auto take = [](std::vector<int>& from, std::vector<int>& to, std::size_t most) {
    while (!from.empty() && to.size() < most) {
      to.push_back(from.front());
      from.erase(from.begin());
    }
  };
  for (std::size_t g = 0; g < std::min(left.size(), groups.size()); ++g)
    take(left[g], groups[g], static_cast<std::size_t>(sizes[g]));
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::vector<int>& rest : left) take(rest, groups[g], static_cast<std::size_t>(sizes[g]));
  return groups;
}

namespace {

/// TPCs in the order in which a level reaches them.
std::vector<int> level_order(const std::vector<std::vector<int>>& groups) {
  std::vector<int> order;
  std::vector<std::size_t> given(groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g)
    if (groups[g].size() == 1) order.push_back(groups[g][given[g]++]);
  for (;;) {
    std::size_t best = 0, most = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      if (groups[g].size() - given[g] <= most) continue;
      most = groups[g].size() - given[g];
      best = g;
    }
    if (most == 0) return order;
    order.push_back(groups[best][given[best]++]);
  }
}

}  // namespace

BlockDispatcher::BlockDispatcher(const GpuModel& gpu, std::uint64_t blocks, int blocks_per_sm)
    : blocks_(blocks),
      sms_per_tpc_(gpu.chip.sms_per_tpc),
      held_(static_cast<std::size_t>(gpu.chip.sm_count), 0),
      room_(static_cast<std::size_t>(gpu.chip.sm_count), blocks_per_sm),
      total_free_(gpu.chip.sm_count * blocks_per_sm),
      next_x16_(static_cast<std::uint64_t>(gpu.launch.start_cycles) * 16),
      interval_x16_(std::max(1, 256 / std::max(1, gpu.launch.blocks_per_cycle_x16))),
      back_interval_x16_(gpu.launch.blocks_back_per_cycle_x16 > 0 ? 256 / gpu.launch.blocks_back_per_cycle_x16 : 0),
      block_end_cycles_(gpu.launch.block_end_cycles) {
  const std::vector<std::vector<int>> groups = dispatch_groups(gpu);
  for (const int tpc : level_order(groups))
    for (int i = 0; i < sms_per_tpc_; ++i) order_.push_back(tpc * sms_per_tpc_ + i);
  ended_.resize(order_.size());
  place_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) place_[static_cast<std::size_t>(order_[i])] = i;
  if (blocks_ >= static_cast<std::uint64_t>(total_free_)) return;
  std::vector<int> tpcs;
  for (const auto& group : groups)
    if (group.size() == 1) tpcs.push_back(group.front());
  for (const auto& group : groups)
    if (group.size() > 1) tpcs.insert(tpcs.end(), group.begin(), group.end());
  spread_evenly(tpcs);
}

/// Room for exactly the grid's blocks. Those of the last level go to the TPCs in turn: first to one SM of each, then to
/// the next.
void BlockDispatcher::spread_evenly(const std::vector<int>& tpcs) {
  const std::uint64_t sms = room_.size();
  std::fill(room_.begin(), room_.end(), static_cast<int>(blocks_ / sms));
  std::uint64_t more = blocks_ % sms;
  for (int i = 0; i < sms_per_tpc_; ++i)
    for (const int tpc : tpcs) {
      if (more == 0) break;
      --more;
      ++room_[static_cast<std::size_t>(tpc * sms_per_tpc_ + i)];
    }
  total_free_ = static_cast<int>(blocks_);
}

int BlockDispatcher::choose_sm() const {
  int best = -1, fewest = 0;
  for (const int sm : order_) {
    const auto s = static_cast<std::size_t>(sm);
    if (held_[s] >= room_[s] || (best >= 0 && held_[s] >= fewest)) continue;
    fewest = held_[s];
    best = sm;
  }
  return best;
}

BlockDispatcher::Grant BlockDispatcher::next(Cycle now) {
  take_back(now);
  std::erase_if(leaving_, [&](const Leaving& slot) {
    if (slot.at > now) return false;
    --held_[static_cast<std::size_t>(slot.sm)];
    ++total_free_;
    return true;
  });
  if (exhausted() || total_free_ == 0 || next_x16_ >= (now + 1) * 16) return {};
  const int sm = choose_sm();
  ++held_[static_cast<std::size_t>(sm)];
  --total_free_;
  next_x16_ = std::max(next_x16_, now * 16) + static_cast<std::uint64_t>(interval_x16_);
  return {next_block_++, sm};
}

void BlockDispatcher::finished(int sm, Cycle end) {
  ended_[place_[static_cast<std::size_t>(sm)]].push_back(end);
  ++ended_count_;
}

/// Earliest time at which a block can be taken back; there is one.
std::uint64_t BlockDispatcher::next_back_x16() const {
  Cycle first = kNever;
  for (const std::deque<Cycle>& ends : ended_)
    if (!ends.empty()) first = std::min(first, ends.front());
  return std::max(back_x16_, first * 16);
}

/// Of the SMs with blocks that have ended, the one after the last served is next.
void BlockDispatcher::take_back(Cycle now) {
  while (ended_count_ > 0) {
    const std::uint64_t at = next_back_x16();
    if (at >= (now + 1) * 16) return;
    do turn_ = (turn_ + 1) % ended_.size();
    while (ended_[turn_].empty() || ended_[turn_].front() * 16 > at);
    ended_[turn_].pop_front();
    --ended_count_;
    back_x16_ = at + static_cast<std::uint64_t>(back_interval_x16_);
    leaving_.push_back({back_x16_ / 16 + static_cast<Cycle>(block_end_cycles_), order_[turn_]});
  }
}

Cycle BlockDispatcher::all_back() const {
  std::vector<Cycle> left;
  for (const std::deque<Cycle>& ends : ended_) left.insert(left.end(), ends.begin(), ends.end());
  std::sort(left.begin(), left.end());
  std::uint64_t at = back_x16_;
  for (const Cycle end : left) at = std::max(at, end * 16) + static_cast<std::uint64_t>(back_interval_x16_);
  return at / 16;
}

Cycle BlockDispatcher::wake(Cycle now) const {
  if (exhausted()) return kNever;
  Cycle at = kNever;
  if (total_free_ > 0) {
    at = next_x16_ / 16;
  } else {
    for (const Leaving& slot : leaving_) at = std::min(at, slot.at);
    if (ended_count_ > 0)
      at = std::min(at, (next_back_x16() + static_cast<std::uint64_t>(back_interval_x16_)) / 16 +
                            static_cast<Cycle>(block_end_cycles_));
    at = at == kNever ? at : std::max(at, next_x16_ / 16);
  }
  return at == kNever ? at : std::max(at, now + 1);
}

}  // namespace forewarp
