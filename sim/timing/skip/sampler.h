// Replays a launch: in full where that is cheap, otherwise in detailed windows spread over it, with what lies between
// passed over as a fluid.
#pragma once

#include "timing/simulate.h"
#include "timing/sm/sm.h"

namespace forewarp {

/// `before`: what launches before this one have left in L2; nullptr: nothing, caches are cold.
TimingResult replay(const LaunchContext&, const SimulateOptions&, const MemorySystem* before);

}  // namespace forewarp
