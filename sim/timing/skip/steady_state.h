// Replays a launch: in full, or until its rate is steady, skipping what would only repeat and simulating the tail.
#pragma once

#include "timing/simulate.h"
#include "timing/sm/sm.h"

namespace forewarp {

/// `before`: what launches before this one have left in L2; nullptr: nothing, caches are cold.
TimingResult replay(const LaunchContext&, const SimulateOptions&, const MemorySystem* before);

}  // namespace forewarp
