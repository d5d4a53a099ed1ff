#include "timing/skip/rest_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace forewarp {
namespace {

/// Waiting that is there because other warps are: those of other blocks, which are in the way, and at barriers those of
/// the same block that were held up so.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle, Stall::MioThrottle,
                             Stall::TexThrottle, Stall::DispatchStall,    Stall::Barrier};

constexpr double kDone = 0.5;         // instructions left of a block that has ended, but for rounding
constexpr double kSameRate = 1e-9;    // rates that differ by rounding alone
constexpr double kNoProgress = 1e-3;  // of its way: a block that has gone less has waited
// Parts of ways are kept for as many as this (200 MB): of more blocks a part is a longer piece of the way, up to all.
constexpr double kMostParts = 4e6;

/// A block of an SM ends, unless its rate has changed since `plan`.
struct Event {
  double at = 0;
  std::size_t sm = 0;
  std::uint64_t plan = 0;
  bool operator>(const Event& other) const { return at != other.at ? at > other.at : sm > other.sm; }
};

/// Instructions a cycle of so many warps (the last may be there for a part of the time) that go round one queue, each
/// served for `service` of the `own` cycles that it takes by itself: mean value analysis of a closed network, in which
/// one that comes finds the queue as it would be without it. The one served goes on until it has to wait, so that how
/// long it is served varies and says nothing of when it will be done.
double closed_queue(double warps, double service, double own) {
  const double elsewhere = std::max(0.0, own - service);
  double rate = 0, queued = 0;
  for (double n = 1;; ++n) {
    const double before = rate, stay = service * (1 + queued);
    rate = n / (elsewhere + stay);
    queued = rate * stay;
    if (n >= warps) return before + (rate - before) * (warps - (n - 1));
  }
}

/// What those that go round a queue take.
struct QueueTimes {
  double service = 0, own = 0;
};

/// The queue that gives one rate when `many` go round it and another when `few` do.
QueueTimes fitted(double many, double rate_of_many, double few, double rate_of_few) {
  constexpr int kHalvings = 40, kRounds = 64;
  QueueTimes times;
  times.own = few / rate_of_few;
  for (int round = 0; round < kRounds; ++round) {
    double less = 0, more = 1 / rate_of_many;
    for (int i = 0; i < kHalvings; ++i) {
      times.service = (less + more) / 2;
      (closed_queue(many, times.service, times.own) > rate_of_many ? less : more) = times.service;
    }
    // The few queue a little, too.
    times.own *= closed_queue(few, times.service, times.own) / rate_of_few;
  }
  return times;
}

/// Rates of an SM's blocks, the oldest first, by how many it holds; of an SM that goes as the mean.
class RatesByCount {
 public:
  explicit RatesByCount(const SmRate& rate) : rate_(rate) {}

  const std::vector<double>& with(std::size_t blocks) {
    if (blocks >= known_.size()) known_.resize(blocks + 1);
    std::vector<double>& rates = known_[blocks];
    if (rates.size() == blocks) return rates;
    double left = rate_.with(blocks), shares = 0;
    for (std::size_t k = 0; k < blocks; ++k) shares += share(k);
    for (std::size_t k = 0; k < blocks; ++k) {
      const double part = shares > 0 ? share(k) / shares : 1 / static_cast<double>(blocks - k);
      rates.push_back(std::min(rate_.alone, left * part));
      shares -= share(k);
      left -= rates.back();
    }
    return rates;
  }

 private:
  double share(std::size_t k) const { return k < rate_.shares.size() ? rate_.shares[k] : 1.0; }

  const SmRate& rate_;
  std::vector<std::vector<double>> known_;
};

/// A block in flight: since `at` it has gone on from `from` at an even rate.
struct Going {
  RestBlock block;
  double rate = 0, from = 0, at = 0;

  double position() const { return block.left < kDone ? 1 : 1 - block.left / block.all; }
};

}  // namespace

SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     const SmShape& shape, double held, const FewSms& few) {
  const auto done = static_cast<double>(std::max<std::uint64_t>(1, instructions));
  const double active = std::max(1.0, static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles));
  const auto warp_cycles = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  SmRate rate;
  rate.most = done / active;
  const double warps = shape.warps_per_block, blocks = std::max(1.0, warp_cycles / active / warps);
  // Some of a block's warps may have ended before the others.
  const double parts = shape.sub_partitions, in_turn = warps / parts * blocks / std::max(blocks, held);
  const bool known = few.full > rate.most;
  const double many = known ? shape.blocks * in_turn : blocks * warps / parts, full = known ? few.full : rate.most;
  // A block is at least as fast by itself as among others.
  rate.alone = std::max(full * in_turn / many, few.alone);
  const QueueTimes in_sm = fitted(many, full / parts, in_turn, rate.alone / parts);
  const auto with = [&](double n) { return closed_queue(n * in_turn, in_sm.service, in_sm.own) * parts; };
  for (int n = 1; n <= shape.blocks; ++n) rate.by_blocks.push_back(with(n));
  if (!known) return rate;
  const double left = std::min(1.0, rate.most / with(held)), some = static_cast<double>(few.sms);
  const double all = std::ceil(held * static_cast<double>(shape.sms) / shape.blocks);
  if (some >= all) {
    rate.by_sms = {left};
    return rate;
  }
  const QueueTimes below = fitted(all, all * left, some, some);
  for (double n = 1; n <= all; ++n) rate.by_sms.push_back(closed_queue(n, below.service, below.own) / n);
  return rate;
}

std::vector<double> observed_shares(std::span<const BlockProgress> later, std::span<const BlockProgress> earlier) {
  const auto by_sm = [](std::span<const BlockProgress> blocks) {
    std::vector<BlockProgress> sorted(blocks.begin(), blocks.end());
    std::sort(sorted.begin(), sorted.end(), [](const BlockProgress& a, const BlockProgress& b) {
      return a.sm != b.sm ? a.sm < b.sm : a.block < b.block;
    });
    return sorted;
  };
  const std::vector<BlockProgress> now = by_sm(later), then = by_sm(earlier);
  std::size_t most = 0;
  for (std::size_t n = 0, first = 0; n < now.size(); ++n) {
    if (now[n].sm != now[first].sm) first = n;
    most = std::max(most, n - first + 1);
  }
  std::vector<double> shares(most, 0);
  std::size_t full = 0, stayed = 0;  // SMs
  for (std::size_t n = 0, t = 0; n < now.size();) {
    std::size_t end = n, until = t;
    while (end < now.size() && now[end].sm == now[n].sm) ++end;
    while (t < then.size() && then[t].sm < now[n].sm) ++t;
    for (until = t; until < then.size() && then[until].sm == now[n].sm;) ++until;
    const auto same = [](const BlockProgress& a, const BlockProgress& b) { return a.block == b.block; };
    const bool is_full = end - n == shares.size();
    full += is_full;
    if (is_full &&
        std::equal(now.begin() + static_cast<std::ptrdiff_t>(n), now.begin() + static_cast<std::ptrdiff_t>(end),
                   then.begin() + static_cast<std::ptrdiff_t>(t), then.begin() + static_cast<std::ptrdiff_t>(until),
                   same)) {
      ++stayed;
      for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += now[n + i].done - then[t + i].done;
    }
    n = end;
  }
  // Where most SMs have other blocks by now, those that have not are slow ones: they say nothing of the others.
  return 2 * stayed >= full ? shares : std::vector<double>{};
}

RestTime schedule_rest(std::vector<std::vector<RestBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate& rate, const std::function<RestBlock(std::uint64_t)>& next) {
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue;
  std::vector<double> since(in_flight.size(), 0);
  std::vector<std::vector<Going>> sms(in_flight.size());
  RatesByCount rates(rate);
  std::uint64_t taken = 0;
  RestTime rest;
  std::vector<std::uint64_t> plans(sms.size(), 0);
  // As many as are there would fill so many SMs.
  std::size_t there = 0, full = 0;
  double least = 0;  // of its way, that a part takes a block on
  const auto count_full = [&] {
    const auto room = static_cast<std::size_t>(blocks_per_sm);
    return std::exchange(full, (there + room - 1) / room) != full;
  };
  const auto end_part = [&](Going& going, std::size_t sm, double now) {
    const double to = going.position();
    if (to > going.from)
      rest.parts.push_back({going.block.block, going.from, to, going.at, now, static_cast<std::uint16_t>(sm)});
    going.from = to;
    going.at = now;
  };
  const auto plan = [&](std::size_t sm, double now) {
    since[sm] = now;
    double first = std::numeric_limits<double>::infinity();
    std::vector<Going>& blocks = sms[sm];
    const std::vector<double>& of_mean = rates.with(blocks.size());
    const double pace = rate.left(full);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const double goes = of_mean[i] * pace;
      const bool changes = std::abs(goes - blocks[i].rate) > kSameRate * goes;
      const double part = blocks[i].position() - blocks[i].from;
      if (changes && part >= least) end_part(blocks[i], sm, now);
      if (changes && part < std::min(least, kNoProgress)) blocks[i].at = now;
      blocks[i].rate = goes;
      if (goes > 0) first = std::min(first, blocks[i].block.left / goes);
    }
    if (!blocks.empty()) queue.push({now + first, sm, ++plans[sm]});
  };
  const auto go_on = [&](std::size_t sm, double now) {
    const double passed = now - since[sm];
    rest.block_cycles += passed * static_cast<double>(sms[sm].size());
    rest.sm_cycles += passed;
    for (Going& going : sms[sm]) going.block.left -= passed * going.rate;
  };
  const auto begin = [&](const RestBlock& block, std::size_t sm, double now) {
    sms[sm].push_back({block, 0, 1 - block.left / block.all, now});
    ++there;
  };
  for (std::size_t sm = 0; sm < sms.size(); ++sm)
    for (const RestBlock& block : in_flight[sm]) begin(block, sm, 0);
  least = static_cast<double>(there + waiting) / kMostParts;
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::size_t sm = 0; sm < sms.size(); ++sm)
      if (sms[sm].size() <= static_cast<std::size_t>(slot) && taken < waiting) begin(next(taken++), sm, 0);
  count_full();
  for (std::size_t sm = 0; sm < sms.size(); ++sm) plan(sm, 0);
  while (!queue.empty()) {
    const Event event = queue.top();
    queue.pop();
    if (event.plan != plans[event.sm]) continue;
    rest.cycles = event.at;
    go_on(event.sm, event.at);
    const std::size_t ended = std::erase_if(sms[event.sm], [&](Going& going) {
      if (going.block.left >= kDone) return false;
      end_part(going, event.sm, event.at);
      return true;
    });
    there -= ended;
    for (std::size_t i = 0; i < ended && taken < waiting; ++i) begin(next(taken++), event.sm, event.at);
    if (count_full() && !rate.by_sms.empty()) {
      for (std::size_t sm = 0; sm < sms.size(); ++sm) {
        if (sm != event.sm && !sms[sm].empty()) go_on(sm, event.at);
        plan(sm, event.at);
      }
    } else {
      plan(event.sm, event.at);
    }
  }
  return rest;
}

std::vector<RestPart> parts_between(std::span<const RestPart> parts, double from, double until) {
  std::vector<RestPart> found;
  for (const RestPart& part : parts) {
    if (part.until <= from || part.at >= until) continue;
    RestPart cut = part;
    cut.from = part.position(from), cut.at = std::max(part.at, from);
    cut.to = part.position(until), cut.until = std::min(part.until, until);
    found.push_back(cut);
  }
  return found;
}

double observed_warps(const TimingCounters& later, const TimingCounters& earlier, int warps_per_block, double held) {
  const auto blocks = static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles) * held;
  const auto warps = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  return blocks > 0 ? std::min<double>(warps_per_block, warps / blocks) : warps_per_block;
}

void set_residence(TimingCounters& counters, const TimingCounters& before, const RestTime& rest,
                   double warps_per_block) {
  const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
  const std::uint64_t in_proportion = counters.sm_active_cycles - before.sm_active_cycles;
  const std::uint64_t sub_partitions = counters.smsp_active_cycles - before.smsp_active_cycles;
  counters.sm_active_cycles = before.sm_active_cycles + whole(rest.sm_cycles);
  if (in_proportion > 0)
    counters.smsp_active_cycles =
        before.smsp_active_cycles +
        whole(static_cast<double>(sub_partitions) * rest.sm_cycles / static_cast<double>(in_proportion));
  const std::uint64_t warps = whole(rest.block_cycles * warps_per_block);
  counters.warp_cycles = before.warp_cycles + warps;
  std::uint64_t all = 0, shared = 0;
  for (std::size_t s = 0; s < kStallReasons; ++s) all += counters.stalls[s] - before.stalls[s];
  for (const Stall stall : kShared) {
    const auto s = static_cast<std::size_t>(stall);
    shared += counters.stalls[s] - before.stalls[s];
  }
  const std::uint64_t own = all - shared, remains = warps - std::min(warps, own);
  if (shared == 0) return;
  for (const Stall stall : kShared) {
    const auto s = static_cast<std::size_t>(stall);
    counters.stalls[s] = before.stalls[s] + whole(static_cast<double>(counters.stalls[s] - before.stalls[s]) *
                                                  static_cast<double>(remains) / static_cast<double>(shared));
  }
}

}  // namespace forewarp
