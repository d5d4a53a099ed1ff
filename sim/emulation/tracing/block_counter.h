// Counts what blocks of a launch execute without tracing each, on all threads if their order does not matter.
#pragma once

#include <cstdint>
#include <vector>

#include "emulation/machine/executor.h"
#include "trace/trace.h"

namespace forewarp::emulation {

/// Adds what these blocks (linear indices) of the launch that `trace` is of execute to `totals`; that is the same for
/// any number of threads. Where GlobalMemory::any_order() holds, they run on as many, write nothing, and may throw
/// OrderMatters; else one after another, and each finds what those before it have written.
void count_blocks(const LaunchState& launch, const KernelTrace& trace, const std::vector<std::uint64_t>& blocks,
                  unsigned threads, std::vector<InstructionCount>& totals);

}  // namespace forewarp::emulation
