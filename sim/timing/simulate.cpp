#include "timing/simulate.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "timing/skip/footprint.h"
#include "timing/skip/sampler.h"

namespace forewarp {
namespace {

// Lines that a launch of the past touches in L2: 30 times as many as an H200's holds, about half a second.
constexpr std::uint64_t kMostHistoryLines = 15'000'000;

/// Passes through the data banks, and what atomics carry.
PatternTiming time_pattern(const AccessPattern& pattern, const CoalescedCounts& counts) {
  PatternTiming timing;
  if (pattern.lanes == 0) return timing;
  timing.wavefronts = counts.wavefronts;
  // Lanes that meet on one word follow one another in L2 (memory.h).
  const int active = std::popcount(pattern.lanes), words = std::max<int>(1, counts.addresses);
  timing.rounds = static_cast<std::uint8_t>((active + words - 1) / words);
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

namespace {

/// What is made once of a launch for all that replay it.
class LaunchTables {
 public:
  LaunchTables(const GpuModel& gpu, const KernelTrace& trace)
      : program_(*trace.kernel, gpu), patterns_(trace.patterns), classes_(trace) {
    for (std::size_t p = 0; p < trace.patterns.size(); ++p)
      timing_.push_back(time_pattern(trace.patterns[p], patterns_.counts(static_cast<std::uint32_t>(p))));
  }
  LaunchContext context(const GpuModel& gpu, const KernelTrace& trace, const Occupancy& occupancy) const {
    return {gpu,
            trace,
            program_,
            patterns_,
            timing_,
            classes_,
            occupancy.blocks_per_sm,
            occupancy.warps_per_block,
            occupancy.l1_bytes};
  }

 private:
  TimedProgram program_;
  CoalescedPatterns patterns_;
  std::vector<PatternTiming> timing_;
  ClassIndex classes_;
};

/// The last blocks that touch so many lines, or all of them, side by side as they are resident.
void touch_l2(const LaunchContext& context, unsigned threads, MemorySystem& memory) {
  Crew crew(threads);
  Footprint footprint(context, crew);
  const std::uint64_t blocks = context.trace.launch.grid.count();
  const auto most = static_cast<std::uint64_t>(kMostHistoryLines / std::max(1.0, footprint.lines_per_block()));
  const std::uint64_t first = blocks - std::min(blocks, std::max<std::uint64_t>(1, most));
  SmRate even;
  even.alone = 1;
  for (int n = 1; n <= context.blocks_per_sm; ++n) even.by_blocks.push_back(n);
  Fluid fluid(std::vector<std::vector<FluidBlock>>(static_cast<std::size_t>(context.gpu.chip.sm_count)), blocks - first,
              context.blocks_per_sm, even, [&](std::uint64_t i) { return FluidBlock{first + i, 1}; });
  std::vector<FluidPart> parts;
  fluid.advance(std::numeric_limits<double>::infinity(), &parts);
  footprint.follow(parts, memory);
}

}  // namespace

CacheHistory::CacheHistory(const GpuModel& gpu)
    : gpu_(&gpu), memory_(std::make_unique<MemorySystem>(gpu, MemorySystem::L2Start::Empty)) {}

void CacheHistory::run(const KernelTrace& trace, const Occupancy& occupancy, unsigned threads) {
  const LaunchTables tables(*gpu_, trace);
  touch_l2(tables.context(*gpu_, trace, occupancy), threads, *memory_);
}

TimingResult simulate(const GpuModel& gpu, const KernelTrace& trace, const Occupancy& occupancy,
                      const SimulateOptions& options, const CacheHistory* before) {
  const LaunchTables tables(gpu, trace);
  const LaunchContext context = tables.context(gpu, trace, occupancy);
  if (options.caches == CacheState::Cold) return replay(context, options, nullptr);
  if (options.caches == CacheState::Sequence) {
    FW_CHECK(before != nullptr, "a launch of a sequence without what ran before it");
    return replay(context, options, &before->memory());
  }
  MemorySystem earlier(gpu, MemorySystem::L2Start::Empty);
  touch_l2(context, options.threads, earlier);
  return replay(context, options, &earlier);
}

}  // namespace forewarp
