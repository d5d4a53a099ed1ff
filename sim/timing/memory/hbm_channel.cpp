#include "timing/memory/hbm_channel.h"

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
  wtr = ticks(h.t_wtr), rtw = ticks(h.t_rtw), rfc = ticks(h.t_rfc);
  burst = std::max(Tick{1}, ticks(h.access_bytes * h.channels / h.bytes_per_ns));
  column = std::max(burst, ticks(h.t_ccd_s));
  bank_groups = static_cast<std::uint32_t>(h.bank_groups);
  banks = static_cast<std::uint32_t>(h.bank_groups * h.banks_per_group);
  refresh_banks = static_cast<std::uint32_t>(h.refresh_banks);
  refresh_spread = h.refresh_spread;
  refi = banks > 0 ? ticks(h.t_refi * refresh_banks / banks) : 0;
  access_bytes = static_cast<std::uint32_t>(h.access_bytes);
  row_accesses = static_cast<std::uint32_t>(h.row_bytes / h.access_bytes);
  queue_entries = static_cast<std::uint32_t>(h.queue_entries);
  read_requests = static_cast<std::uint32_t>(h.read_requests);
  write_high = static_cast<std::uint32_t>(h.write_high);
  write_low = static_cast<std::uint32_t>(h.write_low);
  write_idle = ticks(h.write_idle_ns);
  const bool ok = burst > 0 && banks >= 1 && banks <= 64 && h.write_low >= 0 && h.write_high > h.write_low &&
                  h.queue_entries >= h.write_high && h.read_requests >= 1 && refresh_banks >= 1 &&
                  banks % refresh_banks == 0 && h.refresh_turns >= 1 &&
                  banks % static_cast<std::uint32_t>(h.refresh_turns) == 0 &&
                  (refi == 0 || refi * (banks / refresh_banks) > rfc + rp);
  if (!ok) {
    throw InputError("the GPU model's HBM channel cannot be built",
                     "at most 64 banks, write_low < write_high <= queue_entries, refresh_banks and refresh_turns "
                     "divisors of the banks, t_refi longer than t_rfc");
  }
  refresh_step = refresh_banks == 1 ? banks / static_cast<std::uint32_t>(h.refresh_turns) : refresh_banks;
}

HbmChannel::HbmChannel(const HbmTimings& timings, std::uint32_t index, std::uint32_t count)
    : t_(timings), banks_(timings.banks) {
  ready_.row.fill(kClosed);
  const double behind = t_.refresh_spread * (count - index - 1) / count;
  if (t_.refi != 0) next_refresh_ = t_.round() - static_cast<Tick>(static_cast<double>(t_.round()) * behind);
}

void HbmChannel::push(std::span<const Burst> bursts, Cycle now, ChannelOutput& out) {
  now_ = std::max(now_, to_ticks(now));
  idle_since_ = now_;
  catch_up();
  for (const Burst& burst : bursts) {
    const std::uint32_t id = pool_.take();
    pool_[id] = burst;
    pool_[id].next = kNone;
    append(overflow_[burst.write], id);
    refill(burst.write, out);
  }
  // What waits behind others changes nothing about the next command, nor does time that passes before it is due.
  const int before = mode_;
  choose_mode();
  if (mode_ != before || changed_[mode_] || waiting_[mode_] == 0 || next_ <= now_) find_command();
}

void HbmChannel::append(Queue& queue, std::uint32_t id) {
  if (queue.first == kNone) {
    queue.first = id;
  } else {
    pool_[queue.last].next = id;
  }
  queue.last = id;
}

void HbmChannel::set_candidate(std::uint32_t bank, int mode, std::uint32_t id, std::uint32_t before, bool hit) {
  Queue& queue = banks_[bank].queue[mode];
  queue.candidate = id;
  queue.before = before;
  const std::uint64_t bit = std::uint64_t{1} << bank;
  ready_.hit[mode] = hit ? ready_.hit[mode] | bit : ready_.hit[mode] & ~bit;
  if (id != kNone) ready_.order[mode][bank] = pool_[id].order;
  changed_[mode] = true;
}

/// Accesses enter the window; a slice need not keep its writes any longer.
void HbmChannel::announce(const Burst& burst, ChannelOutput& out) const {
  if (burst.write) out.taken.push_back({now_, burst.slice, burst.sectors});
}

void HbmChannel::admit(std::uint32_t id, ChannelOutput& out) {
  Burst& burst = pool_[id];
  const int mode = burst.write;
  const std::uint32_t b = burst.bank, accesses = t_.accesses(burst.sectors);
  burst.order = order_;
  order_ += accesses;
  waiting_[mode] += accesses;
  Bank& bank = banks_[b];
  Queue& queue = bank.queue[mode];
  const std::uint32_t last = queue.last;
  const bool empty = queue.first == kNone;
  append(queue, id);
  if (mode == 0) ++reads_;
  ++queue.rows[part_of(burst.row)];
  busy_[mode] |= std::uint64_t{1} << b;
  const bool hit = burst.row == ready_.row[b];
  if (empty || (hit && (ready_.hit[mode] >> b & 1) == 0 && bank.passed < t_.row_accesses))
    set_candidate(b, mode, id, empty ? kNone : last, hit);
  announce(burst, out);
}

/// Splits off the first `accesses` of a burst as one of their own.
std::uint32_t HbmChannel::split(std::uint32_t id, std::uint32_t accesses) {
  const std::uint32_t part = pool_.take();
  Burst& whole = pool_[id];
  pool_[part] = whole;
  std::uint8_t moved = 0;
  for (; accesses != 0; --accesses)
    moved = static_cast<std::uint8_t>(moved | t_.first_access(static_cast<std::uint8_t>(whole.sectors & ~moved)));
  whole.sectors = static_cast<std::uint8_t>(whole.sectors & ~moved);
  pool_[part].sectors = moved;
  pool_[part].next = kNone;
  return part;
}

/// Whether the accesses directly follow those of the bank's last burst, to which they belong, and were joined to it.
bool HbmChannel::join_last(const Burst& part, ChannelOutput& out) {
  const std::uint32_t id = banks_[part.bank].queue[part.write].last;
  if (id == kNone) return false;
  Burst& last = pool_[id];
  if (last.row != part.row || last.slice != part.slice || last.miss != part.miss || part.sectors <= last.sectors ||
      (part.sectors & last.sectors) != 0 || last.order + t_.accesses(last.sectors) != order_)
    return false;
  last.sectors = static_cast<std::uint8_t>(last.sectors | part.sectors);
  order_ += t_.accesses(part.sectors);
  waiting_[part.write] += t_.accesses(part.sectors);
  announce(part, out);
  return true;
}

/// Fills the window with as many accesses as it has room for; of reads with those of read_requests lines at most,
/// however little is read of each.
void HbmChannel::refill(int mode, ChannelOutput& out) {
  Queue& queue = overflow_[mode];
  while (queue.first != kNone && waiting_[mode] < t_.queue_entries && (mode == 1 || reads_ < t_.read_requests)) {
    std::uint32_t id = queue.first;
    const std::uint32_t room = t_.queue_entries - waiting_[mode];
    if (t_.accesses(pool_[id].sectors) > room) {
      id = split(id, room);
    } else {
      queue.first = pool_[id].next;
      if (queue.first == kNone) queue.last = kNone;
      pool_[id].next = kNone;
    }
    if (join_last(pool_[id], out)) {
      pool_.give(id);
    } else {
      admit(id, out);
    }
  }
}

/// The oldest request for the open row, else the oldest. A request may be passed by at most one row's worth of hits.
void HbmChannel::choose_candidate(std::uint32_t b, int mode) {
  const Bank& bank = banks_[b];
  const Queue& queue = bank.queue[mode];
  const std::uint32_t first = queue.first, row = ready_.row[b];
  const bool may_hit = first != kNone && row != kClosed && queue.rows[part_of(row)] != 0;
  const bool hit = may_hit && pool_[first].row == row;
  if (may_hit && !hit && bank.passed < t_.row_accesses) {
    std::uint32_t before = first;
    for (std::uint32_t id = pool_[before].next; id != kNone; before = id, id = pool_[id].next)
      if (pool_[id].row == row) return set_candidate(b, mode, id, before, true);
  }
  set_candidate(b, mode, first, kNone, hit);
}

/// Where both keep coming, batches of reads and writes alternate, as long as the distance of the two marks. Where reads
/// leave the bus free, writes gather until half a batch can go, or until nothing has come for write_idle.
void HbmChannel::choose_mode() {
  const bool batch_done = batch_ >= t_.write_high - t_.write_low;
  const int before = mode_;
  if (mode_ == 0) {
    draining_ =
        (waiting_[1] >= t_.write_high && batch_done) || (waiting_[0] == 0 && waiting_[1] >= t_.write_gathered());
    if (draining_ || (waiting_[0] == 0 && waiting_[1] != 0 && now_ >= idle_since_ + t_.write_idle)) mode_ = 1;
  } else {
    if (waiting_[1] >= t_.write_high) draining_ = true;
    if (waiting_[1] <= t_.write_low || batch_done) draining_ = false;
    if (waiting_[1] == 0 || (waiting_[0] != 0 && !draining_)) mode_ = 0;
  }
  if (mode_ != before) batch_ = 0;
}

void HbmChannel::plan() {
  choose_mode();
  find_command();
}

namespace {

/// Key for choosing a command: the earliest time since `now`, then the order of arrival, as one number. Neither a wait
/// nor a window of orders comes near 32 bits.
struct Earliest {
  std::uint64_t key = ~std::uint64_t{0};
  std::uint32_t bank = 0;

  void consider(Tick wait, std::uint32_t age_order, std::uint32_t candidate) {
    const std::uint64_t its = wait << 32 | age_order;
    bank = its < key ? candidate : bank;
    key = its < key ? its : key;
  }
  bool none() const { return key == ~std::uint64_t{0}; }
  Tick wait() const { return none() ? kNoTick : key >> 32; }
};

template <typename Use>
void for_each_bank(std::uint64_t banks, Use&& use) {
  for (; banks != 0; banks &= banks - 1) use(static_cast<std::uint32_t>(std::countr_zero(banks)));
}

}  // namespace

/// Finds the next command and its time.
void HbmChannel::find_command() {
  changed_[mode_] = false;
  next_ = kNoTick;
  command_ = Command::None;
  if (waiting_[mode_] == 0) {
    if (waiting_[1] != 0) next_ = idle_since_ + t_.write_idle;
    return;
  }
  const std::uint64_t busy = busy_[mode_], hits = busy & ready_.hit[mode_];
  const std::uint32_t* order = ready_.order[mode_].data();
  const std::uint32_t oldest = order_ - (std::uint32_t{1} << 31);  // orders go round
  const Tick column_ok = std::max(now_, column_ok_[mode_]), activate_ok = std::max(now_, activate_ok_);
  Earliest column, activate;
  for_each_bank(hits, [&](std::uint32_t b) {
    const Tick at = std::max({column_ok, ready_.column_ok[b], group_ok_[b % t_.bank_groups]});
    column.consider(at - now_, order[b] - oldest, b);
  });
  Tick precharge = kNoTick;
  for_each_bank(busy & ~hits & ready_.open, [&](std::uint32_t b) {
    if (ready_.precharge_ok[b] > now_) {
      precharge = std::min(precharge, ready_.precharge_ok[b]);
      return;
    }
    if (refresh_owed(b)) return;
    ready_.activate_ok[b] = std::max(ready_.activate_ok[b], now_ + t_.rp);
    close(b, true);
  });
  for_each_bank(busy & ~hits & ~ready_.open, [&](std::uint32_t b) {
    activate.consider(std::max(activate_ok, ready_.activate_ok[b]) - now_, order[b] - oldest, b);
  });
  const Tick first = std::min(column.wait(), activate.wait());
  if (first != kNoTick) next_ = now_ + first;
  if (!column.none() && column.wait() == first && next_ <= precharge) {
    command_ = Command::Column, command_bank_ = column.bank;
  } else if (!activate.none() && activate.wait() == first && next_ <= precharge) {
    command_ = Command::Activate, command_bank_ = activate.bank;
  } else {
    command_ = Command::Precharge;  // done when its time has come and the next command is sought
    next_ = precharge;
  }
}

void HbmChannel::close(std::uint32_t b, bool conflict) {
  ready_.row[b] = kClosed;
  ready_.open &= ~(std::uint64_t{1} << b);
  banks_[b].conflict = conflict;
  banks_[b].passed = 0;
  for (int mode = 0; mode < 2; ++mode) set_candidate(b, mode, banks_[b].queue[mode].first, kNone, false);
}

void HbmChannel::advance(Cycle now, MemoryCounters& counters, ChannelOutput& out) {
  const Tick limit = to_ticks(now) + (Tick{1} << kTickBits) - 1;
  while (next_ <= limit) {
    if (next_ >= next_refresh_) {
      refresh();
      plan();
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

/// Refreshes that fell due while nothing waited have taken place: they leave closed rows and, for the last ones,
/// perhaps a wait.
void HbmChannel::catch_up() {
  if (next_refresh_ > now_) return;
  if (const Tick rounds = (now_ - next_refresh_) / t_.round(); rounds != 0) {
    for_each_bank(ready_.open, [&](std::uint32_t b) { close(b, false); });
    next_refresh_ += rounds * t_.round();
  }
  while (next_refresh_ <= now_) refresh();
}

/// Refreshes the banks whose turn it is, when due or as soon after as their rows may be closed; a single bank not
/// before what waits for its open row has been served.
void HbmChannel::refresh() {
  const std::uint32_t first = refreshed_, end = first + t_.refresh_banks;
  if (end == first + 1 && hits(first)) {
    owed_ |= std::uint64_t{1} << first;
  } else {
    refresh(first, end, next_refresh_);
  }
  refreshed_ = t_.refreshed_after(first);
  next_refresh_ += t_.refi;
}

bool HbmChannel::refresh_owed(std::uint32_t b) {
  if ((owed_ >> b & 1) == 0) return false;
  owed_ &= ~(std::uint64_t{1} << b);
  refresh(b, b + 1, now_);
  return true;
}

void HbmChannel::refresh(std::uint32_t first, std::uint32_t end, Tick due) {
  Tick start = due;
  for (std::uint32_t b = first; b < end; ++b) {
    start = std::max(start, ready_.row[b] != kClosed ? std::max(ready_.precharge_ok[b], due) + t_.rp
                                                     : std::min(ready_.activate_ok[b], now_ + t_.rp));
  }
  for (std::uint32_t b = first; b < end; ++b) {
    ready_.activate_ok[b] = std::max(ready_.activate_ok[b], start + t_.rfc);
    close(b, false);
  }
}

void HbmChannel::column(MemoryCounters& counters, ChannelOutput& out) {
  const std::uint32_t b = command_bank_;
  Bank& bank = banks_[b];
  Queue& queue = bank.queue[mode_];
  const std::uint32_t id = queue.candidate;
  Burst& burst = pool_[id];
  const std::uint8_t moved = t_.first_access(burst.sectors);
  burst.sectors = static_cast<std::uint8_t>(burst.sectors & ~moved);
  ++burst.order;
  bank.passed = queue.before == kNone ? 0 : bank.passed + 1;
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
  idle_since_ = at;
  if (last_mode_ == 1 - mode_) ++counters.turnarounds;
  last_mode_ = mode_;
  group_ok_[b % t_.bank_groups] = at + t_.ccd_l;
  if (mode_ == 0) {
    ready_.precharge_ok[b] = std::max(ready_.precharge_ok[b], at + t_.rtp);
    column_ok_[0] = at + t_.column;
    column_ok_[1] = at + std::max(t_.rtw, t_.column);
    counters.dram_read_bytes += t_.access_bytes;
    if (burst.miss != 0xFFFF) out.done.push_back({at + t_.cl + t_.burst, burst.slice, burst.miss, moved});
  } else {
    ready_.precharge_ok[b] = std::max(ready_.precharge_ok[b], at + t_.cwl + t_.burst + t_.wr);
    column_ok_[1] = at + t_.column;
    column_ok_[0] = at + t_.cwl + t_.burst + t_.wtr;
    counters.dram_write_bytes += t_.access_bytes;
  }
  if (burst.sectors == 0) {
    (queue.before == kNone ? queue.first : pool_[queue.before].next) = burst.next;
    if (queue.last == id) queue.last = queue.before;
    if (mode_ == 0) --reads_;
    --queue.rows[part_of(burst.row)];
    if (queue.first == kNone) busy_[mode_] &= ~(std::uint64_t{1} << b);
    pool_.give(id);
  }
  choose_candidate(b, mode_);
  refill(mode_, out);
  if (!hits(b)) refresh_owed(b);
}

void HbmChannel::activate() {
  const std::uint32_t b = command_bank_;
  Bank& bank = banks_[b];
  const Tick at = now_;
  ready_.row[b] = pool_[bank.queue[mode_].candidate].row;
  ready_.open |= std::uint64_t{1} << b;
  bank.opened = bank.conflict ? Opened::FromConflict : Opened::FromClosed;
  bank.conflict = false;
  bank.passed = 0;
  ready_.column_ok[b] = at + t_.rcd;
  ready_.precharge_ok[b] = std::max(ready_.precharge_ok[b], at + t_.ras);
  recent_activates_[activates_++ % 4] = at + t_.faw;
  activate_ok_ = std::max(at + t_.rrd, recent_activates_[activates_ % 4]);
  choose_candidate(b, 0);
  choose_candidate(b, 1);
}

}  // namespace forewarp
