// What warps waited for, measured beside predicted: Nsight Compute's
// smsp__average_warps_issue_stalled_<name>_per_issue_active.ratio, without `selected`, which is no wait.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace forewarp {

struct WarpState {
  std::string name;                    ///< long_scoreboard, ...
  double measured = 0, predicted = 0;  ///< warp-cycles an issue
};

struct WarpStates {
  std::vector<WarpState> states;            ///< in ncu's order of names
  std::string measured_top, predicted_top;  ///< empty: nothing was measured
  bool leads = false;                       ///< the measured top is a fifth or more above the next
  bool agrees() const { return measured_top == predicted_top; }
};

/// `pairs`: name of a metric, measured, predicted; others than stalls are passed over.
struct MetricPair {
  std::string name;
  double measured = 0, predicted = 0;
};
WarpStates warp_states(const std::vector<MetricPair>& pairs);

/// Of the launches where ncu's top leads, how many have it on top of the prediction too.
struct TopStallAgreement {
  std::size_t launches = 0, agree = 0;
  double pct() const { return launches == 0 ? 0 : 100.0 * static_cast<double>(agree) / static_cast<double>(launches); }
};
TopStallAgreement agreement(const std::vector<WarpStates>&);

}  // namespace forewarp
