#include "timing/skip/rest_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "timing/skip/estimate.h"

namespace forewarp {
namespace {

/// Waiting that is there because other warps are: those of other blocks, which are in the way, and at barriers those of
/// the same block that were held up so.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle, Stall::MioThrottle,
                             Stall::TexThrottle, Stall::DispatchStall,    Stall::Barrier};

constexpr double kDone = 0.5;  // instructions left of a block that has ended, but for rounding

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

}  // namespace

double SmRate::of(std::size_t sm, std::size_t full) const {
  const double mine = sm < of_sms.size() ? of_sms[sm] : 1;
  if (by_sms.empty()) return mine;
  const double left = by_sms[std::clamp<std::size_t>(full, 1, by_sms.size()) - 1];
  return std::min(mine * left, std::max(mine * by_sms.back(), by_sms.front()));
}

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
  bool any = false;
  for (std::size_t n = 0, t = 0; n < now.size();) {
    std::size_t end = n, until = t;
    while (end < now.size() && now[end].sm == now[n].sm) ++end;
    while (t < then.size() && then[t].sm < now[n].sm) ++t;
    for (until = t; until < then.size() && then[until].sm == now[n].sm;) ++until;
    const auto same = [](const BlockProgress& a, const BlockProgress& b) { return a.block == b.block; };
    if (end - n == shares.size() &&
        std::equal(now.begin() + static_cast<std::ptrdiff_t>(n), now.begin() + static_cast<std::ptrdiff_t>(end),
                   then.begin() + static_cast<std::ptrdiff_t>(t), then.begin() + static_cast<std::ptrdiff_t>(until),
                   same)) {
      any = true;
      for (std::size_t i = 0; i < shares.size(); ++i) shares[i] += now[n + i].done - then[t + i].done;
    }
    n = end;
  }
  return any ? shares : std::vector<double>{};
}

std::vector<double> lasting_rates(std::span<const std::uint64_t> first_half, std::span<const std::uint64_t> second_half,
                                  std::span<const std::size_t> held) {
  const auto gains_of = [&](std::span<const std::uint64_t> done) {
    std::vector<double> sum, sms, gains;
    for (std::size_t sm = 0; sm < done.size(); ++sm) {
      if (held[sm] >= sum.size()) sum.resize(held[sm] + 1), sms.resize(held[sm] + 1);
      sum[held[sm]] += static_cast<double>(done[sm]);
      ++sms[held[sm]];
    }
    for (std::size_t sm = 0; sm < done.size(); ++sm) {
      const double mean = sum[held[sm]] / sms[held[sm]];
      gains.push_back(mean > 0 ? static_cast<double>(done[sm]) / mean - 1 : 0);
    }
    return gains;
  };
  const std::vector<double> first = gains_of(first_half), second = gains_of(second_half);
  const double lasts = lasting_share(first, second);
  std::vector<double> rates;
  for (std::size_t sm = 0; sm < first.size(); ++sm) rates.push_back(1 + lasts * (first[sm] + second[sm]) / 2);
  return rates;
}

RestTime schedule_rest(std::vector<std::vector<RestBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate& rate, const std::function<RestBlock(std::uint64_t)>& next) {
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue;
  std::vector<double> since(in_flight.size(), 0);
  std::vector<std::vector<double>> rates(in_flight.size());
  std::uint64_t taken = 0;
  RestTime rest;
  const auto share = [&rate](std::size_t i) { return i < rate.shares.size() ? rate.shares[i] : 1.0; };
  // The rate of the i-th oldest of n blocks.
  const auto rate_of = [&](std::size_t i, std::size_t n) {
    double left = rate.with(n), shares = 0, mine = 0;
    for (std::size_t k = 0; k < n; ++k) shares += share(k);
    for (std::size_t k = 0; k <= i; ++k) {
      const double part = shares > 0 ? share(k) / shares : 1 / static_cast<double>(n - k);
      mine = std::min(rate.alone, left * part);
      shares -= share(k);
      left -= mine;
    }
    return mine;
  };
  std::vector<std::uint64_t> plans(in_flight.size(), 0);
  // As many as are there would fill so many SMs.
  std::size_t there = 0, full = 0;
  const auto count_full = [&] {
    const auto room = static_cast<std::size_t>(blocks_per_sm);
    return std::exchange(full, (there + room - 1) / room) != full;
  };
  const auto plan = [&](std::size_t sm, double now) {
    since[sm] = now;
    double first = std::numeric_limits<double>::infinity();
    const std::size_t n = in_flight[sm].size();
    rates[sm].resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      rates[sm][i] = rate_of(i, n) * rate.of(sm, full);
      if (rates[sm][i] > 0) first = std::min(first, in_flight[sm][i].left / rates[sm][i]);
    }
    if (n > 0) queue.push({now + first, sm, ++plans[sm]});
  };
  const auto go_on = [&](std::size_t sm, double now) {
    std::vector<RestBlock>& blocks = in_flight[sm];
    const double passed = now - since[sm];
    rest.block_cycles += passed * static_cast<double>(blocks.size());
    rest.sm_cycles += passed;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const double moved = passed * rates[sm][i];
      if (moved <= 0) continue;
      RestBlock& block = blocks[i];
      const double from = 1 - block.left / block.all;
      block.left -= moved;
      const double to = block.left < kDone ? 1 : 1 - block.left / block.all;
      rest.parts.push_back({block.block, from, to, since[sm], now, static_cast<std::uint16_t>(sm)});
    }
  };
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::vector<RestBlock>& blocks : in_flight)
      if (blocks.size() <= static_cast<std::size_t>(slot) && taken < waiting) blocks.push_back(next(taken++));
  for (const std::vector<RestBlock>& blocks : in_flight) there += blocks.size();
  count_full();
  for (std::size_t sm = 0; sm < in_flight.size(); ++sm) plan(sm, 0);
  while (!queue.empty()) {
    const Event event = queue.top();
    queue.pop();
    if (event.plan != plans[event.sm]) continue;
    rest.cycles = event.at;
    go_on(event.sm, event.at);
    std::vector<RestBlock>& blocks = in_flight[event.sm];
    const std::size_t ended = std::erase_if(blocks, [](const RestBlock& block) { return block.left < kDone; });
    there -= ended;
    for (std::size_t i = 0; i < ended && taken < waiting; ++i, ++there) blocks.push_back(next(taken++));
    if (count_full() && !rate.by_sms.empty()) {
      for (std::size_t sm = 0; sm < in_flight.size(); ++sm) {
        if (sm != event.sm && !in_flight[sm].empty()) go_on(sm, event.at);
        plan(sm, event.at);
      }
    } else {
      plan(event.sm, event.at);
    }
  }
  return rest;
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
