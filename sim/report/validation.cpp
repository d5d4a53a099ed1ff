#include "report/validation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"
#include "report/warp_states.h"

namespace forewarp {

namespace {

using report::fixed;
using report::percent_text;
using report::signed_percent;
using report::Table;

const Prediction* find_prediction(const std::vector<PredictedTrace>& traces, const MeasuredLaunch& m) {
  for (const PredictedTrace& trace : traces) {
    if (trace.stem != m.stem) continue;
    for (const Prediction& p : trace.predictions)
      if (p.case_id == m.case_id && p.launch == m.launch) return &p;
  }
  return nullptr;
}

bool is_percentage(const std::string& name) { return name.find("pct") != std::string::npos; }

/// Exact: equal within the digits that a profile keeps; ratios and percentages have two decimals.
bool is_exact(const std::string& name, const CounterPair& c) {
  const double difference = std::abs(c.predicted - c.measured);
  const bool whole = name.ends_with(".sum");
  return difference <= 1e-6 * std::abs(c.measured) || (!whole && difference <= 0.0051);
}

/// What the card counts at times in launches that should have none. A measured value below ten times this varies by
/// more than a tenth from launch to launch. For DRAM writes on an H200 it is 256 KiB
/// (validation/profiles/h200-sxm/counter_repeats.csv).
double noise_of(const std::string& name) { return name == "dram__bytes_write.sum" ? 262144 : 0; }

std::vector<CounterAccuracy> compare_counters(const std::vector<ValidatedLaunch>& launches) {
  std::map<std::string, std::vector<CounterPair>> by_name;
  for (const ValidatedLaunch& v : launches)
    for (const auto& [name, value] : v.measured->metrics)
      if (const auto predicted = v.predicted->metrics.find(name)) by_name[name].push_back({value, *predicted});
  std::vector<CounterAccuracy> counters;
  for (const auto& [name, pairs] : by_name) {
    CounterAccuracy c;
    c.name = name;
    c.points = is_percentage(name);
    c.launches = pairs.size();
    double difference = 0, sum = 0;
    for (const CounterPair& pair : pairs) {
      difference += std::abs(pair.predicted - pair.measured);
      sum += std::abs(pair.measured);
      const double error =
          c.points ? std::abs(pair.predicted - pair.measured) : error_pct(pair.predicted, pair.measured);
      c.exact += is_exact(name, pair) ? 1 : 0;
      c.mean += error / static_cast<double>(pairs.size());
      c.worst = std::max(c.worst, error);
      const double noise = noise_of(name);
      if (noise > 0 && pair.measured < 10 * noise && pair.predicted < 10 * noise) continue;
      ++c.steady;
      c.steady_mean += error;
    }
    if (c.steady > 0) c.steady_mean /= static_cast<double>(c.steady);
    c.weighted_pct = error_pct(sum + difference, sum);
    counters.push_back(std::move(c));
  }
  return counters;
}

std::vector<ClassAccuracy> compare_classes(const std::vector<ValidatedLaunch>& launches) {
  std::map<std::string, std::vector<double>> errors;
  for (const ValidatedLaunch& v : launches) errors[v.stem.substr(0, v.stem.find('_'))].push_back(v.error);
  std::vector<ClassAccuracy> classes;
  for (auto& [name, list] : errors) classes.push_back({name, summarize(std::move(list))});
  return classes;
}

/// Every class has a line, with or without launches. Launches under 10 microseconds also count in their class.
std::vector<ClassAccuracy> compare_kinds(const std::vector<ValidatedLaunch>& launches) {
  std::array<std::vector<double>, kKernelClasses> errors;
  std::vector<double> brief;
  for (const ValidatedLaunch& v : launches) {
    if (v.measured->kind) errors[static_cast<std::size_t>(*v.measured->kind)].push_back(v.error);
    if (v.measured->time_ns > 0 && v.measured->time_ns < 10000) brief.push_back(v.error);
  }
  std::vector<ClassAccuracy> kinds;
  for (std::size_t i = 0; i < kKernelClasses; ++i)
    kinds.push_back({kernel_class_name(static_cast<KernelClass>(i)), summarize(std::move(errors[i]))});
  kinds.push_back({"under 10 us", summarize(std::move(brief))});
  return kinds;
}

std::vector<std::string> find_violations(const Validation& v) {
  std::vector<std::string> violations;
  const auto limit = [&](const char* what, double value, double most) {
    if (most > 0 && value > most)
      violations.push_back(std::string(what) + " error of the cycles is " + percent_text(value) + ", more than " +
                           percent_text(most));
  };
  limit("mean", v.cycles.mean, v.suite.tolerance.mean_pct);
  limit("90th percentile of the", v.cycles.p90, v.suite.tolerance.p90_pct);
  limit("worst", v.cycles.worst, v.suite.tolerance.worst_pct);
  if (!v.failures.empty())
    violations.push_back(std::to_string(v.failures.size()) + " of the suite could not be compared");
  if (v.launches.empty()) violations.push_back("nothing was compared");
  return violations;
}

std::string label(const MeasuredLaunch& m) {
  return m.launch == 0 ? m.case_id : m.case_id + "#" + std::to_string(m.launch);
}

/// Beyond what a suite allows of any launch, and beyond what it allows of nine in ten.
Tone tone_of(double error, const Tolerance& tolerance) {
  if (tolerance.worst_pct > 0 && error > tolerance.worst_pct) return Tone::Error;
  return tolerance.p90_pct > 0 && error > tolerance.p90_pct ? Tone::Warning : Tone::Plain;
}

std::string launches_table(const Validation& v, Style style) {
  Table t({{"case", Table::Left},
           {"measured", Table::Right},
           {"runs", Table::Right},
           {"predicted", Table::Right},
           {"at MHz", Table::Right},
           {"error", Table::Right},
           {"extrapolated", Table::Left},
           {"bound by", Table::Left}});
  for (const ValidatedLaunch& l : v.launches) {
    const MeasuredLaunch& m = *l.measured;
    t.row({label(m),
           fixed(m.cycles, 0),
           fixed(m.cycles_min, 0) + " - " + fixed(m.cycles_max, 0),
           fixed(l.predicted->cycles(), 0),
           fixed(l.predicted->clock_mhz, 0),
           {signed_percent(l.predicted->cycles(), m.cycles), tone_of(l.error, v.suite.tolerance)},
           l.predicted->coverage.extrapolated ? "yes" : "no",
           cause_title(l.predicted->bottleneck.kind)});
  }
  return t.text("  ", style);
}

/// Fewer launches than this would reveal single ones of a sealed suite.
constexpr std::size_t kLeastShown = 5;

bool is_sealed(const Validation& v) { return v.suite.part == SuitePart::Sealed; }

std::string classes_table(const Validation& v, Style style) {
  Table t({{"kernels", Table::Left},
           {"launches", Table::Right},
           {"mean", Table::Right},
           {"median", Table::Right},
           {"90th percentile", Table::Right},
           {"worst", Table::Right}});
  const auto row = [&](const std::string& name, const ErrorSummary& e) {
    const auto text = [&](double error) { return e.cases == 0 ? "-" : percent_text(error); };
    t.row({name, std::to_string(e.cases), text(e.mean), text(e.median), text(e.p90), text(e.worst)});
  };
  for (const ClassAccuracy& c : v.kinds) row(c.name, c.errors);
  for (const ClassAccuracy& c : v.classes)
    if (!is_sealed(v) || c.errors.cases >= kLeastShown) row(c.name, c.errors);
  row("all", v.cycles);
  return t.text("  ", style);
}

WarpStates states_of(const ValidatedLaunch& l) {
  std::vector<MetricPair> pairs;
  for (const auto& [name, value] : l.measured->metrics)
    if (const auto predicted = l.predicted->metrics.find(name)) pairs.push_back({name, value, *predicted});
  return warp_states(pairs);
}

TopStallAgreement top_stalls(const Validation& v) {
  std::vector<WarpStates> all;
  for (const ValidatedLaunch& l : v.launches) all.push_back(states_of(l));
  return agreement(all);
}

std::string warp_states_table(const Validation& v, Style style) {
  Table t({{"case", Table::Left},
           {"warps wait most for", Table::Left},
           {"measured", Table::Right},
           {"predicted", Table::Right},
           {"predicted top", Table::Left},
           {"leads", Table::Left}});
  for (const ValidatedLaunch& l : v.launches) {
    const WarpStates s = states_of(l);
    if (s.measured_top.empty()) continue;
    const auto top =
        std::find_if(s.states.begin(), s.states.end(), [&](const WarpState& w) { return w.name == s.measured_top; });
    t.row({label(*l.measured), s.measured_top, fixed(top->measured, 2), fixed(top->predicted, 2), s.predicted_top,
           s.leads ? "yes" : "no"});
  }
  const TopStallAgreement a = top_stalls(v);
  return t.text("  ", style) + "  Top state agrees in " + std::to_string(a.agree) + " of " +
         std::to_string(a.launches) + " launches where the measured one leads by a fifth (" + percent_text(a.pct()) +
         ")\n";
}

std::string counters_table(const Validation& v, Style style) {
  Table t({{"counter", Table::Left},
           {"launches", Table::Right},
           {"exact", Table::Right},
           {"mean error", Table::Right},
           {"worst", Table::Right},
           {"of the sum", Table::Right},
           {"steady", Table::Right},
           {"their mean", Table::Right}});
  for (const CounterAccuracy& c : v.counters) {
    const auto text = [&](double error) { return c.points ? fixed(error, 1) + " points" : percent_text(error); };
    t.row({c.name, std::to_string(c.launches), std::to_string(c.exact), text(c.mean), text(c.worst),
           percent_text(c.weighted_pct), std::to_string(c.steady), text(c.steady_mean)});
  }
  return t.text("  ", style);
}

using Json = nlohmann::ordered_json;

Json summary_json(const ErrorSummary& e) {
  return {{"launches", e.cases},
          {"mean_pct", e.mean},
          {"median_pct", e.median},
          {"p90_pct", e.p90},
          {"worst_pct", e.worst}};
}

Json launch_json(const ValidatedLaunch& l) {
  const MeasuredLaunch& m = *l.measured;
  Json j;
  j["id"] = m.case_id;
  j["launch"] = m.launch;
  j["stem"] = l.stem;
  j["kernel"] = l.predicted->kernel;
  if (m.kind) j["kind"] = kernel_class_name(*m.kind);
  j["measured_time_ns"] = m.time_ns;
  j["measured_cycles"] = m.cycles;
  j["measured_cycles_min"] = m.cycles_min;
  j["measured_cycles_max"] = m.cycles_max;
  j["predicted_cycles"] = l.predicted->cycles();
  j["predicted_clock_mhz"] = l.predicted->clock_mhz;
  j["error_pct"] = l.error;
  j["extrapolated"] = l.predicted->coverage.extrapolated;
  j["counters"] = Json::object();
  for (const auto& [name, value] : m.metrics)
    if (const auto predicted = l.predicted->metrics.find(name))
      j["counters"][name] = {{"measured", value}, {"predicted", *predicted}};
  const WarpStates states = states_of(l);
  if (!states.measured_top.empty())
    j["top_stall"] = {{"measured", states.measured_top}, {"predicted", states.predicted_top}, {"leads", states.leads}};
  report::add_launch_json(*l.predicted, j);
  return j;
}

}  // namespace

Validation validate(const Suite& suite, const std::string& gpu, const std::vector<PredictedTrace>& traces,
                    const std::vector<MeasuredLaunch>& measured, std::vector<ValidationFailure> failures) {
  Validation v;
  v.suite = suite;
  v.gpu = gpu;
  v.failures = std::move(failures);
  std::vector<double> errors, predicted_cycles, measured_cycles;
  for (const MeasuredLaunch& m : measured) {
    const Prediction* p = find_prediction(traces, m);
    if (p == nullptr) continue;  // its case failed, or is not in this suite
    const double error = error_pct(p->cycles(), m.cycles);
    v.launches.push_back({m.stem, &m, p, error});
    errors.push_back(error);
    predicted_cycles.push_back(p->cycles());
    measured_cycles.push_back(m.cycles);
  }
  v.counters = compare_counters(v.launches);
  v.classes = compare_classes(v.launches);
  v.kinds = compare_kinds(v.launches);
  v.cycles = summarize(errors);
  v.rank_correlation = rank_correlation(predicted_cycles, measured_cycles);
  v.violations = find_violations(v);
  return v;
}

std::string write_validation_text(const Validation& v, Style style) {
  std::string out =
      style.paint(Tone::Heading, "forewarp " FOREWARP_VERSION "  suite " + v.suite.name + " (" + v.suite.title +
                                     ") on " + v.gpu + ", " + cache_state_name(v.suite.caches) + " caches") +
      "\n\n";
  const auto heading = [&](const char* text) { return style.paint(Tone::Heading, text) + "\n"; };
  if (is_sealed(v))
    out += "Sealed: errors in total only, none of single launches.\n\n";
  else
    out += heading("Elapsed cycles, measured (median and span of the runs) and predicted") + launches_table(v, style) +
           "\n";
  out += heading("Error of the cycles") + classes_table(v, style);
  out += "  Rank correlation of predicted and measured cycles (Spearman): " + fixed(v.rank_correlation, 4) + "\n\n";
  out += heading("Warp states, warp-cycles an issue") + warp_states_table(v, style) + "\n";
  out += heading("Counters") + counters_table(v, style) + "\n";
  for (const ValidationFailure& f : v.failures)
    out += style.paint(Tone::Error, "FAILED") + " " + f.stem + " " + f.case_id + ": " + f.message + "\n";
  for (const std::string& violation : v.violations)
    out += style.paint(Tone::Error, "OUTSIDE TOLERANCE:") + " " + violation + "\n";
  if (v.violations.empty()) out += "Within the suite's tolerance.\n";
  return out;
}

std::string write_validation_json(const Validation& v) {
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  j["gpu"] = v.gpu;
  if (!v.launches.empty()) report::add_changes(v.launches.front().predicted->gpu_changes, j);
  j["suite"] = v.suite.name;
  j["cache"] = cache_state_name(v.suite.caches);
  if (!v.launches.empty()) j["machine"] = report::machine_json(*v.launches.front().predicted);
  j["cases"] = Json::array();
  if (!is_sealed(v))
    for (const ValidatedLaunch& l : v.launches) j["cases"].push_back(launch_json(l));
  j["failures"] = Json::array();
  for (const ValidationFailure& f : v.failures)
    j["failures"].push_back({{"stem", f.stem}, {"id", f.case_id}, {"message", f.message}});
  j["cycles"] = summary_json(v.cycles);
  j["cycles"]["rank_correlation"] = v.rank_correlation;
  j["classes"] = Json::object();
  for (const ClassAccuracy& c : v.classes)
    if (!is_sealed(v) || c.errors.cases >= kLeastShown) j["classes"][c.name] = summary_json(c.errors);
  j["kinds"] = Json::object();
  for (const ClassAccuracy& c : v.kinds)
    if (c.errors.cases > 0) j["kinds"][c.name] = summary_json(c.errors);
  j["counters"] = Json::object();
  for (const CounterAccuracy& c : v.counters)
    j["counters"][c.name] = {{"launches", c.launches},
                             {"exact", c.exact},
                             {c.points ? "mean_points" : "mean_pct", c.mean},
                             {c.points ? "worst_points" : "worst_pct", c.worst},
                             {"of_sum_pct", c.weighted_pct},
                             {"steady_launches", c.steady},
                             {c.points ? "steady_mean_points" : "steady_mean_pct", c.steady_mean}};
  const TopStallAgreement tops = top_stalls(v);
  j["top_stalls"] = {{"launches", tops.launches}, {"agree", tops.agree}, {"agree_pct", tops.pct()}};
  j["violations"] = v.violations;
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace forewarp
