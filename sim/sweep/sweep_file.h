// A sweep file (docs/sweep.md): what is predicted, over which values, and how the results are ordered.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "sweep/expression.h"

namespace forewarp::sweep {

/// A metric, or a name of `derive`, and which way is better.
struct Objective {
  std::string metric;
  bool highest = false;
  bool better(double a, double b) const { return highest ? a > b : a < b; }
};

struct SweepFile {
  std::string path, title = {};
  std::string kind;                                              ///< key of what is predicted: "kernel"
  config::Node what;                                             ///< what stands behind it, for the source of that kind
  config::Node gpu;                                              ///< text or =formula
  std::vector<std::pair<std::string, config::Node>> set = {};    ///< leaves of the GPU's model
  std::vector<std::string> variables = {};                       ///< in the order of the file
  std::vector<Point> points = {};                                ///< in order: the last variable changes fastest
  std::vector<std::pair<std::string, std::string>> derive = {};  ///< name and formula of metrics and variables
  std::vector<std::string> columns = {};                         ///< metrics of the table, besides those below
  Objective best = {};
  std::optional<std::pair<Objective, Objective>> pareto = {};
  std::map<std::string, SourcePosition> named = {};  ///< metrics of these, and where each is named first
  std::optional<int> launch = {};  ///< of a case with several: the one whose metrics count; else their sums
};

/// `kinds`: what may be predicted. InputError with file, line and column.
SweepFile read_sweep_file(const std::string& path, const std::vector<std::string>& kinds);

}  // namespace forewarp::sweep
