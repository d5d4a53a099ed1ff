#include "timing/hbm_channel.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace forewarp {

HbmTimings::HbmTimings(const GpuModel& model) {
  const HbmSpec& h = model.hbm;
  const double ticks_per_ns = model.chip.sm_clock_mhz / 1000.0 * (1 << kTickBits);
  const auto ticks = [&](double ns) { return static_cast<Tick>(std::llround(ns * ticks_per_ns)); };
  cl = ticks(h.t_cl), rcd = ticks(h.t_rcd), rp = ticks(h.t_rp), ras = ticks(h.t_ras), wr = ticks(h.t_wr);
  rtp = ticks(h.t_rtp), cwl = ticks(h.t_cwl), ccd_l = ticks(h.t_ccd_l), rrd = ticks(h.t_rrd), faw = ticks(h.t_faw);
  wtr = ticks(h.t_wtr), rtw = ticks(h.t_rtw), rfc = ticks(h.t_rfc), refi = ticks(h.t_refi);
  burst = ticks(h.access_bytes * h.channels / h.bytes_per_ns);
  column = std::max(burst, ticks(h.t_ccd_s));
  bank_groups = static_cast<std::uint32_t>(h.bank_groups);
  banks = static_cast<std::uint32_t>(h.bank_groups * h.banks_per_group);
  access_bytes = static_cast<std::uint32_t>(h.access_bytes);
  row_accesses = static_cast<std::uint32_t>(h.row_bytes / h.access_bytes);
  queue_entries = static_cast<std::uint32_t>(h.queue_entries);
  write_high = static_cast<std::uint32_t>(h.write_high);
  write_low = static_cast<std::uint32_t>(h.write_low);
  const bool ok = burst > 0 && banks >= 1 && banks <= 64 && h.write_low >= 0 && h.write_high > h.write_low &&
                  h.queue_entries >= h.write_high && (refi == 0 || refi > rfc + rp);
  if (!ok) {
    throw InputError("the GPU model's HBM channel cannot be built",
                     "at most 64 banks, write_low < write_high <= queue_entries, t_refi longer than t_rfc");
  }
}

HbmChannel::HbmChannel(const HbmTimings& timings, BurstPool& pool, std::uint32_t index, std::uint32_t count)
    : t_(timings), pool_(pool), banks_(timings.banks), group_ok_(timings.bank_groups, 0) {
  if (t_.refi != 0) next_refresh_ = t_.refi * (index + 1) / count;
}

void HbmChannel::push(std::uint32_t first, Cycle now, ChannelOutput& out) {
  now_ = std::max(now_, to_ticks(now));
  while (first != kNone) {
    const std::uint32_t id = first;
    first = pool_[id].next;
    pool_[id].next = kNone;
    const int mode = pool_[id].write;
    if (waiting_[mode] < t_.queue_entries) {
      admit(id, out);
    } else {
      append(overflow_[mode], id);
    }
  }
  plan();
}

void HbmChannel::append(Queue& queue, std::uint32_t id) {
  if (queue.first == kNone) {
    queue.first = id;
  } else {
    pool_[queue.last].next = id;
  }
  queue.last = id;
}

void HbmChannel::admit(std::uint32_t id, ChannelOutput& out) {
  Burst& burst = pool_[id];
  burst.order = order_++;
  const int mode = burst.write;
  Bank& bank = banks_[burst.bank];
  Queue& queue = bank.queue[mode];
  const std::uint32_t last = queue.last;
  const bool empty = queue.first == kNone;
  append(queue, id);
  ++waiting_[mode];
  busy_[mode] |= std::uint64_t{1} << burst.bank;
  if (empty || (!queue.hit && burst.row == bank.row && bank.passed < t_.row_accesses)) {
    queue.candidate = id;
    queue.before = empty ? kNone : last;
    queue.hit = burst.row == bank.row;
  }
  if (burst.write) out.taken.push_back({burst.slice, burst.sectors});
}

void HbmChannel::refill(int mode, ChannelOutput& out) {
  Queue& queue = overflow_[mode];
  while (queue.first != kNone && waiting_[mode] < t_.queue_entries) {
    const std::uint32_t id = queue.first;
    queue.first = pool_[id].next;
    if (queue.first == kNone) queue.last = kNone;
    pool_[id].next = kNone;
    admit(id, out);
  }
}

/// The oldest request for the open row, else the oldest. A request may be passed by at most one row's worth of hits.
void HbmChannel::choose_candidate(Bank& bank, int mode) {
  Queue& queue = bank.queue[mode];
  queue.candidate = queue.first;
  queue.before = kNone;
  queue.hit = queue.first != kNone && pool_[queue.first].row == bank.row;
  if (queue.first == kNone || queue.hit || bank.row == kClosed || bank.passed >= t_.row_accesses) return;
  std::uint32_t before = queue.first;
  for (std::uint32_t id = pool_[before].next; id != kNone; before = id, id = pool_[id].next) {
    if (pool_[id].row != bank.row) continue;
    queue.candidate = id;
    queue.before = before;
    queue.hit = true;
    return;
  }
}

/// Where both keep coming, a batch of one follows a batch of the other: the distance of the two marks.
void HbmChannel::choose_mode() {
  const bool batch_done = batch_ >= t_.write_high - t_.write_low;
  const int before = mode_;
  if (mode_ == 0) {
    draining_ = waiting_[1] >= t_.write_high && batch_done;
    if (draining_ || (waiting_[0] == 0 && waiting_[1] != 0)) mode_ = 1;
  } else {
    if (waiting_[1] >= t_.write_high) draining_ = true;
    if (waiting_[1] <= t_.write_low || batch_done) draining_ = false;
    if (waiting_[1] == 0 || (waiting_[0] != 0 && !draining_)) mode_ = 0;
  }
  if (mode_ != before) batch_ = 0;
}

/// Finds the next command and its time. Of commands that could go at the same time the one for the oldest request goes.
void HbmChannel::plan() {
  next_ = kNoTick;
  command_ = Command::None;
  choose_mode();
  if (waiting_[mode_] == 0) return;
  Tick best_column = kNoTick, best_activate = kNoTick, best_precharge = kNoTick;
  std::uint32_t column_bank = 0, activate_bank = 0, precharge_bank = 0, column_order = 0, activate_order = 0;
  const Tick column_ok = std::max(now_, column_ok_[mode_]), activate_ok = std::max(now_, activate_ok_);
  for (std::uint64_t rest = busy_[mode_]; rest != 0; rest &= rest - 1) {
    const auto b = static_cast<std::uint32_t>(std::countr_zero(rest));
    Bank& bank = banks_[b];
    const Queue& queue = bank.queue[mode_];
    const std::uint32_t order = pool_[queue.candidate].order;
    if (queue.hit) {
      const Tick at = std::max({column_ok, bank.column_ok, group_ok_[b % t_.bank_groups]});
      if (at < best_column || (at == best_column && static_cast<std::int32_t>(order - column_order) < 0)) {
        best_column = at, column_bank = b, column_order = order;
      }
      continue;
    }
    if (bank.row != kClosed) {
      if (bank.precharge_ok > now_) {
        if (bank.precharge_ok < best_precharge) best_precharge = bank.precharge_ok, precharge_bank = b;
        continue;
      }
      bank.activate_ok = std::max(bank.activate_ok, now_ + t_.rp);
      close(bank, true);
    }
    const Tick at = std::max(activate_ok, bank.activate_ok);
    if (at < best_activate || (at == best_activate && static_cast<std::int32_t>(order - activate_order) < 0)) {
      best_activate = at, activate_bank = b, activate_order = order;
    }
  }
  next_ = std::min({best_column, best_activate, best_precharge});
  if (next_ == best_column) {
    command_ = Command::Column, command_bank_ = column_bank;
  } else if (next_ == best_activate) {
    command_ = Command::Activate, command_bank_ = activate_bank;
  } else {
    command_ = Command::Precharge, command_bank_ = precharge_bank;
  }
}

void HbmChannel::close(Bank& bank, bool conflict) {
  bank.row = kClosed;
  bank.conflict = conflict;
  bank.passed = 0;
  for (Queue& queue : bank.queue) {
    queue.candidate = queue.first;
    queue.before = kNone;
    queue.hit = false;
  }
}

void HbmChannel::advance(Cycle now, MemoryCounters& counters, ChannelOutput& out) {
  const Tick limit = to_ticks(now) + (Tick{1} << kTickBits) - 1;
  while (next_ <= limit) {
    if (next_ >= next_refresh_) {
      refresh();
      continue;
    }
    now_ = std::max(now_, next_);
    if (command_ == Command::Column) {
      column(counters, out);
    } else if (command_ == Command::Activate) {
      activate();
    }
    plan();  // a precharge that has become possible is done there
  }
}

/// All-bank refresh at its due time, or as soon after as open rows may be closed. Those that fell due while nothing
/// waited took place then: they leave closed rows and, the last one, perhaps a wait.
void HbmChannel::refresh() {
  if (next_ - next_refresh_ >= t_.refi) next_refresh_ += (next_ - next_refresh_) / t_.refi * t_.refi;
  Tick start = next_refresh_;
  for (const Bank& bank : banks_) {
    if (bank.row != kClosed) start = std::max(start, std::max(bank.precharge_ok, next_refresh_) + t_.rp);
    if (bank.row == kClosed) start = std::max(start, std::min(bank.activate_ok, now_ + t_.rp));
  }
  for (Bank& bank : banks_) {
    bank.activate_ok = std::max(bank.activate_ok, start + t_.rfc);
    close(bank, false);
  }
  next_refresh_ += t_.refi;
  plan();
}

void HbmChannel::column(MemoryCounters& counters, ChannelOutput& out) {
  Bank& bank = banks_[command_bank_];
  Queue& queue = bank.queue[mode_];
  const std::uint32_t id = queue.candidate;
  Burst& burst = pool_[id];
  if (queue.before == kNone) {
    queue.first = burst.next;
    bank.passed = 0;
  } else {
    pool_[queue.before].next = burst.next;
    ++bank.passed;
  }
  if (queue.last == id) queue.last = queue.before;
  if (queue.first == kNone) busy_[mode_] &= ~(std::uint64_t{1} << command_bank_);
  --waiting_[mode_];
  ++batch_;

  switch (bank.opened) {
    case Opened::Used:
      ++counters.row_hits;
      break;
    case Opened::FromClosed:
      ++counters.row_misses;
      break;
    case Opened::FromConflict:
      ++counters.row_conflicts;
      break;
  }
  bank.opened = Opened::Used;
  const Tick at = now_;
  if (last_mode_ == 1 - mode_) ++counters.turnarounds;
  last_mode_ = mode_;
  group_ok_[command_bank_ % t_.bank_groups] = at + t_.ccd_l;
  if (mode_ == 0) {
    bank.precharge_ok = std::max(bank.precharge_ok, at + t_.rtp);
    column_ok_[0] = at + t_.column;
    column_ok_[1] = at + std::max(t_.rtw, t_.column);
    counters.dram_read_bytes += t_.access_bytes;
    if (burst.miss != 0xFFFF) out.done.push_back({at + t_.cl + t_.burst, burst.slice, burst.miss, burst.sectors});
  } else {
    bank.precharge_ok = std::max(bank.precharge_ok, at + t_.cwl + t_.burst + t_.wr);
    column_ok_[1] = at + t_.column;
    column_ok_[0] = at + t_.cwl + t_.burst + t_.wtr;
    counters.dram_write_bytes += t_.access_bytes;
  }
  pool_.give(id);
  choose_candidate(bank, mode_);
  refill(mode_, out);
}

void HbmChannel::activate() {
  Bank& bank = banks_[command_bank_];
  const Tick at = now_;
  bank.row = pool_[bank.queue[mode_].candidate].row;
  bank.opened = bank.conflict ? Opened::FromConflict : Opened::FromClosed;
  bank.conflict = false;
  bank.passed = 0;
  bank.column_ok = at + t_.rcd;
  bank.precharge_ok = std::max(bank.precharge_ok, at + t_.ras);
  recent_activates_[activates_++ % 4] = at + t_.faw;
  activate_ok_ = std::max(at + t_.rrd, recent_activates_[activates_ % 4]);
  choose_candidate(bank, 0);
  choose_candidate(bank, 1);
}

}  // namespace forewarp
