#include "timing/simulate.h"

#include <algorithm>
#include <bit>

#include "timing/gpu.h"
#include "timing/steady_state.h"

namespace forewarp {
namespace {

/// Passes through the data banks, and what stores and atomics carry.
PatternTiming time_pattern(const AccessPattern& pattern, const CoalescedCounts& counts) {
  PatternTiming timing;
  if (pattern.lanes == 0) return timing;
  timing.wavefronts = counts.wavefronts;
  timing.full_sectors = counts.bytes == counts.sectors * kSectorBytes;
  const int lines = std::max<int>(1, counts.lines);
  if (!timing.full_sectors) timing.bytes = static_cast<std::uint8_t>(counts.bytes / lines);
  // L2 combines eight lanes a pass unless they meet on one word: those follow one another (memory.h).
  const int active = std::popcount(pattern.lanes);
  const int passes = counts.addresses < active ? active * 8 : active;
  timing.operations = static_cast<std::uint8_t>(std::clamp(passes / lines, 1, 255));
  return timing;
}

}  // namespace

const char* stall_name(Stall stall) {
  static constexpr const char* kNames[] = {
#define X(id, name, meaning) name,
      FW_STALL_REASONS(X)
#undef X
  };
  return kNames[static_cast<std::size_t>(stall)];
}

const char* stall_meaning(Stall stall) {
  static constexpr const char* kMeanings[] = {
#define X(id, name, meaning) meaning,
      FW_STALL_REASONS(X)
#undef X
  };
  return kMeanings[static_cast<std::size_t>(stall)];
}

TimingResult simulate(const GpuModel& gpu, const KernelTrace& trace, const Occupancy& occupancy, const SimulateOptions& options) {
  const TimedProgram program(*trace.kernel, gpu);
  const CoalescedPatterns patterns(trace.patterns);
  std::vector<PatternTiming> pattern_timing(trace.patterns.size());
  for (std::size_t p = 0; p < trace.patterns.size(); ++p)
    pattern_timing[p] = time_pattern(trace.patterns[p], patterns.counts(static_cast<std::uint32_t>(p)));
  const ClassIndex classes(trace);
  const LaunchContext context{gpu,           trace,          program, patterns, pattern_timing, classes, occupancy.blocks_per_sm,
                              occupancy.warps_per_block, occupancy.l1_bytes};
  TimingResult result = replay(context, options);
  if (options.caches == CacheState::Warm)
    result.warnings.push_back("warm caches are not modelled yet: this launch was simulated with cold ones");
  return result;
}

}  // namespace forewarp
