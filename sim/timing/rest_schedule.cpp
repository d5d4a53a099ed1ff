#include "timing/rest_schedule.h"

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

}  // namespace

SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     int warps_per_block) {
  const auto done = static_cast<double>(std::max<std::uint64_t>(1, instructions));
  const double active = std::max(1.0, static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles));
  const auto warp_cycles = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  // Waits are counted when they end: warps that older ones have kept from issuing all the time are not in them.
  double own = 0;
  for (std::size_t s = 0; s < kStallReasons; ++s)
    if (!is_shared(static_cast<Stall>(s))) own += static_cast<double>(later.stalls[s] - earlier.stalls[s]);
  SmRate rate;
  rate.most = done / active;
  const double blocks = std::max(1.0, warp_cycles / active / warps_per_block);
  // A block is at least as fast by itself as it was among the others.
  rate.alone = std::max(rate.most / blocks, warps_per_block / std::max(1.0, own / done));
  return rate;
}

RestTime schedule_rest(std::vector<std::vector<double>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate& rate, const std::function<double(std::uint64_t)>& next) {
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue;
  std::vector<double> since(in_flight.size(), 0);
  std::uint64_t taken = 0;
  RestTime rest;
  // The rate of the i-th oldest block.
  const auto rate_of = [&rate](std::size_t i) {
    return std::clamp(rate.most - static_cast<double>(i) * rate.alone, 0.0, rate.alone);
  };
  const auto plan = [&](std::size_t sm, double now) {
    since[sm] = now;
    double first = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < in_flight[sm].size() && rate_of(i) > 0; ++i)
      first = std::min(first, in_flight[sm][i] / rate_of(i));
    if (!in_flight[sm].empty()) queue.push({now + first, sm});
  };
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::vector<double>& blocks : in_flight)
      if (blocks.size() <= static_cast<std::size_t>(slot) && taken < waiting) blocks.push_back(next(taken++));
  for (std::size_t sm = 0; sm < in_flight.size(); ++sm) plan(sm, 0);
  while (!queue.empty()) {
    const Event event = queue.top();
    queue.pop();
    std::vector<double>& blocks = in_flight[event.sm];
    const double passed = event.at - since[event.sm];
    rest.block_cycles += passed * static_cast<double>(blocks.size());
    rest.sm_cycles += passed;
    rest.cycles = event.at;
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] -= passed * rate_of(i);
    const std::size_t ended = std::erase_if(blocks, [](double left) { return left < kDone; });
    for (std::size_t i = 0; i < ended && taken < waiting; ++i) blocks.push_back(next(taken++));
    plan(event.sm, event.at);
  }
  return rest;
}

void set_residence(TimingCounters& counters, const TimingCounters& before, const RestTime& rest, int warps_per_block) {
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
