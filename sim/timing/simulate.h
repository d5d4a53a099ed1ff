// Replays a launch's trace on a GPU model.
#pragma once

#include "hardware/gpu_model.h"
#include "hardware/occupancy.h"
#include "timing/result.h"
#include "trace/trace.h"

namespace forewarp {

enum class CacheState : std::uint8_t { Cold, Warm };

struct SimulateOptions {
  CacheState caches = CacheState::Cold;
  bool full = false;                          ///< replay every instruction of every block
  std::uint64_t detailed_instructions = 3'000'000;  ///< budget before extrapolation, warp instructions
};

TimingResult simulate(const GpuModel&, const KernelTrace&, const Occupancy&, const SimulateOptions&);

}  // namespace forewarp
