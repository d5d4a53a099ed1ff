#include "timing/skip/loops.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace forewarp {
namespace {

constexpr std::size_t kLongestPeriod = 256;  // runs; loops whose body wanders more are not skipped
constexpr std::size_t kMostComparisons = 8'000'000;

/// False: loads go past L1.
bool finds_l1(const WarpPath& path, const TimedProgram& program, std::size_t first, std::size_t last) {
  for (std::size_t r = first; r < last; ++r)
    for (std::uint32_t i = 0; i < path.runs[r].count; ++i)
      if (program[path.runs[r].first + i].bypass_l1) return false;
  return true;
}

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

}  // namespace

PathLoop find_loop(const WarpPath& path, const TimedProgram& program) {
  const std::vector<Run>& runs = path.runs;
  PathLoop best;
  std::size_t best_covered = 0, compared = 0;
  for (std::size_t period = 1; period <= kLongestPeriod && period * 2 <= runs.size(); ++period) {
    std::size_t start = 0;
    for (std::size_t i = period; i <= runs.size(); ++i) {
      if (i < runs.size() && runs[i] == runs[i - period]) continue;
      const std::size_t iterations = (i - start) / period;
      if (iterations >= 2 && iterations * period > best_covered) {
        best_covered = iterations * period;
        best.first_run = static_cast<std::uint32_t>(start);
        best.period = static_cast<std::uint32_t>(period);
        best.iterations = static_cast<std::uint32_t>(iterations);
      }
      start = i - period + 1;
    }
    compared += runs.size();
    if (compared > kMostComparisons || best_covered * 10 > runs.size() * 9) break;
  }
  if (best.period == 0) return best;
  const std::size_t end = best.first_run + best.period;
  const std::span<const Run> all(runs);
  best.accesses_before = static_cast<std::uint32_t>(program.events().records(all.first(best.first_run)));
  best.accesses = static_cast<std::uint32_t>(program.events().records(all.subspan(best.first_run, best.period)));
  best.finds_l1 = finds_l1(path, program, best.first_run, end);
  for (std::size_t r = best.first_run; r < end; ++r) best.instructions += runs[r].count;
  return best;
}

std::vector<std::vector<PathLoop>> find_loops(const KernelTrace& trace, const TimedProgram& program) {
  std::vector<std::vector<PathLoop>> loops(trace.classes.size());
  for (std::size_t c = 0; c < trace.classes.size(); ++c) {
    for (const WarpPath& path : trace.classes[c].paths) loops[c].push_back(find_loop(path, program));
    for (const WarpTrace& warp : trace.classes[c].warps) {
      PathLoop& loop = loops[c][warp.path];
      if (loop.line_period == 1 && loop.period != 0) loop.line_period = find_line_period(loop, warp, trace);
    }
  }
  return loops;
}

}  // namespace forewarp
