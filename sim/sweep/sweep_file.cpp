#include "sweep/sweep_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace forewarp::sweep {

namespace {

using config::Node;

constexpr std::size_t kMostPoints = 1'000'000;

Setting setting(const std::string& name, const Node& value) {
  Setting s{name, value.string()};
  try {
    s.number = value.number();
  } catch (const InputError&) {  // a text
  }
  if (s.text.starts_with('='))
    throw value.error("is a formula", "give variables their values; formulas stand elsewhere");
  return s;
}

void check_name(const config::Entry& entry) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (entry.key.empty() || (entry.key[0] >= '0' && entry.key[0] <= '9') ||
      !std::all_of(entry.key.begin(), entry.key.end(), fits))
    throw InputError(entry.where, "name " + config::quoted(entry.key) + " is not letters, digits and _",
                     "formulas could not use it");
}

/// {from, to} and one of step, factor and count.
std::vector<Setting> read_range(const std::string& name, const Node& node) {
  std::vector<Setting> values;
  node.read_map([&](config::Map& m) {
    const double from = m.at("from").number(-1e15, 1e15);
    const Node last = m.at("to");
    const double to = last.number(-1e15, 1e15);
    if (to < from) throw last.error("is less than from");
    const auto step = m.find("step"), factor = m.find("factor"), count = m.find("count");
    if (int{step.has_value()} + int{factor.has_value()} + int{count.has_value()} != 1)
      throw node.error("needs one of step, factor and count", "for example {from: 512, to: 4096, factor: 2}");
    const auto add = [&](double value) {
      if (values.size() >= kMostPoints) throw node.error("has more than a million values");
      values.push_back({name, number_text(value), value});
    };
    const double reach = to + 1e-9 * (to - from);  // the last one, whatever sums round to
    if (count) {
      const std::int64_t n = count->integer(2, kMostPoints);
      for (std::int64_t i = 0; i < n; ++i)
        add(i == n - 1 ? to : from + (to - from) * static_cast<double>(i) / static_cast<double>(n - 1));
    } else if (step) {
      const double by = step->number(1e-12, 1e15);
      for (std::int64_t i = 0; from + by * static_cast<double>(i) <= reach; ++i)
        add(from + by * static_cast<double>(i));
    } else {
      const double by = factor->number(1.0001, 1e9);
      if (from <= 0) throw node.error("must begin above 0 to grow by a factor");
      for (double value = from; value <= reach; value *= by) add(value);
    }
  });
  return values;
}

using Choices = std::vector<Point>;  ///< of variables that change together

Choices read_axis(const config::Entry& entry) {
  check_name(entry);
  Choices choices;
  if (entry.value.is_list()) {
    for (const Node& value : entry.value.list(1)) choices.push_back({setting(entry.key, value)});
  } else if (entry.value.is_map()) {
    for (Setting& s : read_range(entry.key, entry.value)) choices.push_back({std::move(s)});
  } else {
    choices.push_back({setting(entry.key, entry.value)});
  }
  return choices;
}

/// [{n: 512, k: 64}, ...], each with the same names.
Choices read_listed(const Node& list) {
  Choices choices;
  for (const Node& one : list.list(1)) {
    Point point;
    for (const config::Entry& entry : one.entries()) {
      check_name(entry);
      point.push_back(setting(entry.key, entry.value));
    }
    if (!choices.empty()) {  // in the order of the first
      Point ordered;
      for (const Setting& s : choices.front())
        for (const Setting& given : point)
          if (given.name == s.name) ordered.push_back(given);
      if (ordered.size() != point.size() || ordered.size() != choices.front().size())
        throw one.error("does not name the variables of the first point", "give each point the same names");
      point = std::move(ordered);
    }
    choices.push_back(std::move(point));
  }
  return choices;
}

std::vector<Point> combine(const std::vector<Choices>& axes, const std::optional<Node>& where, const Node& root) {
  double count = 1;
  for (const Choices& choices : axes) count *= static_cast<double>(choices.size());
  if (count > static_cast<double>(kMostPoints))
    throw root.error("makes more than a million points", "give fewer values");
  std::vector<Point> points{{}};
  for (const Choices& choices : axes) {
    std::vector<Point> longer;
    longer.reserve(points.size() * choices.size());
    for (const Point& point : points) {
      for (const Point& choice : choices) {
        longer.push_back(point);
        longer.back().insert(longer.back().end(), choice.begin(), choice.end());
      }
    }
    points = std::move(longer);
  }
  if (!where) return points;
  const std::string formula = where->string();
  try {
    std::erase_if(points, [&](const Point& point) { return evaluate(formula, point) == 0; });
  } catch (const InputError& e) {
    throw InputError(where->where(), e.what());
  }
  if (points.empty()) throw where->error("leaves no point");
  return points;
}

Objective read_objective(const Node& node, std::map<std::string, SourcePosition>& named) {
  Objective objective;
  if (node.is_scalar()) {
    objective.metric = node.string();
    named.emplace(objective.metric, node.where());
    return objective;
  }
  node.read_map([&](config::Map& m) {
    const auto lowest = m.find("lowest"), highest = m.find("highest");
    if (lowest.has_value() == highest.has_value())
      throw node.error("names no metric", "write the metric alone, {lowest: METRIC} or {highest: METRIC}");
    const Node& metric = lowest ? *lowest : *highest;
    objective = {metric.string(), highest.has_value()};
    named.emplace(objective.metric, metric.where());
  });
  return objective;
}

}  // namespace

SweepFile read_sweep_file(const std::string& path, const std::vector<std::string>& kinds) {
  const Node root = config::read_file(path);
  std::optional<SweepFile> read;
  root.read_map([&](config::Map& m) {
    std::optional<Node> what;
    std::string kind, accepted;
    for (const std::string& one : kinds) {
      accepted += (accepted.empty() ? "" : " or ") + one;
      const auto found = m.find(one);
      if (found && what) throw found->error("stands beside " + kind, "a sweep predicts one of them");
      if (found) what = found, kind = one;
    }
    if (!what) throw root.error("does not say what is predicted", "add " + accepted);
    SweepFile file{.path = path, .kind = kind, .what = *what, .gpu = m.at("gpu")};
    const auto title = m.find("title");
    file.title = title ? title->string() : kind;
    if (const auto set = m.find("set"))
      for (const config::Entry& entry : set->entries()) {
        if (!entry.value.is_scalar()) throw entry.value.error("must be a number or a formula");
        file.set.emplace_back(entry.key, entry.value);
      }
    std::vector<Choices> axes;
    if (const auto listed = m.find("points")) axes.push_back(read_listed(*listed));
    if (const auto vary = m.find("vary"))
      for (const config::Entry& entry : vary->entries()) axes.push_back(read_axis(entry));
    for (const Choices& choices : axes)
      for (const Setting& s : choices.front()) {
        if (std::find(file.variables.begin(), file.variables.end(), s.name) != file.variables.end())
          throw root.error("gives " + config::quoted(s.name) + " values in two places");
        file.variables.push_back(s.name);
      }
    file.points = combine(axes, m.find("where"), root);
    if (const auto derive = m.find("derive"))
      for (const config::Entry& entry : derive->entries()) {
        check_name(entry);
        if (std::find(file.variables.begin(), file.variables.end(), entry.key) != file.variables.end())
          throw InputError(entry.where, config::quoted(entry.key) + " is a variable of the sweep", "name it otherwise");
        file.derive.emplace_back(entry.key, entry.value.string());
        for (const std::string& metric : metrics_in(file.derive.back().second))
          file.named.emplace(metric, entry.value.where());
      }
    if (const auto columns = m.find("columns"))
      for (const Node& column : columns->list()) {
        file.columns.push_back(column.string());
        file.named.emplace(file.columns.back(), column.where());
      }
    const auto best = m.find("best");
    file.best = best ? read_objective(*best, file.named) : Objective{"gpu__time_duration.sum", false};
    if (const auto pareto = m.find("pareto")) {
      const std::vector<Node> two = pareto->list(2, 2);
      file.pareto = {read_objective(two[0], file.named), read_objective(two[1], file.named)};
    }
    if (const auto launch = m.find("launch")) file.launch = static_cast<int>(launch->integer(0, 1'000'000));
    read = std::move(file);
  });
  if (read->variables.empty()) throw root.error("varies nothing", "add `vary` or `points`");
  return *read;
}

}  // namespace forewarp::sweep
