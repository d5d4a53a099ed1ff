// The resources of a GPU, and which leaves of its model say how much of each there is. Each can be halved and doubled
// by itself, with what the schema ties to it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp::sweep {

/// What makes a model with more or less of a resource, or why there is none.
struct Variant {
  std::vector<std::string> changes;  ///< LEAF=VALUE, for load_gpu_model
  std::string impossible;            ///< empty: it is possible
};

struct Resource {
  const char* name;
  bool more_is_better;  ///< of latencies, less is
  bool everything;      ///< it stands for many others at once, so it is not what a kernel is bound by
  Variant (*scaled)(const GpuModel&, double factor);
};

/// In a fixed order.
const std::vector<Resource>& resources();

}  // namespace forewarp::sweep
