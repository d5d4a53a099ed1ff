// Metric values by Nsight Compute name, in the order they were set.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace forewarp {

class MetricSet {
 public:
  using Item = std::pair<std::string, double>;

  /// Adds a metric, or replaces its value in place.
  void set(std::string name, double value);
  /// Sets every metric of `other`.
  void merge(const MetricSet& other);

  std::optional<double> find(std::string_view name) const;
  double get(std::string_view name) const { return find(name).value_or(0); }  ///< 0 if absent
  bool contains(std::string_view name) const { return find(name).has_value(); }

  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool operator==(const MetricSet& other) const { return items_ == other.items_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  std::vector<Item> items_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> index_;
};

}  // namespace forewarp
