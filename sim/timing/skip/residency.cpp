#include "timing/skip/residency.h"

#include <algorithm>
#include <cmath>

namespace forewarp {
namespace {

/// Waiting that is there because other warps are: those of other blocks, which are in the way, and at barriers those of
/// the same block that were held up so.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle, Stall::MioThrottle,
                             Stall::TexThrottle, Stall::DispatchStall,    Stall::Barrier};

bool is_shared(Stall stall) { return std::find(std::begin(kShared), std::end(kShared), stall) != std::end(kShared); }

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

SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, const SmShape& shape, double held) {
  const auto done =
      static_cast<double>(std::max<std::uint64_t>(1, later.instructions_issued - earlier.instructions_issued));
  const double active = std::max(1.0, static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles));
  const auto warp_cycles = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  // Waits are counted when they end: warps that older ones have kept from issuing all the time are not in them.
  double own = 0;
  for (std::size_t s = 0; s < kStallReasons; ++s)
    if (!is_shared(static_cast<Stall>(s))) own += static_cast<double>(later.stalls[s] - earlier.stalls[s]);
  SmRate rate;
  const double most = done / active;
  const double warps = shape.warps_per_block, blocks = std::max(1.0, warp_cycles / active / warps);
  // A block is at least as fast by itself as it was among the others.
  rate.alone = std::max(most / blocks, warps / std::max(1.0, own / done));
  // Some of a block's warps may have ended before the others.
  const double in_turn = warps / shape.sub_partitions * blocks / std::max(blocks, held);
  const double seen = most / shape.sub_partitions, by_itself = warps / rate.alone;
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

}  // namespace forewarp
