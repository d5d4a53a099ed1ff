#include "timing/skip/loops.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <tuple>

namespace forewarp {
namespace {

constexpr std::size_t kLongestPeriod = 256;  // runs; loops whose body wanders more are not skipped
constexpr std::size_t kMostComparisons = 8'000'000;
// A loop is looked at if it repeats at least such a part of what the longest one does; no more of them than these.
constexpr std::size_t kWorthLooking = 8, kMostLoops = 64;
constexpr std::uint32_t kMostStages = 32;  // of a ring of barriers

/// Iterations after which the accesses of a warp in its loop have moved by whole lines: until then the same line is
/// read again, so that a rate has to be measured over a multiple of them.
std::uint32_t find_line_period(const PathLoop& loop, const WarpTrace& warp, const KernelTrace& trace) {
  std::int64_t period = 1;
  if (loop.iterations < 2) return 1;
  const Access* access = warp.accesses.data() + loop.accesses_before;
  for (std::uint32_t a = 0; a < loop.accesses; ++a) {
    const AccessPattern& pattern = trace.patterns[access[a].pattern];
    if (!effect_of(pattern).to_lines() || pattern.lanes == 0) continue;
    const auto step = static_cast<std::int64_t>(access[a + loop.accesses].base - access[a].base);
    if (step != 0) period = std::max(period, kLineBytes / std::gcd(step, std::int64_t{kLineBytes}));
  }
  return static_cast<std::uint32_t>(std::min<std::int64_t>(period, kLineBytes / 4));
}

/// The records of an iteration that are about barriers in shared memory.
struct BarrierRecord {
  std::uint32_t at = 0;
  bool box = false;  ///< a BoxTarget; else a PhaseRecord
};

std::vector<BarrierRecord> barrier_records(const PathLoop& loop, const WarpPath& path, const TimedProgram& program) {
  std::vector<BarrierRecord> found;
  std::uint32_t at = 0;
  for (std::uint32_t r = loop.first_run; r < loop.first_run + loop.period; ++r) {
    for (std::uint32_t i = 0; i < path.runs[r].count; ++i) {
      const TimedInstruction& in = program[path.runs[r].first + i];
      if (in.path == Path::Phase) found.push_back({at, false});
      if (in.path == Path::Box) found.push_back({at + 1, true});
      at += in.event.records;
    }
  }
  return found;
}

/// The same barrier, so many iterations later: in another phase, or the same box.
bool comes_round(const Access& now, const Access& later, bool box) {
  if (box) return now.base == later.base;
  PhaseRecord first = PhaseRecord::of(now.base), second = PhaseRecord::of(later.base);
  if (first.action == PhaseRecord::Action::Await && second.phase < first.phase) return false;
  first.phase = second.phase = 0;
  return first == second;
}

/// Iterations after which a warp finds all barriers of its loop as they are now, but for their phases.
std::uint32_t find_phase_period(const PathLoop& loop, const WarpTrace& warp, const WarpPath& path,
                                const TimedProgram& program) {
  const std::vector<BarrierRecord> records = barrier_records(loop, path, program);
  if (records.empty()) return 1;
  const Access* access = warp.accesses.data() + loop.accesses_before;
  for (std::uint32_t period = 1; period <= kMostStages && 2 * period < loop.iterations; ++period) {
    const auto same = [&](std::uint32_t iteration) {
      return std::all_of(records.begin(), records.end(), [&](const BarrierRecord& r) {
        const Access* now = access + std::size_t{iteration} * loop.accesses + r.at;
        return comes_round(*now, now[std::size_t{period} * loop.accesses], r.box);
      });
    };
    bool all = true;
    for (std::uint32_t i = 0; i < period && all; ++i) all = same(i);
    if (all) return period;
  }
  return 0;
}

/// Numbers the bodies of the loops. Loops that begin at another place of their body have the same one.
void number_bodies(Loops& loops, const KernelTrace& trace) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> bodies;
  for (std::size_t c = 0; c < loops.size(); ++c) {
    for (std::size_t p = 0; p < loops[c].size(); ++p) {
      const std::vector<Run>& runs = trace.classes[c].paths[p].runs;
      for (PathLoop& loop : loops[c][p]) {
        std::uint32_t first = ~std::uint32_t{0};
        for (std::uint32_t r = loop.first_run; r < loop.first_run + loop.period; ++r)
          first = std::min(first, runs[r].first);
        const auto number = static_cast<std::uint32_t>(bodies.size());
        loop.body = bodies.try_emplace({first, loop.period, loop.instructions}, number).first->second;
      }
    }
  }
}

}  // namespace

PathLoops find_loops(const WarpPath& path, const TimedProgram& program) {
  const std::vector<Run>& runs = path.runs;
  std::vector<PathLoop> found;
  std::size_t best = 0, compared = 0;  // runs of the longest repetition
  const auto covers = [](const PathLoop& loop) { return std::size_t{loop.iterations} * loop.period; };
  for (std::size_t period = 1; period <= kLongestPeriod && period * 2 <= runs.size(); ++period) {
    std::size_t start = 0;
    for (std::size_t i = period; i <= runs.size(); ++i) {
      if (i < runs.size() && runs[i] == runs[i - period]) continue;
      const std::size_t iterations = (i - start) / period;
      if (iterations >= 2 && iterations * period * kWorthLooking >= best) {
        found.push_back({.first_run = static_cast<std::uint32_t>(start),
                         .period = static_cast<std::uint32_t>(period),
                         .iterations = static_cast<std::uint32_t>(iterations)});
        best = std::max(best, iterations * period);
      }
      start = i - period + 1;
    }
    std::erase_if(found, [&](const PathLoop& loop) { return covers(loop) * kWorthLooking < best; });
    compared += runs.size();
    std::size_t covered = 0;
    for (const PathLoop& loop : found)
      if (loop.period == period) covered += covers(loop);
    if (compared > kMostComparisons || (covered * 10 > runs.size() * 9 && best * kMostLoops > runs.size())) break;
  }
  // The longest first, and of equal ones those that repeat more often.
  std::stable_sort(found.begin(), found.end(),
                   [&](const PathLoop& a, const PathLoop& b) { return covers(a) > covers(b); });
  PathLoops loops;
  for (const PathLoop& loop : found) {
    const auto apart = [&](const PathLoop& other) {
      return loop.first_run + covers(loop) <= other.first_run || other.first_run + covers(other) <= loop.first_run;
    };
    if (std::all_of(loops.begin(), loops.end(), apart)) loops.push_back(loop);
    if (loops.size() == kMostLoops) break;
  }
  std::sort(loops.begin(), loops.end(), [](const PathLoop& a, const PathLoop& b) { return a.first_run < b.first_run; });
  const std::span<const Run> all(runs);
  for (PathLoop& loop : loops) {
    const std::size_t end = loop.first_run + loop.period;
    loop.accesses_before = static_cast<std::uint32_t>(program.events().records(all.first(loop.first_run)));
    loop.accesses = static_cast<std::uint32_t>(program.events().records(all.subspan(loop.first_run, loop.period)));
    for (std::size_t r = 0; r < loop.first_run; ++r) loop.instructions_before += runs[r].count;
    for (std::size_t r = loop.first_run; r < end; ++r) loop.instructions += runs[r].count;
  }
  return loops;
}

std::size_t loop_at(const PathLoops& loops, std::uint32_t run) {
  const auto after = std::upper_bound(loops.begin(), loops.end(), run,
                                      [](std::uint32_t at, const PathLoop& loop) { return at < loop.first_run; });
  if (after == loops.begin()) return loops.size();
  const PathLoop& loop = *std::prev(after);
  return run < loop.first_run + loop.period * loop.iterations ? static_cast<std::size_t>(after - loops.begin()) - 1
                                                              : loops.size();
}

Loops find_loops(const KernelTrace& trace, const TimedProgram& program) {
  Loops loops(trace.classes.size());
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    for (const WarpPath& path : trace.classes[c].paths) loops[c].push_back(find_loops(path, program));
    for (const WarpTrace& warp : trace.classes[c].warps) {
      for (PathLoop& loop : loops[c][warp.path]) {
        if (loop.line_period == 1) loop.line_period = find_line_period(loop, warp, trace);
        if (program.phases())
          loop.phase_period =
              std::lcm(loop.phase_period, find_phase_period(loop, warp, trace.classes[c].paths[warp.path], program));
      }
    }
    // Warps that count phases of barriers in memory are moved on only where those come round.
    for (PathLoops& of_path : loops[c])
      std::erase_if(of_path, [](const PathLoop& loop) { return loop.phase_period == 0; });
  }
  number_bodies(loops, trace);
  return loops;
}

}  // namespace forewarp
