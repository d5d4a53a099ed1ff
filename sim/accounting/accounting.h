// Sizes of causes by simulating again without them.
#pragma once

#include "accounting/counterfactual.h"
#include "report/prediction.h"
#include "timing/simulate.h"

namespace forewarp {

/// Where a report's causes come from: the counters of the run, or simulations without each as well.
enum class Causes : std::uint8_t { Counted, Simulated };

}  // namespace forewarp

namespace forewarp::accounting {

/// Replaces the accounting of a prediction, which is from the counters of its run, by one from simulations of the same
/// launch without its causes, as far as the effort allows; and the verdict with it. `before` as for simulate().
///
/// Elapsed cycles are divided in this order, each part being what is saved when it is removed from what the parts
/// before it have left (removal in sequence; parts add up to the whole by construction):
/// 1. the launch, as the GPU's numbers say; 2. the tail, from the blocks' stays; 3. faults of the kernel, the one that
/// gains most first;
/// 4. latency; 5. resources together, divided by how much each gains when it is the first and when it is the last to be
/// removed (Shapley's value of two of the orders); 6. issue: what the instructions take at one a cycle, and with
/// latency what is left.
/// Where the effort does not pay for all of them, resources are divided by how busy they are without faults and
/// latency. Where it does not pay for the faults, each simulation has less detail; where that is too little, faults
/// with small bounds are left to the others. Faults come before the resources that they spend: what is wasted is no
/// work of a unit.
void account(const Scene&, const TimingResult&, const SimulateOptions&, const CacheHistory* before, Prediction&);

}  // namespace forewarp::accounting
