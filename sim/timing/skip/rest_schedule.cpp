#include "timing/skip/rest_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

namespace forewarp {
namespace {

/// Waiting that is there because other warps are: those of other blocks, which are in the way, and at barriers those of
/// the same block that were held up so.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle, Stall::MioThrottle,
                             Stall::TexThrottle, Stall::DispatchStall,    Stall::Barrier};

constexpr double kDone = 0.5;  // instructions left of a block that has ended, but for rounding

bool is_shared(Stall stall) { return std::find(std::begin(kShared), std::end(kShared), stall) != std::end(kShared); }

/// A block of an SM ends.
struct Event {
  double at = 0;
  std::size_t sm = 0;
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

/// The service that makes the queue give `rate` with so many warps.
double service_of(double warps, double rate, double own) {
  constexpr int kHalvings = 40;
  double less = 0, more = 1 / rate;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (less + more) / 2;
    (closed_queue(warps, middle, own) > rate ? less : more) = middle;
  }
  return less;
}

}  // namespace

SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     const SmShape& shape, double held) {
  const auto done = static_cast<double>(std::max<std::uint64_t>(1, instructions));
  const double active = std::max(1.0, static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles));
  const auto warp_cycles = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  // Waits are counted when they end: warps that older ones have kept from issuing all the time are not in them.
  double own = 0;
  for (std::size_t s = 0; s < kStallReasons; ++s)
    if (!is_shared(static_cast<Stall>(s))) own += static_cast<double>(later.stalls[s] - earlier.stalls[s]);
  SmRate rate;
  rate.most = done / active;
  const double warps = shape.warps_per_block, blocks = std::max(1.0, warp_cycles / active / warps);
  // A block is at least as fast by itself as it was among the others.
  rate.alone = std::max(rate.most / blocks, warps / std::max(1.0, own / done));
  // Some of a block's warps may have ended before the others.
  const double in_turn = warps / shape.sub_partitions * blocks / std::max(blocks, held);
  const double seen = rate.most / shape.sub_partitions, by_itself = warps / rate.alone;
  const double service = service_of(blocks * warps / shape.sub_partitions, seen, by_itself);
  for (int n = 1; n <= shape.blocks; ++n)
    rate.by_blocks.push_back(closed_queue(n * in_turn, service, by_itself) * shape.sub_partitions);
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
  const auto plan = [&](std::size_t sm, double now) {
    since[sm] = now;
    double first = std::numeric_limits<double>::infinity();
    const std::size_t n = in_flight[sm].size();
    rates[sm].resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      rates[sm][i] = rate_of(i, n);
      if (rates[sm][i] > 0) first = std::min(first, in_flight[sm][i].left / rates[sm][i]);
    }
    if (n > 0) queue.push({now + first, sm});
  };
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::vector<RestBlock>& blocks : in_flight)
      if (blocks.size() <= static_cast<std::size_t>(slot) && taken < waiting) blocks.push_back(next(taken++));
  for (std::size_t sm = 0; sm < in_flight.size(); ++sm) plan(sm, 0);
  while (!queue.empty()) {
    const Event event = queue.top();
    queue.pop();
    std::vector<RestBlock>& blocks = in_flight[event.sm];
    const double passed = event.at - since[event.sm];
    rest.block_cycles += passed * static_cast<double>(blocks.size());
    rest.sm_cycles += passed;
    rest.cycles = event.at;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const double moved = passed * rates[event.sm][i];
      if (moved <= 0) continue;
      RestBlock& block = blocks[i];
      const double from = 1 - block.left / block.all;
      block.left -= moved;
      const double to = block.left < kDone ? 1 : 1 - block.left / block.all;
      rest.parts.push_back({block.block, from, to, since[event.sm], event.at, static_cast<std::uint16_t>(event.sm)});
    }
    const std::size_t ended = std::erase_if(blocks, [](const RestBlock& block) { return block.left < kDone; });
    for (std::size_t i = 0; i < ended && taken < waiting; ++i) blocks.push_back(next(taken++));
    plan(event.sm, event.at);
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
