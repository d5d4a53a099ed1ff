#include "timing/skip/loops.h"

#include <algorithm>
#include <numeric>

namespace forewarp {
namespace {

constexpr std::size_t kLongestPeriod = 256;  // runs; loops whose body wanders more are not skipped
constexpr std::size_t kMostComparisons = 8'000'000;

std::uint32_t count_accesses(const WarpPath& path, const TimedProgram& program, std::size_t first, std::size_t last) {
  std::uint32_t count = 0;
  for (std::size_t r = first; r < last; ++r)
    for (std::uint32_t i = 0; i < path.runs[r].count; ++i)
      count += program[path.runs[r].first + i].path == Path::Memory;
  return count;
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
  best.accesses_before = count_accesses(path, program, 0, best.first_run);
  best.accesses = count_accesses(path, program, best.first_run, end);
  for (std::size_t r = best.first_run; r < end; ++r) best.instructions += runs[r].count;
  return best;
}

std::uint32_t find_line_period(const PathLoop& loop, const WarpTrace& warp, const KernelTrace& trace) {
  std::int64_t period = 1;
  if (loop.iterations < 2) return 1;
  const Access* access = warp.accesses.data() + loop.accesses_before;
  for (std::uint32_t a = 0; a < loop.accesses; ++a) {
    const AccessPattern& pattern = trace.patterns[access[a].pattern];
    if (pattern.space == MemorySpace::Shared || pattern.lanes == 0) continue;
    const auto step = static_cast<std::int64_t>(access[a + loop.accesses].base - access[a].base);
    if (step != 0) period = std::max(period, kLineBytes / std::gcd(step, std::int64_t{kLineBytes}));
  }
  return static_cast<std::uint32_t>(std::min<std::int64_t>(period, kLineBytes / 4));
}

}  // namespace forewarp
