#include "timing/gpu/block_dispatcher.h"

#include <algorithm>

#include "hardware/occupancy.h"

namespace forewarp {

namespace {

/// TPCs in the order in which blocks reach them: GPC after GPC, or the first of each GPC, the second, ... Those of the
/// first GPC that stand apart, its last ones, come first.
std::vector<int> order_of_tpcs(const GpuModel& gpu, bool gpc_after_gpc) {
  std::vector<std::vector<int>> gpcs;
  int next = 0;
  for (const int tpcs : gpu.chip.tpcs_per_gpc)
    for (gpcs.emplace_back(); static_cast<int>(gpcs.back().size()) < tpcs;) gpcs.back().push_back(next++);
  std::vector<int> order;
  for (int apart = 0; apart < gpu.launch.tpcs_apart && !gpcs[0].empty(); ++apart) {
    order.insert(order.begin(), gpcs[0].back());
    gpcs[0].pop_back();
  }
  if (gpc_after_gpc) {
    for (const std::vector<int>& gpc : gpcs) order.insert(order.end(), gpc.begin(), gpc.end());
    return order;
  }
  for (std::size_t t = 0; order.size() < static_cast<std::size_t>(next); ++t)
    for (const std::vector<int>& gpc : gpcs)
      if (t < gpc.size()) order.push_back(gpc[t]);
  return order;
}

}  // namespace

BlockDispatcher::BlockDispatcher(const GpuModel& gpu, std::uint64_t blocks, int blocks_per_sm, int cluster_blocks)
    : blocks_(blocks),
      sms_per_tpc_(gpu.chip.sms_per_tpc),
      held_(static_cast<std::size_t>(gpu.chip.sm_count), 0),
      room_(static_cast<std::size_t>(gpu.chip.sm_count), blocks_per_sm),
      total_free_(gpu.chip.sm_count * blocks_per_sm),
      cluster_blocks_(std::max(1, cluster_blocks)),
      next_x16_(static_cast<std::uint64_t>(gpu.launch.start_cycles) * 16),
      interval_x16_(std::max(1, 256 / std::max(1, gpu.launch.blocks_per_cycle_x16))),
      back_interval_x16_(gpu.launch.blocks_back_per_cycle_x16 > 0 ? 256 / gpu.launch.blocks_back_per_cycle_x16 : 0),
      block_end_cycles_(gpu.launch.block_end_cycles) {
  for (const int tpc : order_of_tpcs(gpu, gpu.launch.gpc_after_gpc))
    for (int i = 0; i < sms_per_tpc_; ++i) order_.push_back(tpc * sms_per_tpc_ + i);
  ended_.resize(order_.size());
  place_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) place_[static_cast<std::size_t>(order_[i])] = i;
  for (const std::uint16_t gpc : gpc_of_sms(gpu.chip)) gpc_.push_back(gpc);
  for (const int sm : order_) {
    const int gpc = gpc_[static_cast<std::size_t>(sm)];
    if (std::find(gpc_order_.begin(), gpc_order_.end(), gpc) == gpc_order_.end()) gpc_order_.push_back(gpc);
  }
  const int apart = tpcs_without_clusters(gpu, static_cast<std::uint64_t>(cluster_blocks_)) * sms_per_tpc_;
  const int first = gpu.chip.tpcs_per_gpc.front() * sms_per_tpc_;
  for (int sm = first - apart; sm < first; ++sm) room_[static_cast<std::size_t>(sm)] = 0;
  total_free_ -= apart * blocks_per_sm;
  free_in_.resize(gpu.chip.tpcs_per_gpc.size());
  for (std::size_t sm = 0; sm < gpc_.size(); ++sm) free_in_[static_cast<std::size_t>(gpc_[sm])] += room_[sm];
  even_ = cluster_blocks_ > 1 && blocks_ < static_cast<std::uint64_t>(total_free_);
  if (cluster_blocks_ > 1 || blocks_ >= static_cast<std::uint64_t>(total_free_)) return;
  spread_evenly(order_of_tpcs(gpu, false),
                static_cast<std::size_t>(std::min(gpu.launch.tpcs_apart, gpu.chip.tpcs_per_gpc.front())));
}

/// Room for exactly the grid's blocks. Those of the last level go to the TPCs that stand apart, then to the others:
/// first to one SM of each, then to the next (kernels/micro waves: place_8, grids of 4 to 256 blocks).
void BlockDispatcher::spread_evenly(const std::vector<int>& tpcs, std::size_t apart) {
  const std::uint64_t sms = room_.size();
  std::fill(room_.begin(), room_.end(), static_cast<int>(blocks_ / sms));
  std::uint64_t more = blocks_ % sms;
  const auto deal = [&](std::size_t first, std::size_t last) {
    for (int i = 0; i < sms_per_tpc_; ++i)
      for (std::size_t t = first; t < last && more > 0; ++t, --more)
        ++room_[static_cast<std::size_t>(tpcs[t] * sms_per_tpc_ + i)];
  };
  deal(0, apart);
  deal(apart, tpcs.size());
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

/// One more block on the SM, or one fewer.
void BlockDispatcher::take_place(int sm, int more) {
  held_[static_cast<std::size_t>(sm)] += more;
  total_free_ -= more;
  free_in_[static_cast<std::size_t>(gpc_[static_cast<std::size_t>(sm)])] -= more;
}

bool BlockDispatcher::can_place() const {
  if (cluster_blocks_ == 1) return total_free_ > 0;
  return !seats_.empty() ||
         std::any_of(free_in_.begin(), free_in_.end(), [&](int room) { return room >= cluster_blocks_; });
}

/// Into the GPC where the fullest SM that it takes holds the fewest; of those, the first, or, of a grid that does not
/// fill the GPU, the one with the fewest blocks.
void BlockDispatcher::place_cluster() {
  int best_level = 0, best_blocks = 0;
  for (const int gpc : gpc_order_) {
    if (free_in_[static_cast<std::size_t>(gpc)] < cluster_blocks_) continue;
    std::vector<int> held = held_, seats;
    int level = 0, blocks = 0;
    for (std::size_t sm = 0; sm < gpc_.size(); ++sm) blocks += gpc_[sm] == gpc ? held_[sm] : 0;
    while (static_cast<int>(seats.size()) < cluster_blocks_) {
      int to = -1;
      for (const int sm : order_) {
        const auto s = static_cast<std::size_t>(sm);
        if (gpc_[s] != gpc || held[s] >= room_[s]) continue;
        if (to < 0 || held[s] < held[static_cast<std::size_t>(to)]) to = sm;
      }
      level = std::max(level, ++held[static_cast<std::size_t>(to)]);
      seats.push_back(to);
    }
    if (!even_) blocks = 0;
    if (!seats_.empty() && (level > best_level || (level == best_level && blocks >= best_blocks))) continue;
    best_level = level;
    best_blocks = blocks;
    seats_.assign(seats.rbegin(), seats.rend());
  }
}

BlockDispatcher::Grant BlockDispatcher::next(Cycle now) {
  take_back(now);
  std::erase_if(leaving_, [&](const Leaving& slot) {
    if (slot.at > now) return false;
    take_place(slot.sm, -1);
    return true;
  });
  if (exhausted() || total_free_ == 0 || (seats_.empty() && next_x16_ >= (now + 1) * 16)) return {};
  int sm = -1;
  if (cluster_blocks_ > 1) {
    if (seats_.empty()) place_cluster();
    if (seats_.empty()) return {};
    sm = seats_.back();
    seats_.pop_back();
  } else {
    sm = choose_sm();
  }
  take_place(sm, 1);
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
  if (can_place()) {
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
