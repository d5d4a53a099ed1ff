// What a sweep found: metrics by point, the order from best to worst, the Pareto front, and how they are written.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/style.h"
#include "sweep/source.h"
#include "sweep/sweep_file.h"

namespace forewarp::sweep {

struct Row {
  Point point;
  std::vector<std::optional<double>> values;  ///< by Results::columns; none where it failed
  std::optional<double> low, high;            ///< of the elapsed cycles, with 95 % probability
  std::string gpu, bound_by;
  std::vector<std::string> warnings;
  std::string error;
};

struct Results {
  std::string title;
  std::vector<std::string> variables, columns;
  Objective best;
  std::optional<std::pair<Objective, Objective>> pareto;
  std::vector<Row> rows;           ///< in the order of the sweep
  std::vector<std::size_t> order;  ///< best first; rows that failed are not in it
  std::vector<std::size_t> front;  ///< by the first metric of `pareto`
};

/// Settings as a JSON object.
std::string values_json(const Point&);

/// InputError for what the file takes for a metric and is none of these `names` (of families, where they have a
/// <placeholder>), nor made by `derive`.
void check_metrics(const SweepFile&, const std::vector<std::string>& names);

/// InputError for a metric that the results do not have, or that cannot be added up over several launches.
Results make_results(const SweepFile&, const std::vector<Outcome>& outcomes);

/// The `most` best rows, the Pareto front, and what failed.
std::string write_text(const Results&, std::size_t most, Style style = Style());
std::string write_csv(const Results&);
std::string write_json(const Results&);

/// Indices of the points that no other one is better than in both.
std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points, const Objective& first,
                                      const Objective& second);

}  // namespace forewarp::sweep
