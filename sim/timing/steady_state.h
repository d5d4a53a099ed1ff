// Replays a launch: in full, or until its rate is steady, skipping what would only repeat and simulating the tail.
#pragma once

#include "timing/simulate.h"
#include "timing/sm.h"

namespace forewarp {

TimingResult replay(const LaunchContext&, const SimulateOptions&);

}  // namespace forewarp
