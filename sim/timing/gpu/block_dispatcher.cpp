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

BlockDispatcher::BlockDispatcher(const GpuModel& gpu, std::uint64_t blocks, int blocks_per_sm, int cluster_blocks,
                                 int first_gpc)
    : blocks_(blocks),
      sms_per_tpc_(gpu.chip.sms_per_tpc),
      held_(static_cast<std::size_t>(gpu.chip.sm_count), 0),
      room_(static_cast<std::size_t>(gpu.chip.sm_count), blocks_per_sm),
      total_free_(gpu.chip.sm_count * blocks_per_sm),
      cluster_blocks_(std::max(1, cluster_blocks)),
      next_x16_(static_cast<std::uint64_t>(gpu.launch.start_cycles) * 16),
      interval_x16_(std::max(1, 256 / std::max(1, gpu.launch.blocks_per_cycle_x16))),
      back_interval_x16_(gpu.launch.blocks_back_per_cycle_x16 > 0 ? 256 / gpu.launch.blocks_back_per_cycle_x16 : 0),
      cluster_interval_x16_(gpu.cluster.interval_x16),
      block_end_cycles_(gpu.launch.block_end_cycles) {
  for (const int tpc : order_of_tpcs(gpu, gpu.launch.gpc_after_gpc))
    for (int i = 0; i < sms_per_tpc_; ++i) order_.push_back(tpc * sms_per_tpc_ + i);
  ended_.resize(order_.size());
  place_.resize(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) place_[static_cast<std::size_t>(order_[i])] = i;
  if (cluster_blocks_ > 1) {
    settle(gpu, first_gpc);
    return;
  }
  if (blocks_ >= static_cast<std::uint64_t>(total_free_)) return;
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

void BlockDispatcher::keep_to(int sms, int blocks_per_sm) {
  const std::size_t all = order_.size(), some = static_cast<std::size_t>(sms);
  total_free_ = 0;
  for (std::size_t i = 0; i < all; ++i) {
    int& room = room_[static_cast<std::size_t>(order_[i])];
    room = i * some / all == (i + 1) * some / all ? 0 : blocks_per_sm;
    total_free_ += room;
  }
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

/// The GPCs, and the TPCs of the first that stand apart: homes of their own for clusters that fit one.
void BlockDispatcher::settle(const GpuModel& gpu, int first_gpc) {
  const int first = gpu.chip.tpcs_per_gpc.front() * sms_per_tpc_;
  const int apart = first - std::min(gpu.launch.tpcs_apart, gpu.chip.tpcs_per_gpc.front()) * sms_per_tpc_;
  const std::vector<std::uint16_t> gpc = gpc_of_sms(gpu.chip);
  const bool left_out = tpcs_without_clusters(gpu, static_cast<std::uint64_t>(cluster_blocks_)) > 0;
  for (int sm = apart; sm < first; ++sm) {
    if (left_out) room_[static_cast<std::size_t>(sm)] = 0;
    if ((sm - apart) % sms_per_tpc_ == 0) homes_.push_back({{}, 0, true});
    homes_.back().sms.push_back(sm);
  }
  const std::size_t gpcs = homes_.size();
  homes_.resize(gpcs + gpu.chip.tpcs_per_gpc.size());
  for (int sm = 0; sm < static_cast<int>(gpc.size()); ++sm)
    if (sm < apart || sm >= first) homes_[gpcs + gpc[static_cast<std::size_t>(sm)]].sms.push_back(sm);
  home_of_.resize(gpc.size());
  total_free_ = 0;
  for (std::size_t h = 0; h < homes_.size(); ++h) {
    for (const int sm : homes_[h].sms) {
      home_of_[static_cast<std::size_t>(sm)] = h;
      homes_[h].room += room_[static_cast<std::size_t>(sm)];
    }
    total_free_ += homes_[h].room;
  }
  gpcs_from_ = gpcs;
  after_ = gpcs + static_cast<std::size_t>(first_gpc);
}

/// One more block on the SM, or one fewer.
void BlockDispatcher::take_place(int sm, int more) {
  held_[static_cast<std::size_t>(sm)] += more;
  total_free_ -= more;
  if (cluster_blocks_ > 1) homes_[home_of_[static_cast<std::size_t>(sm)]].room -= more;
}

bool BlockDispatcher::can_place() const {
  if (cluster_blocks_ == 1) return total_free_ > 0;
  return !seats_.empty() ||
         std::any_of(homes_.begin(), homes_.end(), [&](const Home& home) { return home.room >= cluster_blocks_; });
}

/// Where the next cluster would go, and the most blocks that one of those SMs would then hold.
std::pair<std::vector<int>, int> BlockDispatcher::seats_in(const Home& home) const {
  std::vector<int> seats;
  std::vector<int> fewest;  // blocks that each SM holds
  for (const int sm : home.sms) fewest.push_back(held_[static_cast<std::size_t>(sm)]);
  int level = 0;
  while (static_cast<int>(seats.size()) < cluster_blocks_) {
    std::size_t to = home.sms.size();
    for (std::size_t i = 0; i < home.sms.size(); ++i) {
      if (fewest[i] >= room_[static_cast<std::size_t>(home.sms[i])]) continue;
      if (to == home.sms.size() || fewest[i] < fewest[to]) to = i;
    }
    seats.push_back(home.sms[to]);
    level = std::max(level, ++fewest[to]);
  }
  std::sort(seats.begin(), seats.end());  // ranks follow the SMs
  return {seats, level};
}

/// Those that can take a cluster at the lowest level.
void BlockDispatcher::open_row() {
  int lowest = 0;
  for (std::size_t h = 0; h < homes_.size(); ++h) {
    if (homes_[h].room < cluster_blocks_) continue;
    const int level = seats_in(homes_[h]).second;
    if (row_.empty() || level < lowest) row_.clear();
    if (row_.empty()) lowest = level;
    if (level == lowest && (homes_[h].apart || row_.empty() || !homes_[row_.front()].apart)) row_.push_back(h);
  }
  const std::uint64_t left = (blocks_ - next_block_) / static_cast<std::uint64_t>(cluster_blocks_);
  if (left < row_.size()) row_.resize(left);
  if (row_.empty()) return;
  if (!homes_[row_.front()].apart)
    std::rotate(row_.begin(), std::lower_bound(row_.begin(), row_.end(), after_), row_.end());
  std::reverse(row_.begin(), row_.end());
}

void BlockDispatcher::place_cluster() {
  if (row_.empty()) open_row();
  if (row_.empty()) return;
  const std::size_t home = row_.back();
  row_.pop_back();
  seats_ = seats_in(homes_[home]).first;
  std::reverse(seats_.begin(), seats_.end());
  if (!homes_[home].apart) after_ = home + 1 == homes_.size() ? gpcs_from_ : home + 1;
}

BlockDispatcher::Grant BlockDispatcher::next(Cycle now) {
  take_back(now);
  std::erase_if(leaving_, [&](const Leaving& slot) {
    if (slot.at > now) return false;
    take_place(slot.sm, -1);
    return true;
  });
  if (exhausted() || total_free_ == 0 || (seats_.empty() && next_x16_ >= (now + 1) * 16)) return {};
  int sm = -1, wait_x16 = interval_x16_;
  if (cluster_blocks_ > 1) {
    if (seats_.empty()) place_cluster();
    if (seats_.empty()) return {};
    sm = seats_.back();
    seats_.pop_back();
    if (seats_.empty()) wait_x16 += cluster_interval_x16_;
  } else {
    sm = choose_sm();
  }
  take_place(sm, 1);
  next_x16_ = std::max(next_x16_, now * 16) + static_cast<std::uint64_t>(wait_x16);
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
