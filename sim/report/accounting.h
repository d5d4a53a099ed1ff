// From sizes of causes to what a report says of them: evidence, places in the code, findings, the verdict.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>

#include "report/analysis.h"
#include "report/causes.h"

namespace forewarp::report {

struct CauseSizes {
  std::array<double, kCauses> cycles{};
  std::array<std::optional<double>, kCauses> gains{};
  double& operator[](CauseKind kind) { return cycles[static_cast<std::size_t>(kind)]; }
  double operator[](CauseKind kind) const { return cycles[static_cast<std::size_t>(kind)]; }
  const std::optional<double>& gain(CauseKind kind) const { return gains[static_cast<std::size_t>(kind)]; }
  std::optional<double>& gain(CauseKind kind) { return gains[static_cast<std::size_t>(kind)]; }
};

/// Below this part of the elapsed cycles a change is no finding: a simulation of the same launch moves by as much with
/// any change of its timing.
inline constexpr double kNoticeable = 0.01;

/// What memory instructions of the grid do, all together.
struct Traffic {
  std::uint64_t sectors = 0, wavefronts = 0, conflicts = 0;
  std::uint64_t wasted = 0;                               ///< sectors of global memory beyond need, but for atomics
  std::uint64_t atomic_requests = 0, atomic_sectors = 0;  ///< atomics and reductions on global memory
  std::uint64_t local = 0;                                ///< sectors of local memory

  explicit Traffic(const Prediction&);
};

/// 0 of nothing.
inline double part_of(std::uint64_t some, std::uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
}

/// The part of the warps' time that goes to these states.
double stalled_part(const Prediction&, std::initializer_list<Stall>);

/// Of the time from the first block to the last, the mean over SMs of that in which they have none.
double idle_cycles(const GpuModel&, const std::vector<BlockSpan>&);

/// Elapsed cycles that would be saved if blocks kept all SMs as busy to the end as they do while there are blocks left,
/// from the one run.
double tail_cycles(const Inputs&);

/// Sizes of Launch and Tail alone, at most the elapsed cycles.
CauseSizes outside_sizes(const Inputs&);

/// Causes of some size in the order in which they are named: largest first, but Issue comes before others only if it
/// has more than half of the elapsed cycles. It is what the instructions take when nothing else does, and what is lost
/// besides can be mended without executing fewer.
std::vector<CauseKind> named_order(const CauseSizes&, double elapsed);

/// Busy cycles of each resource, of the whole GPU: elapsed cycles if it alone were the limit.
std::array<double, kCauses> demands(const Inputs&, const Prediction&);

/// Sizes from the counters of one run. Launch and tail are counted; of what is left, the resource with the largest
/// demand has that (no run of these instructions can be shorter), and the rest is divided as the warps' waiting is.
CauseSizes counted_sizes(const Inputs&, const Prediction&);

/// Puts them in order, and adds evidence, places and findings.
void describe_causes(const Inputs&, const Prediction&, const CauseSizes&, Accounting&);
/// The same; the sizes must add up to the elapsed cycles.
void fill_accounting(const Inputs&, const Prediction&, const CauseSizes&, Accounting&);

/// The first cause in a sentence.
Bottleneck verdict(const Inputs&, const Accounting&);

}  // namespace forewarp::report
