#include "timing/rest_schedule.h"

#include <algorithm>
#include <queue>

namespace forewarp {
namespace {

/// Waiting that is there because other warps are.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle,
                             Stall::MioThrottle, Stall::TexThrottle,      Stall::DispatchStall};

/// The next block to be done on an SM; stale once the SM has moved on.
struct Done {
  double at = 0;
  std::size_t sm = 0;
  bool operator>(const Done& other) const { return at != other.at ? at > other.at : sm > other.sm; }
};

}  // namespace

SmRate observed_rate(const TimingCounters& later, const TimingCounters& earlier, std::uint64_t instructions,
                     int warps_per_block) {
  const auto done = static_cast<double>(std::max<std::uint64_t>(1, instructions));
  const double active = std::max(1.0, static_cast<double>(later.sm_active_cycles - earlier.sm_active_cycles));
  const auto warp_cycles = static_cast<double>(later.warp_cycles - earlier.warp_cycles);
  double own = warp_cycles;
  for (const Stall stall : kShared) {
    const auto s = static_cast<std::size_t>(stall);
    own -= static_cast<double>(later.stalls[s] - earlier.stalls[s]);
  }
  SmRate rate;
  rate.most = done / active;
  const double blocks = std::max(1.0, warp_cycles / active / warps_per_block);
  // A block is at least as fast by itself as it was among the others.
  rate.alone = std::max(rate.most / blocks, warps_per_block / std::max(1.0, own / done));
  return rate;
}

double rest_cycles(std::vector<std::vector<double>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                   const SmRate& rate, const std::function<double(std::uint64_t)>& next) {
  std::priority_queue<Done, std::vector<Done>, std::greater<>> queue;
  std::uint64_t taken = 0;
  const auto plan = [&](std::size_t sm, double now) {
    std::vector<double>& blocks = in_flight[sm];
    if (blocks.empty()) return;
    const double each = rate.with(blocks.size()) / static_cast<double>(blocks.size());
    queue.push({now + *std::min_element(blocks.begin(), blocks.end()) / each, sm});
  };
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::vector<double>& blocks : in_flight)
      if (blocks.size() <= static_cast<std::size_t>(slot) && taken < waiting) blocks.push_back(next(taken++));
  for (std::size_t sm = 0; sm < in_flight.size(); ++sm) plan(sm, 0);
  double end = 0;
  while (!queue.empty()) {
    const Done done = queue.top();
    queue.pop();
    std::vector<double>& blocks = in_flight[done.sm];
    const double least = *std::min_element(blocks.begin(), blocks.end());
    for (double& left : blocks) left -= least;
    for (std::size_t i = 0; i < blocks.size();) {
      if (blocks[i] > 0.5) {
        ++i;
      } else if (taken < waiting) {
        blocks[i++] = next(taken++);
      } else {
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    end = done.at;
    plan(done.sm, done.at);
  }
  return end;
}

}  // namespace forewarp
