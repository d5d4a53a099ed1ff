#include "report/calibration.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "config/config.h"
#include "report/accuracy.h"
#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"

namespace forewarp {

namespace {

using report::fixed;
using report::percent_text;
using report::Table;

constexpr double kLeastResponse = 0.002;  // of the quantity, for a leaf's whole step: less counts as independent
constexpr double kFarthest = 3;           // factor of the leaf, up or down, over which a slope is trusted

Quantity read_quantity(const config::Node& node) {
  Quantity q;
  node.read_map([&](config::Map& m) {
    q.id = m.at("id").string();
    q.stem = m.at("stem").string();
    if (const auto n = m.find("low")) q.low = n->string();
    q.high = m.at("high").string();
    q.divisor = m.at("divisor").number(1e-9, 1e15);
    q.unit = m.at("unit").string();
    q.metric = m.at("metric").string();
    q.rate = m.at("rate").boolean();
    for (const config::Node& leaf : m.at("leaves").list()) q.leaves.push_back(leaf.string());
  });
  return q;
}

/// Five digits, as many as measurements have.
std::string digits(double value) {
  if (value == 0) return "0";
  const int before = static_cast<int>(std::floor(std::log10(std::abs(value)))) + 1;
  return fixed(value, std::clamp(4 - before, 0, 4));
}

std::string signed_percent(double value) { return (value >= 0 ? "+" : "") + percent_text(value); }

/// As GPU files write a number: whole if it is whole now.
std::string leaf_text(const Leaf& leaf, double value) {
  const bool whole = leaf.value.find_first_of(".e") == std::string::npos;
  return whole ? fixed(std::round(value), 0) : digits(value);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string short_stem(const std::string& stem) { return stem.starts_with("micro_") ? stem.substr(6) : stem; }

/// The quantities of one unit.
std::string unit_table(const std::vector<CalibratedQuantity>& all, const std::string& stem,
                       const std::map<std::string, std::string>& values, Style style) {
  Table t({{"quantity", Table::Left},
           {"measured", Table::Right},
           {"+-", Table::Right},
           {"simulated", Table::Right},
           {"error", Table::Right},
           {"unit", Table::Left},
           {"leaves", Table::Left}});
  std::vector<double> errors;
  for (const CalibratedQuantity& c : all) {
    if (c.quantity.stem != stem) continue;
    std::string leaves;
    for (const std::string& leaf : c.quantity.leaves) {
      const auto value = values.find(leaf);
      leaves += (leaves.empty() ? "" : " ") + leaf + "=" + (value == values.end() ? "?" : value->second);
    }
    t.row({c.quantity.id, digits(c.measured.value), digits(c.measured.spread), digits(c.simulated.value),
           signed_percent(c.error_pct), c.quantity.unit, leaves});
    errors.push_back(std::abs(c.error_pct));
  }
  const ErrorSummary e = summarize(errors);
  return style.paint(Tone::Heading, short_stem(stem) + ":") + " " + std::to_string(e.cases) +
         " quantities, mean error " + percent_text(e.mean) + ", median " + percent_text(e.median) + ", worst " +
         percent_text(e.worst) + "\n" + t.text("  ", style) + "\n";
}

/// Every leaf that quantities ask to change: the line for the GPU file, and how many agree.
std::string proposals_text(const std::vector<CalibratedQuantity>& all) {
  struct Asked {
    Leaf leaf;
    std::vector<double> values;
    const CalibratedQuantity* strongest = nullptr;
    double response = 0;
  };
  std::map<std::string, Asked> by_leaf;
  for (const CalibratedQuantity& c : all)
    for (const LeafProposal& p : c.proposals) {
      Asked& a = by_leaf[p.leaf.path];
      a.leaf = p.leaf;
      a.values.push_back(p.proposed);
      if (a.strongest != nullptr && std::abs(p.response) <= a.response) continue;
      a.strongest = &c;
      a.response = std::abs(p.response);
    }
  std::string out;
  for (const auto& [path, a] : by_leaf) {
    const auto named = std::count_if(all.begin(), all.end(), [&](const CalibratedQuantity& c) {
      return std::find(c.quantity.leaves.begin(), c.quantity.leaves.end(), path) != c.quantity.leaves.end();
    });
    const auto [least, most] = std::minmax_element(a.values.begin(), a.values.end());
    const Quantity& q = a.strongest->quantity;
    out += "  " + path + ": {value: " + leaf_text(a.leaf, median(a.values)) + ", unit: " + a.leaf.unit +
           ", source: measured, ref: \"kernels/micro " + short_stem(q.stem) + ": " + q.id + " " +
           digits(a.strongest->measured.value) + " " + q.unit + "\"}\n";
    out += "    now " + a.leaf.value + " (" + provenance_text(a.leaf.source) + "); " + std::to_string(a.values.size()) +
           " of " + std::to_string(named) + " quantities ask for " + leaf_text(a.leaf, *least) +
           (a.values.size() > 1 ? " to " + leaf_text(a.leaf, *most) : "") + "\n";
  }
  return out.empty() ? "  none\n" : out;
}

}  // namespace

std::vector<Quantity> read_quantities(const std::string& path) {
  std::vector<Quantity> quantities;
  for (const config::Node& node : config::read_file(path).list(1)) quantities.push_back(read_quantity(node));
  return quantities;
}

std::optional<Slope> slope_of(const Quantity& q, const CaseValue& low, const CaseValue& high) {
  const auto of = [&](double difference) -> std::optional<double> {
    if (difference <= 0) return std::nullopt;
    return q.rate ? q.divisor / difference : difference / q.divisor;
  };
  const auto middle = of(high.value - low.value);
  if (!middle) return std::nullopt;
  const auto least = of(high.least - low.most), most = of(high.most - low.least);
  return Slope{*middle, least && most ? std::abs(*most - *least) / 2 : std::abs(*middle)};
}

std::optional<double> propose(double now, double other, double measured, double simulated, double simulated_other) {
  const double change = simulated_other - simulated;
  if (std::abs(change) < kLeastResponse * std::abs(simulated)) return std::nullopt;
  const double proposed = now + (measured - simulated) / change * (other - now);
  const double room = std::max(std::abs(now), std::abs(other - now));
  if (proposed < 0 || proposed > now + kFarthest * room) return std::nullopt;
  return proposed;
}

std::string write_calibration_text(const std::string& gpu, const std::vector<CalibratedQuantity>& all,
                                   const std::vector<LeftOut>& left_out, const std::vector<Leaf>& leaves, Style style) {
  std::string out =
      style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  calibration of " + gpu + ", cold caches") + "\n\n";
  std::map<std::string, std::string> values;
  for (const Leaf& leaf : leaves) values[leaf.path] = leaf.value;
  std::vector<std::string> stems;
  std::vector<double> errors;
  for (const CalibratedQuantity& c : all) {
    if (std::find(stems.begin(), stems.end(), c.quantity.stem) == stems.end()) stems.push_back(c.quantity.stem);
    errors.push_back(std::abs(c.error_pct));
  }
  for (const std::string& stem : stems) out += unit_table(all, stem, values, style);
  const ErrorSummary e = summarize(errors);
  const auto close = std::count_if(all.begin(), all.end(), [](const CalibratedQuantity& c) { return c.within_spread; });
  out += style.paint(Tone::Heading, "All units:") + " " + std::to_string(e.cases) + " quantities, mean error " +
         percent_text(e.mean) + ", median " + percent_text(e.median) + ", 90th percentile " + percent_text(e.p90) +
         ", worst " + percent_text(e.worst) + "; " + std::to_string(close) + " within the spread of the runs\n";
  std::map<std::string, std::vector<std::string>> reasons;
  for (const LeftOut& one : left_out) reasons[one.why].push_back(one.id);
  for (const auto& [why, ids] : reasons) {
    out += "Left out: " + std::to_string(ids.size()) + (ids.size() == 1 ? " quantity, " : " quantities, ") + why +
           ": " + ids.front();
    if (ids.size() > 1) out += " ... " + ids.back();
    out += "\n";
  }
  out += "\n";
  return out +
         "Proposed, each leaf by itself with all others as they are; a proposal stands for the unit it was measured "
         "on,\nand several leaves that ask for the same quantity are alternatives\n" +
         proposals_text(all);
}

std::string write_calibration_json(const std::string& gpu, const std::vector<std::string>& changes,
                                   const std::vector<CalibratedQuantity>& all, const std::vector<LeftOut>& left_out) {
  using Json = nlohmann::ordered_json;
  Json j{{"forewarp", FOREWARP_VERSION}, {"gpu", gpu}};
  report::add_changes(changes, j);
  j["quantities"] = Json::array();
  for (const CalibratedQuantity& c : all) {
    Json q{{"id", c.quantity.id},          {"stem", c.quantity.stem},     {"unit", c.quantity.unit},
           {"measured", c.measured.value}, {"spread", c.measured.spread}, {"simulated", c.simulated.value},
           {"error_pct", c.error_pct},     {"leaves", c.quantity.leaves}, {"proposals", Json::array()}};
    for (const LeafProposal& p : c.proposals)
      q["proposals"].push_back({{"leaf", p.leaf.path},
                                {"unit", p.leaf.unit},
                                {"source", provenance_text(p.leaf.source)},
                                {"now", p.now},
                                {"proposed", p.proposed},
                                {"response", p.response}});
    j["quantities"].push_back(std::move(q));
  }
  j["left_out"] = Json::array();
  for (const LeftOut& one : left_out) j["left_out"].push_back({{"id", one.id}, {"why", one.why}});
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp
