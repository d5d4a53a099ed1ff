// Advice for launches of a compiled kernel.
#pragma once

#include <memory>
#include <vector>

#include "accounting/counterfactual.h"
#include "advise/advice.h"
#include "emulation/emulation.h"
#include "timing/simulate.h"

namespace forewarp::advise {

/// A traced launch of a case.
struct LaunchTask {
  accounting::Scene scene;
  SimulateOptions options;
  const CacheHistory* before = nullptr;  ///< of a sequence
  const Program* program = nullptr;
  const Case* item = nullptr;
  int launch = 0;
  TraceOptions tracing;        ///< to trace it in another shape
  std::uint64_t emulated = 0;  ///< warp instructions of all launches of the case
};

/// Changes of one launch, tried on its trace or, in other shapes, on a new one.
Advice advise_launch(const LaunchTask&, const ForEach&, std::size_t top);

/// Launches of a case that could be one. Empty suggestions where nothing is handed over from one to the next.
/// `launches`: all of the case, in order.
Advice advise_fusion(const std::vector<LaunchTask>& launches, const ForEach&, std::size_t top);

}  // namespace forewarp::advise
