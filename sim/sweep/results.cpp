#include "sweep/results.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "report/table.h"
#include "sweep/expression.h"

namespace forewarp::sweep {

namespace {

using Json = nlohmann::ordered_json;
using report::Table;

bool ends_with(const std::string& text, const char* end) { return text.ends_with(end); }

/// Totals and times of launches one after another add up; ratios and percentages do not.
bool adds_up(const std::string& metric) { return ends_with(metric, ".sum") || metric == "gpc__cycles_elapsed.max"; }

SourcePosition place_of(const SweepFile& file, const std::string& name) {
  const auto named = file.named.find(name);
  return named == file.named.end() ? SourcePosition{file.path} : named->second;
}

/// `names`: the metrics there are.
InputError no_metric(const SweepFile& file, const std::string& name, std::vector<std::string> names) {
  for (const auto& [derived, formula] : file.derive) names.push_back(derived);
  const std::string near = config::nearest(name, names);
  return {place_of(file, name),
          "there is no metric " + config::quoted(name) +
              (near.empty() ? "" : "; did you mean " + config::quoted(near) + "?"),
          "`forewarp describe metrics` lists them; `derive` makes others"};
}

/// The metrics of one point.
class Metrics {
 public:
  Metrics(const Json& launches, const std::optional<int>& launch, const SweepFile& file)
      : launches_(launches), launch_(launch), file_(file) {
    if (launch && *launch >= static_cast<int>(launches.size()))
      throw InputError({file.path}, "there is no launch " + std::to_string(*launch),
                       "the case has " + std::to_string(launches.size()) + ", the first is 0");
  }

  double get(const std::string& name) const {
    if (launch_ || launches_.size() == 1) return of(launches_[static_cast<std::size_t>(launch_.value_or(0))], name);
    if (!adds_up(name))
      throw InputError(place_of(file_, name),
                       "metric " + config::quoted(name) + " does not add up over several launches",
                       "choose one of them by `launch: 0`, or a metric that ends in .sum");
    double sum = 0;
    for (const Json& one : launches_) sum += of(one, name);
    return sum;
  }

 private:
  double of(const Json& launch, const std::string& name) const {
    const Json& metrics = launch.at("metrics");
    const auto found = metrics.find(name);
    if (found != metrics.end()) return found->get<double>();
    std::vector<std::string> names;
    for (const auto& [known, value] : metrics.items()) names.push_back(known);
    throw no_metric(file_, name, std::move(names));
  }

  const Json& launches_;
  const std::optional<int>& launch_;
  const SweepFile& file_;
};

void read_row(const SweepFile& file, const Outcome& outcome, const std::vector<std::string>& columns, Row& row) {
  row.error = outcome.error;
  row.values.resize(columns.size());
  if (!row.error.empty()) return;
  const Json launches = Json::parse(outcome.result);
  const Metrics metrics(launches, file.launch, file);
  Point known = row.point;
  for (const auto& [name, formula] : file.derive) {
    Point with = known;
    for (const std::string& metric : metrics_in(formula)) with.push_back({metric, "", metrics.get(metric)});
    try {
      const double value = evaluate(formula, with);
      known.push_back({name, number_text(value), value});
    } catch (const InputError& e) {
      throw InputError({file.path}, "derive " + name + ": " + e.what());
    }
  }
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto derived =
        std::find_if(known.begin(), known.end(), [&](const Setting& s) { return s.name == columns[c]; });
    row.values[c] = derived != known.end() && derived->number ? *derived->number : metrics.get(columns[c]);
  }
  double low = 0, high = 0, longest = -1;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (file.launch && static_cast<int>(i) != *file.launch) continue;
    const Json& one = launches[i];
    low += one.at("cycles_interval_95").at(0).get<double>();
    high += one.at("cycles_interval_95").at(1).get<double>();
    const double time = one.at("metrics").at("gpu__time_duration.sum").get<double>();
    if (time > longest) longest = time, row.bound_by = one.at("bound_by").get<std::string>();
    row.gpu = one.at("gpu").get<std::string>();
    for (const Json& warning : one.at("warnings")) {
      const auto text = warning.get<std::string>();
      if (std::find(row.warnings.begin(), row.warnings.end(), text) == row.warnings.end()) row.warnings.push_back(text);
    }
  }
  row.low = low, row.high = high;
}

std::size_t column_of(const Results& results, const std::string& metric) {
  const auto found = std::find(results.columns.begin(), results.columns.end(), metric);
  FW_CHECK(found != results.columns.end(), metric);
  return static_cast<std::size_t>(found - results.columns.begin());
}

std::string shown(double value) {
  char text[40];
  std::snprintf(text, sizeof text, std::abs(value) >= 1e5 && std::abs(value) < 1e15 ? "%.0f" : "%.6g", value);
  return text;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? std::string("\"\"") : c == '\n' ? std::string(" ") : std::string(1, c);
  return cell + "\"";
}

Table table_of(const Results& results, bool ranked) {
  std::vector<Table::Column> columns;
  if (ranked) columns.push_back({"", Table::Right});
  for (std::size_t v = 0; v < results.variables.size(); ++v) {
    const bool numbers = std::all_of(results.rows.begin(), results.rows.end(),
                                     [&](const Row& r) { return r.point[v].number.has_value(); });
    columns.push_back({results.variables[v], numbers ? Table::Right : Table::Left});
  }
  for (const std::string& metric : results.columns) columns.push_back({metric, Table::Right});
  columns.push_back({"bound by", Table::Left});
  return Table(std::move(columns));
}

std::vector<Table::Cell> cells(const Row& row) {
  std::vector<Table::Cell> all;
  for (const Setting& s : row.point) all.emplace_back(s.text);
  for (const auto& value : row.values) all.emplace_back(value ? shown(*value) : "-");
  all.emplace_back(row.bound_by, Tone::Verdict);
  return all;
}

Json objective_json(const Objective& o) { return {{"metric", o.metric}, {"best", o.highest ? "highest" : "lowest"}}; }

}  // namespace

std::string values_json(const Point& point) {
  Json j = Json::object();
  for (const Setting& s : point) j[s.name] = s.number ? Json::parse(number_text(*s.number)) : Json(s.text);
  return j.dump();
}

std::vector<std::size_t> pareto_front(const std::vector<std::pair<double, double>>& points, const Objective& first,
                                      const Objective& second) {
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (points[a].first != points[b].first) return first.better(points[a].first, points[b].first);
    return second.better(points[a].second, points[b].second);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const bool equal = !front.empty() && points[front.back()] == points[i];
    if (front.empty() || equal || second.better(points[i].second, points[front.back()].second)) front.push_back(i);
  }
  return front;
}

namespace {

/// Whether a name is one of a family, which is written with a <placeholder>, or alone in it.
bool fits(const std::string& name, const std::string& family) {
  const std::size_t from = family.find('<'), to = family.find('>');
  if (from == std::string::npos || to == std::string::npos) return name == family;
  const std::string tail = family.substr(to + 1, family.find(',', to) - to - 1);
  return name.size() > from + tail.size() && name.starts_with(family.substr(0, from)) && name.ends_with(tail);
}

}  // namespace

void check_metrics(const SweepFile& file, const std::vector<std::string>& names) {
  const auto is_metric = [&](const std::string& name) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& known) { return fits(name, known); });
  };
  const auto check_column = [&](const std::string& name) {
    const auto called = [&](const auto& derived) { return derived.first == name; };
    if (is_metric(name) || std::any_of(file.derive.begin(), file.derive.end(), called)) return;
    if (std::find(file.variables.begin(), file.variables.end(), name) == file.variables.end())
      throw no_metric(file, name, names);
  };
  check_column(file.best.metric);
  if (file.pareto) check_column(file.pareto->first.metric), check_column(file.pareto->second.metric);
  for (const std::string& column : file.columns) check_column(column);
  for (const auto& [derived, formula] : file.derive)
    for (const std::string& name : metrics_in(formula))
      if (!is_metric(name)) throw no_metric(file, name, names);
}

Results make_results(const SweepFile& file, const std::vector<Outcome>& outcomes) {
  FW_CHECK(outcomes.size() == file.points.size(), "a result for every point");
  Results results;
  results.title = file.title, results.variables = file.variables;
  results.best = file.best, results.pareto = file.pareto;
  const auto add = [&](const std::string& metric) {
    if (std::find(results.columns.begin(), results.columns.end(), metric) == results.columns.end())
      results.columns.push_back(metric);
  };
  add(file.best.metric);
  if (file.pareto) add(file.pareto->first.metric), add(file.pareto->second.metric);
  for (const auto& [name, formula] : file.derive) add(name);
  for (const std::string& column : file.columns) add(column);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Row& row = results.rows.emplace_back();
    row.point = file.points[i];
    read_row(file, outcomes[i], results.columns, row);
    if (row.error.empty()) results.order.push_back(i);
  }
  const auto value = [&](std::size_t row, std::size_t column) { return *results.rows[row].values[column]; };
  const std::size_t best = column_of(results, file.best.metric);
  std::stable_sort(results.order.begin(), results.order.end(),
                   [&](std::size_t a, std::size_t b) { return file.best.better(value(a, best), value(b, best)); });
  if (file.pareto) {
    const std::size_t x = column_of(results, file.pareto->first.metric);
    const std::size_t y = column_of(results, file.pareto->second.metric);
    std::vector<std::size_t> computed;
    std::vector<std::pair<double, double>> pairs;
    for (std::size_t i = 0; i < results.rows.size(); ++i) {
      if (!results.rows[i].error.empty()) continue;
      computed.push_back(i);
      pairs.emplace_back(value(i, x), value(i, y));
    }
    for (const std::size_t i : pareto_front(pairs, file.pareto->first, file.pareto->second))
      results.front.push_back(computed[i]);
  }
  return results;
}

std::string write_text(const Results& results, std::size_t most, Style style) {
  const std::size_t all = results.rows.size(), failed = all - results.order.size();
  std::string text = style.paint(Tone::Heading, results.title + ":") + " " + std::to_string(all) + " points, " +
                     (results.best.highest ? "highest " : "lowest ") + results.best.metric + " first\n";
  Table table = table_of(results, true);
  for (std::size_t i = 0; i < std::min(most, results.order.size()); ++i) {
    std::vector<Table::Cell> row = cells(results.rows[results.order[i]]);
    row.insert(row.begin(), std::to_string(i + 1));
    table.row(std::move(row));
  }
  text += table.text("  ", style);
  if (most < results.order.size())
    text += "  " +
            style.paint(Tone::Dim, "... " + std::to_string(results.order.size() - most) +
                                       " more; --top shows them, --csv and --json all") +
            "\n";
  if (results.pareto) {
    text += "\n" + style.paint(Tone::Heading, "Pareto front:") + " no point is better than these in both " +
            results.pareto->first.metric + " and " + results.pareto->second.metric + "\n";
    Table front = table_of(results, false);
    for (const std::size_t i : results.front) front.row(cells(results.rows[i]));
    text += front.text("  ", style);
  }
  if (failed > 0) {
    text += "\n" +
            style.paint(Tone::Error,
                        std::to_string(failed) + " of " + std::to_string(all) + " points could not be predicted") +
            "\n";
    std::size_t listed = 0;
    for (const Row& row : results.rows) {
      if (row.error.empty()) continue;
      if (++listed > 5) break;
      text += "  " + point_text(row.point) + ": " + first_line(row.error) + "\n";
    }
  }
  return text;
}

std::string write_csv(const Results& results) {
  std::string text;
  for (const std::string& name : results.variables) text += csv_cell(name) + ",";
  for (const std::string& name : results.columns) text += csv_cell(name) + ",";
  text += "cycles_low_95,cycles_high_95,bound_by,error\n";
  for (const Row& row : results.rows) {
    for (const Setting& s : row.point) text += csv_cell(s.text) + ",";
    for (const auto& value : row.values) text += (value ? number_text(*value) : "") + ",";
    text += (row.low ? number_text(*row.low) : "") + "," + (row.high ? number_text(*row.high) : "") + ",";
    text += csv_cell(row.bound_by) + "," + csv_cell(first_line(row.error)) + "\n";
  }
  return text;
}

std::string write_json(const Results& results) {
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  Json& s = j["sweep"];
  s["title"] = results.title;
  s["gpus"] = Json::array();
  for (const Row& row : results.rows)
    if (!row.gpu.empty() && std::find(s["gpus"].begin(), s["gpus"].end(), Json(row.gpu)) == s["gpus"].end())
      s["gpus"].push_back(row.gpu);
  s["variables"] = results.variables;
  s["columns"] = results.columns;
  s["best"] = objective_json(results.best);
  if (results.pareto) s["pareto"] = {objective_json(results.pareto->first), objective_json(results.pareto->second)};
  s["rows"] = Json::array();
  for (const Row& row : results.rows) {
    Json r;
    r["values"] = Json::parse(values_json(row.point));
    if (!row.error.empty()) {
      r["error"] = row.error;
    } else {
      r["metrics"] = Json::object();
      for (std::size_t c = 0; c < results.columns.size(); ++c) r["metrics"][results.columns[c]] = *row.values[c];
      r["cycles_interval_95"] = {*row.low, *row.high};
      r["bound_by"] = row.bound_by;
      if (!row.warnings.empty()) r["warnings"] = row.warnings;
    }
    s["rows"].push_back(std::move(r));
  }
  s["order"] = results.order;
  if (results.pareto) s["front"] = results.front;
  return j.dump(1) + "\n";
}

}  // namespace forewarp::sweep
