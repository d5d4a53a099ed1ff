// Event counts of a part of a launch, scaled to the part that was left out.
#pragma once

#include "timing/result.h"

namespace forewarp {

/// a + (b - c) * factor for every event count; b is not earlier than c.
void add_scaled(TimingCounters& a, const TimingCounters& b, const TimingCounters& c, double factor);

}  // namespace forewarp
