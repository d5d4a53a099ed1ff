// Replays a launch's trace on a GPU model.
#pragma once

#include <memory>
#include <optional>

#include "base/effort.h"
#include "hardware/gpu_model.h"
#include "hardware/occupancy.h"
#include "timing/block_record.h"
#include "timing/memory/memory.h"
#include "timing/result.h"
#include "trace/trace.h"

namespace forewarp {

/// What a launch finds in the caches. Cold: nothing, as under a profiler that flushes them. Warm: what the same launch
/// left, as in a profile after a warm-up. Sequence: what the case's launches left, running one after another over and
/// over.
enum class CacheState : std::uint8_t { Cold, Warm, Sequence };
inline constexpr const char* kCacheStateNames[] = {"cold", "warm", "sequence"};
inline const char* cache_state_name(CacheState state) { return kCacheStateNames[static_cast<std::size_t>(state)]; }

struct SimulateOptions {
  CacheState caches = CacheState::Cold;
  Effort effort;      ///< what a launch may cost
  bool full = false;  ///< replay every instruction of every block
  /// Warp instructions from the start on after which it may end, as soon as the interval is as narrow as it is to be.
  std::uint64_t detailed_instructions = 3'000'000;
  std::uint64_t blocks = 0;             ///< the first so many of the grid, with no others after them; 0: all
  unsigned threads = 1;                 ///< threads for the launch; the result does not depend on them
  std::optional<RecordRequest> record;  ///< a block whose warps are watched
};

/// What earlier launches left in L2: their reads and writes, in the order of their waves of blocks, without time. Of a
/// long launch only the end is followed, since that is what stays.
class CacheHistory {
 public:
  explicit CacheHistory(const GpuModel&);
  void run(const KernelTrace&, const Occupancy&, unsigned threads = 1);
  const MemorySystem& memory() const { return *memory_; }

 private:
  const GpuModel* gpu_;
  std::unique_ptr<MemorySystem> memory_;
};

/// `before`: the launches before this one, if the options ask for a sequence.
TimingResult simulate(const GpuModel&, const KernelTrace&, const Occupancy&, const SimulateOptions&,
                      const CacheHistory* before = nullptr);

}  // namespace forewarp
