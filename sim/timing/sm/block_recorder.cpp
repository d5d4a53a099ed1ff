#include "timing/sm/block_recorder.h"

#include <algorithm>

namespace forewarp {

BlockRecorder::BlockRecorder(const RecordRequest& request, const LaunchInfo& launch)
    : grid_(launch.grid), cluster_(launch.cluster) {
  record_.request = request;
}

/// The block that is asked for, or one of its cluster.
bool BlockRecorder::wanted(std::uint32_t linear) const {
  if (cluster_.count() == 0) return linear == record_.request.block;
  const auto cluster_of = [&](std::uint32_t block) {
    return Dim3{block % grid_.x / cluster_.x, block / grid_.x % grid_.y / cluster_.y,
                block / grid_.x / grid_.y / cluster_.z};
  };
  return cluster_of(linear) == cluster_of(record_.request.block);
}

std::uint16_t BlockRecorder::start_block(std::uint32_t linear, std::uint32_t rank, std::uint16_t sm, Cycle now) {
  if (!wanted(linear)) return 0;
  if (record_.blocks.empty()) {
    record_.start = now;
    until_ = now + record_.request.cycles;
  }
  record_.blocks.push_back({linear, sm, static_cast<std::uint8_t>(rank), now});
  return static_cast<std::uint16_t>(record_.blocks.size());
}

std::uint16_t BlockRecorder::start_warp(std::uint16_t block, std::size_t warp, std::size_t sub_partition,
                                        Cycle started) {
  record_.warps.push_back({static_cast<std::uint16_t>(block - 1),
                           static_cast<std::uint16_t>(warp),
                           static_cast<std::uint8_t>(sub_partition),
                           started,
                           BlockRecord::kOpen,
                           {}});
  watched_.emplace_back().at = started;
  return static_cast<std::uint16_t>(watched_.size());
}

void BlockRecorder::end_warp(std::uint16_t row, Cycle end) { record_.warps[row - 1u].end = end; }

void BlockRecorder::add(std::uint16_t row, const WarpInterval& stretch) {
  if (stretch.to <= stretch.from) return;
  std::vector<WarpInterval>& stretches = record_.warps[row - 1u].intervals;
  if (!stretches.empty()) {
    WarpInterval& last = stretches.back();
    const bool goes_on = last.state == stretch.state && last.source == stretch.source &&
                         last.barrier == stretch.barrier && last.phase == stretch.phase &&
                         (last.pc == stretch.pc || stretch.state == Stall::Selected);
    if (goes_on) {
      last.to = stretch.to;
      return;
    }
  }
  stretches.push_back(stretch);
  if (++stretches_ < kMostStretches) return;
  record_.filled = record_.filled || stretch.to < until_;
  until_ = std::min(until_, stretch.to);
}

void BlockRecorder::state(std::uint16_t row, Cycle to, std::uint32_t pc, Stall state, std::uint8_t scoreboard) {
  Watched& warp = watched(row);
  WarpInterval stretch{warp.at, std::min(to, until_), pc, state};
  if (scoreboard != kNoScoreboard) {
    const Setter& setter = warp.setters[scoreboard];
    stretch.source = setter.pc;
    stretch.barrier = setter.barrier;
    stretch.phase = setter.phase;
  } else if (state == Stall::Barrier) {
    stretch.barrier = warp.barrier;
  }
  warp.at = std::max(warp.at, to);
  add(row, stretch);
}

void BlockRecorder::refuse(std::uint16_t row, Stall reason, Cycle cycles) {
  watched(row).refusals.push_back({reason, cycles});
}

void BlockRecorder::refused(std::uint16_t row, Cycle to, std::uint32_t pc) {
  Watched& warp = watched(row);
  for (const Refusal& one : warp.refusals)
    state(row, std::min(to, warp.at + one.cycles), pc, one.reason, kNoScoreboard);
  warp.refusals.clear();
}

void BlockRecorder::sets(std::uint16_t row, std::uint8_t scoreboard, std::uint32_t pc) {
  if (scoreboard != kNoScoreboard) watched(row).setters[scoreboard] = {.pc = pc};
}

void BlockRecorder::asks(std::uint16_t row, std::uint8_t scoreboard, const BlockRecord::Await& await) {
  Watched& warp = watched(row);
  warp.setters[scoreboard] = {await.pc, await.barrier, await.phase};
  if (over(await.asked) || !room(record_.awaits)) return;
  if (await.over == BlockRecord::kOpen) warp.asked.push_back(static_cast<std::uint32_t>(record_.awaits.size()));
  record_.awaits.push_back(await);
  record_.awaits.back().row = row - 1u;
}

void BlockRecorder::goes_on(std::uint16_t row, std::uint32_t barrier, Cycle at) {
  std::erase_if(watched(row).asked, [&](std::uint32_t index) {
    BlockRecord::Await& await = record_.awaits[index];
    if (await.barrier != barrier) return false;
    await.over = at;
    return true;
  });
}

void BlockRecorder::phase(std::uint16_t block, std::uint32_t barrier, std::uint32_t phase, Cycle at) {
  if (!over(at) && room(record_.phases))
    record_.phases.push_back({static_cast<std::uint16_t>(block - 1), barrier, phase, at});
}

std::uint32_t BlockRecorder::copy(std::uint16_t row, const BlockRecord::Copy& copy) {
  if (over(copy.issued) || !room(record_.copies)) return 0;
  record_.copies.push_back(copy);
  record_.copies.back().row = row - 1u;
  return static_cast<std::uint32_t>(record_.copies.size());
}

namespace {
constexpr std::size_t kMostSubPartitions = 8;
}

std::size_t BlockRecorder::lane(std::uint16_t row) const {
  const BlockRecord::WarpRow& warp = record_.warps[row - 1u];
  return warp.block * kMostSubPartitions + warp.sub_partition;
}

void BlockRecorder::product(std::uint16_t row, std::uint32_t pc, GroupProducts::Number number, bool commits,
                            Cycle now) {
  Watched& warp = watched(row);
  if (warp.group == WarpInterval::kNone) {
    if (over(now) || !room(record_.products)) return;
    warp.group = static_cast<std::uint32_t>(record_.products.size());
    record_.products.push_back({.row = row - 1u, .pc = pc, .issued = now});
  }
  ++record_.products[warp.group].count;
  pending_.resize(std::max(pending_.size(), lane(row) + 1));
  pending_[lane(row)].push_back({number, warp.group, commits, now});
  if (commits) warp.group = WarpInterval::kNone;
}

void BlockRecorder::busy(std::uint16_t row, Cycle from, Cycle to) {
  if (over(from)) return;
  last_busy_.resize(std::max(last_busy_.size(), lane(row) + 1));
  std::size_t& last = last_busy_[lane(row)];
  if (last != 0 && record_.busy[last - 1].to >= from) {
    record_.busy[last - 1].to = std::max(record_.busy[last - 1].to, to);
    return;
  }
  if (!room(record_.busy)) return;
  const BlockRecord::WarpRow& warp = record_.warps[row - 1u];
  record_.busy.push_back({warp.block, warp.sub_partition, from, to});
  last = record_.busy.size();
}

void BlockRecorder::settle(std::uint16_t row, const GroupProducts& products) {
  if (lane(row) >= pending_.size()) return;
  for (std::deque<Pending>& queue = pending_[lane(row)]; !queue.empty(); queue.pop_front()) {
    const Pending& product = queue.front();
    const Cycle done = products.ended(product.number);
    if (done == kNever) return;
    const Cycle before = products.ended(product.number - 1);
    const Cycle started = before == kNever ? product.issued : std::max(before, product.issued);
    BlockRecord::Products& group = record_.products[product.group];
    group.started = std::min(group.started, started);
    if (product.last) group.done = done;
    busy(row, started, done);
  }
}

BlockRecord BlockRecorder::finish(Cycle now) {
  Cycle end = record_.blocks.empty() ? now : 0;
  for (const BlockRecord::Block& block : record_.blocks)
    end = std::max(end, block.end == BlockRecord::kOpen ? now : block.end);
  record_.end = end = std::min(until_, end);
  for (BlockRecord::WarpRow& row : record_.warps) {
    std::erase_if(row.intervals, [&](const WarpInterval& one) { return one.from >= end; });
    if (!row.intervals.empty()) row.intervals.back().to = std::min(row.intervals.back().to, end);
  }
  for (BlockRecord::Busy& busy : record_.busy) busy.to = std::min(busy.to, end);
  return std::move(record_);
}

void BlockRecorder::hand_over(TimingResult& result, Cycle now, std::uint64_t blocks, std::uint64_t wave) {
  BlockRecord record = finish(now);
  const std::string block = std::to_string(record.request.block);
  if (record.request.block >= blocks)
    result.warnings.push_back("block " + block + " is to be watched, but the launch has " + std::to_string(blocks) +
                              " blocks: their numbers begin at 0");
  else if (record.blocks.empty())
    result.warnings.push_back("block " + block +
                              " is to be watched, but it is among those that were extrapolated: watch one of the "
                              "first wave, below block " +
                              std::to_string(wave) + ", or simulate all with --full");
  else {
    if (result.coverage.extrapolated && record.end == now && result.elapsed_cycles > now)
      record.left_out.push_back({record.end, result.elapsed_cycles - now});
    result.record = std::make_shared<const BlockRecord>(std::move(record));
  }
}

}  // namespace forewarp
