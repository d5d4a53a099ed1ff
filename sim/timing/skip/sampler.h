// Replays a launch: in full, or in detail for as long as it may take, with the rest at the rate of what was seen.
#pragma once

#include "timing/simulate.h"
#include "timing/sm/sm.h"

namespace forewarp {

/// `before`: what launches before this one have left in L2; nullptr: nothing, caches are cold.
TimingResult replay(const LaunchContext&, const SimulateOptions&, const MemorySystem* before);

}  // namespace forewarp
