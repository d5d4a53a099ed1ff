#include "counters/metric_set.h"

namespace forewarp {

void MetricSet::set(std::string name, double value) {
  const auto [place, added] = index_.try_emplace(name, items_.size());
  if (added)
    items_.emplace_back(std::move(name), value);
  else
    items_[place->second].second = value;
}

void MetricSet::merge(const MetricSet& other) {
  for (const auto& [name, value] : other) set(name, value);
}

std::optional<double> MetricSet::find(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) return std::nullopt;
  return items_[found->second].second;
}

}  // namespace forewarp
