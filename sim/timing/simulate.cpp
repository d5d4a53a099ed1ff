#include "timing/simulate.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "timing/gpu/block_dispatcher.h"
#include "timing/skip/block_footprint.h"
#include "timing/skip/sampler.h"

namespace forewarp {
namespace {

// Lines that a launch of the past touches in L2: 30 times as many as an H200's holds, about half a second.
constexpr std::uint64_t kMostHistoryLines = 15'000'000;

/// Passes through the data banks, and what atomics carry.
PatternTiming time_pattern(const GpuModel& gpu, const AccessPattern& pattern, const CoalescedCounts& counts) {
  PatternTiming timing;
  if (pattern.lanes == 0) return timing;
  timing.wavefronts = counts.wavefronts;
  timing.value_bytes = pattern.bytes;
  if (effect_of(pattern).to_lines()) {  // a wavefront brings a line's bytes, or what the GPU's data stage does
    const int bytes = gpu.l1.data_bytes_per_cycle;
    timing.wavefronts = static_cast<decltype(timing.wavefronts)>(
        (counts.wavefronts * static_cast<int>(kLineBytes) + bytes - 1) / bytes);
  }
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
      timing_.push_back(time_pattern(gpu, trace.patterns[p], patterns_.counts(static_cast<std::uint32_t>(p))));
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

/// The last waves that touch so many lines, or all of them, one after another.
void touch_l2(const LaunchContext& context, unsigned threads, MemorySystem& memory) {
  const std::uint64_t blocks = context.trace.launch.grid.count();
  const std::uint64_t wave = std::min(blocks, static_cast<std::uint64_t>(context.gpu.chip.sm_count) *
                                                  static_cast<std::uint64_t>(context.blocks_per_sm));
  // Later waves are taken to follow the first.
  std::vector<std::uint16_t> sms;
  BlockDispatcher dispatcher(context.gpu, blocks, context.blocks_per_sm);
  for (Cycle now = 0; sms.size() < wave; now = dispatcher.wake(now)) {
    FW_CHECK(now != kNever, "a wave of blocks that does not fit the GPU");
    for (BlockDispatcher::Grant grant = dispatcher.next(now); grant.sm >= 0; grant = dispatcher.next(now))
      sms.push_back(static_cast<std::uint16_t>(grant.sm));
  }
  Crew crew(threads);
  BlockFootprint footprint(context, crew);
  const std::uint64_t by_wave = std::max<std::uint64_t>(1, footprint.lines_per_block() * wave);
  const std::uint64_t waves = std::max<std::uint64_t>(1, kMostHistoryLines / by_wave);
  const std::uint64_t all = (blocks + wave - 1) / wave, first = all > waves ? (all - waves) * wave : 0;
  std::vector<RestPart> parts;
  for (std::uint64_t block = first; block < blocks; ++block) {
    const auto at = static_cast<double>(block / wave);
    parts.push_back({block, 0, 1, at, at + 1, sms[block % wave]});
  }
  footprint.follow(parts, {kMostHistoryLines, kMostHistoryLines, kMostHistoryLines, 0}, memory);
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
