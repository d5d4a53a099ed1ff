// A GPU whose power keeps its SMs below the clock of its model, as products of matrices do. L2, the crossbar and device
// memory keep their clocks, so in SM cycles their rates rise and their latencies fall (measured on an H200: SMs at 1.44
// to 1.98 GHz, L2 at 1.70 to 1.71, memory at 3.20).
#pragma once

#include <string>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp {

/// What changes of the model, as load_gpu_model() takes it. What belongs to an SM, its port included, counts its cycles
/// as ever.
std::vector<std::string> at_sm_clock(const GpuModel&, double mhz);

}  // namespace forewarp
