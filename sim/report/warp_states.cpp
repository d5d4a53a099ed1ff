#include "report/warp_states.h"

#include <algorithm>
#include <string_view>

namespace forewarp {

namespace {
constexpr std::string_view kPrefix = "smsp__average_warps_issue_stalled_";
constexpr std::string_view kSuffix = "_per_issue_active.ratio";
constexpr double kLead = 1.2;  // a smaller lead may change between two runs
}  // namespace

WarpStates warp_states(const std::vector<MetricPair>& pairs) {
  WarpStates result;
  for (const MetricPair& pair : pairs) {
    if (!pair.name.starts_with(kPrefix) || !pair.name.ends_with(kSuffix)) continue;
    const std::string name = pair.name.substr(kPrefix.size(), pair.name.size() - kPrefix.size() - kSuffix.size());
    if (name != "selected") result.states.push_back({name, pair.measured, pair.predicted});
  }
  if (result.states.size() < 2) return result;
  std::vector<WarpState> sorted = result.states;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const WarpState& a, const WarpState& b) { return a.measured > b.measured; });
  result.measured_top = sorted[0].name;
  result.leads = sorted[0].measured > 0 && sorted[0].measured >= kLead * sorted[1].measured;
  result.predicted_top =
      std::max_element(result.states.begin(), result.states.end(), [](const WarpState& a, const WarpState& b) {
        return a.predicted < b.predicted;
      })->name;
  return result;
}

TopStallAgreement agreement(const std::vector<WarpStates>& launches) {
  TopStallAgreement total;
  for (const WarpStates& states : launches) {
    if (!states.leads) continue;
    ++total.launches;
    total.agree += states.agrees() ? 1 : 0;
  }
  return total;
}

}  // namespace forewarp
