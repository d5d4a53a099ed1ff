// Warp stalls, measured and predicted: Nsight Compute's
// smsp__average_warps_issue_stalled_<name>_per_issue_active.ratio, without `selected`, which is not a stall.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace forewarp {

struct WarpState {
  std::string name;                    ///< long_scoreboard, ...
  double measured = 0, predicted = 0;  ///< warp-cycles per issue
};

struct WarpStates {
  std::vector<WarpState> states;            ///< in ncu's order of names
  std::string measured_top, predicted_top;  ///< empty if nothing was measured
  bool leads = false;                       ///< the measured top exceeds the next by a fifth or more
  bool agrees() const { return measured_top == predicted_top; }
};

/// `pairs`: metric name, measured, predicted; anything but stalls is ignored.
struct MetricPair {
  std::string name;
  double measured = 0, predicted = 0;
};
WarpStates warp_states(const std::vector<MetricPair>& pairs);

/// In how many of the launches whose measured top leads the prediction has the same top.
struct TopStallAgreement {
  std::size_t launches = 0, agree = 0;
  double pct() const { return launches == 0 ? 0 : 100.0 * static_cast<double>(agree) / static_cast<double>(launches); }
};
TopStallAgreement agreement(const std::vector<WarpStates>&);

}  // namespace forewarp
