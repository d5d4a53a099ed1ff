#include "timing/skip/rest_schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>

namespace forewarp {
namespace {

/// Waiting that is there because other warps are: those of other blocks, which are in the way, and at barriers those of
/// the same block that were held up so.
constexpr Stall kShared[] = {Stall::NotSelected, Stall::MathPipeThrottle, Stall::LgThrottle, Stall::MioThrottle,
                             Stall::TexThrottle, Stall::DispatchStall,    Stall::Barrier};

constexpr double kDone = 0.5;       // instructions left of a block that has ended, but for rounding
constexpr double kSameRate = 1e-9;  // rates that differ by rounding alone
// Parts of ways are kept for as many as this (200 MB): of more blocks a part is a longer piece of the way, up to all.
constexpr double kMostParts = 4e6;

/// A block in flight: since `at` it has gone on from `from` at an even rate.
struct Going {
  RestBlock block;
  double from = 0, at = 0, rate = 0;

  double position() const { return block.left < kDone ? 1 : block.done(); }
};

/// An SM, whose blocks have gone at even rates since a time.
struct Working {
  std::vector<Going> blocks;
  double since = 0;
};

}  // namespace

RestTime schedule_rest(std::vector<std::vector<RestBlock>> in_flight, std::uint64_t waiting, int blocks_per_sm,
                       const SmRate& rate, const std::function<RestBlock(std::uint64_t)>& next) {
  using End = std::pair<double, std::size_t>;  // of the first block of an SM
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;
  std::vector<Working> sms(in_flight.size());
  std::uint64_t taken = 0;
  RestTime rest;
  const double least = static_cast<double>(waiting) / kMostParts;  // of its way, that a part takes a block on
  const auto end_part = [&](Going& going, std::size_t sm, double now) {
    const double to = going.position();
    if (to > going.from)
      rest.parts.push_back({going.block.block, going.from, to, going.at, now, static_cast<std::uint16_t>(sm)});
    going.from = to;
    going.at = now;
  };
  const auto begin = [&](const RestBlock& block, std::size_t sm, double now) {
    sms[sm].blocks.push_back({block, block.done(), now, 0});
  };
  const auto plan = [&](std::size_t id, double now) {
    Working& sm = sms[id];
    sm.since = now;
    double first = std::numeric_limits<double>::infinity(), left = rate.most * rate.of(id), shares = 0;
    for (std::size_t k = 0; k < sm.blocks.size(); ++k) shares += rate.share(k);
    for (std::size_t k = 0; k < sm.blocks.size(); ++k) {
      Going& going = sm.blocks[k];
      const double goes = std::min(rate.alone * rate.of(id), left * rate.share(k) / shares);
      left -= goes, shares -= rate.share(k);
      const bool changes = std::abs(goes - going.rate) > kSameRate * goes;
      if (changes && going.position() - going.from >= least) end_part(going, id, now);
      going.rate = goes;
      first = std::min(first, going.block.left / goes);
    }
    if (!sm.blocks.empty()) ends.emplace(now + first, id);
  };
  for (std::size_t sm = 0; sm < sms.size(); ++sm)
    for (const RestBlock& block : in_flight[sm]) begin(block, sm, 0);
  // Free slots are filled in turn, as the dispatcher does.
  for (int slot = 0; slot < blocks_per_sm; ++slot)
    for (std::size_t sm = 0; sm < sms.size(); ++sm)
      if (sms[sm].blocks.size() <= static_cast<std::size_t>(slot) && taken < waiting) begin(next(taken++), sm, 0);
  for (std::size_t sm = 0; sm < sms.size(); ++sm) plan(sm, 0);
  while (!ends.empty()) {
    const auto [now, id] = ends.top();
    ends.pop();
    Working& sm = sms[id];
    const double passed = now - sm.since;
    rest.cycles = now;
    rest.block_cycles += passed * static_cast<double>(sm.blocks.size());
    rest.sm_cycles += passed;
    for (Going& going : sm.blocks) going.block.left -= passed * going.rate;
    const std::size_t ended = std::erase_if(sm.blocks, [&](Going& going) {
      if (going.block.left >= kDone) return false;
      end_part(going, id, now);
      return true;
    });
    for (std::size_t i = 0; i < ended && taken < waiting; ++i) begin(next(taken++), id, now);
    plan(id, now);
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
