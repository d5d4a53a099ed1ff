// forewarp calibrate: the calibration kernels, measured and simulated, and what would make them agree.
#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/places.h"
#include "cli/workers.h"
#include "report/calibration.h"
#include "report/profile.h"

namespace forewarp::cli {

namespace {

constexpr double kStep = 0.05;  // of a leaf, to see what a quantity makes of it; at least 1 where the leaf is whole

CommandLine make_command_line() {
  CommandLine c(
      "calibrate [--unit NAME]... [options]",
      "Simulates the calibration kernels (kernels/micro) and puts every quantity they isolate beside its\n"
      "measured value, by unit. For a quantity that is off by more than the tolerance and more than the runs\n"
      "vary, it tries which of the leaves named with it would make up for the difference, and proposes their\n"
      "values with their source. The ladders and the other kernels of the suites are never looked at.",
      {"forewarp calibrate", "forewarp calibrate --unit branch --unit barrier --tolerance 3"});
  namespace po = boost::program_options;
  c.model()("unit", po::value<std::vector<std::string>>()->value_name("NAME"),
            "only this unit (issue, branch, shared, l1, l2, dram, ...); may be repeated");
  c.model()("gpu", po::value<std::string>()->value_name("NAME|FILE")->default_value("h200-sxm"),
            "GPU model that is calibrated");
  c.add_set();
  c.model()("measured", po::value<std::string>()->value_name("NAME")->default_value("h200-sxm"),
            "GPU whose profiles are compared with");
  c.model()("tolerance", po::value<double>()->value_name("PERCENT")->default_value(5),
            "error beyond which a quantity asks for other values");
  c.model()("no-proposals", "only compare");
  c.add_json();
  c.add_threads();
  c.add_cache();
  return c;
}

class Calibration {
 public:
  Calibration(std::string gpu, std::vector<std::string> changes, unsigned threads, std::optional<PredictionCache> cache)
      : gpu_(std::move(gpu)),
        changes_(std::move(changes)),
        model_(load_gpu_model(gpu_, changes_)),
        leaves_(describe_gpu(gpu_, changes_)),
        threads_(threads),
        cache_(std::move(cache)) {}

  const std::vector<Leaf>& leaves() const { return leaves_; }
  /// By compare().
  const std::vector<LeftOut>& left_out() const { return left_out_; }

  /// Quantities that were measured, with what is simulated for them.
  std::vector<CalibratedQuantity> compare(const std::vector<Quantity>& quantities, const std::string& measured_gpu) {
    const std::filesystem::path folder = std::filesystem::path(profile_file(measured_gpu, "")).parent_path();
    if (!std::filesystem::is_directory(folder)) {
      std::set<std::string> known;
      for (const auto& entry : std::filesystem::directory_iterator(folder.parent_path()))
        if (entry.is_directory()) known.insert(entry.path().filename().string());
      std::string names;
      for (const std::string& name : known) names += (names.empty() ? "" : ", ") + name;
      throw InputError("there are no profiles of '" + measured_gpu + "'", "GPUs with profiles: " + names);
    }
    std::vector<CalibratedQuantity> result;
    for (const Quantity& q : quantities) {
      if (const auto measured = measured_slope(q, measured_gpu))
        result.push_back({q, *measured, {}, 0, false, {}});
      else
        left_out_.push_back({q.id, "of which the profiles of " + measured_gpu + " have no value, or none that grows"});
    }
    std::vector<Wanted> wanted;
    for (const CalibratedQuantity& c : result) want(c.quantity, model_, "", wanted);
    simulate(wanted);
    std::erase_if(result, [&](CalibratedQuantity& c) {
      const auto simulated = simulated_slope(c.quantity, "");
      if (!simulated) {
        left_out_.push_back({c.quantity.id, "whose " + c.quantity.metric + " is not predicted, or does not grow"});
        return true;
      }
      c.simulated = *simulated;
      c.error_pct = 100 * (c.simulated.value / c.measured.value - 1);
      c.within_spread = std::abs(c.simulated.value - c.measured.value) <= c.measured.spread;
      return false;
    });
    return result;
  }

  void propose_leaves(std::vector<CalibratedQuantity>& all, double tolerance_pct) {
    std::vector<Wanted> wanted;
    std::map<std::string, Changed> changed;
    for (const CalibratedQuantity& c : all) {
      if (std::abs(c.error_pct) <= tolerance_pct || c.within_spread) continue;
      for (const std::string& path : c.quantity.leaves) {
        if (!changed.contains(path)) changed.emplace(path, change(path));
        if (changed.at(path).model) want(c.quantity, *changed.at(path).model, path, wanted);
      }
    }
    simulate(wanted);
    for (CalibratedQuantity& c : all) {
      if (std::abs(c.error_pct) <= tolerance_pct || c.within_spread) continue;
      for (const std::string& path : c.quantity.leaves) {
        const Changed& other = changed.at(path);
        const auto simulated = other.model ? simulated_slope(c.quantity, path) : std::nullopt;
        if (!simulated) continue;
        const auto proposed = propose(other.now, other.value, c.measured.value, c.simulated.value, simulated->value);
        if (!proposed) continue;
        const double response = (simulated->value / c.simulated.value - 1) / (other.value / other.now - 1);
        c.proposals.push_back({other.leaf, other.now, *proposed, other.now == 0 ? 0 : response});
      }
    }
  }

 private:
  /// A leaf a step away from what it is; no model where it can not be changed, or a datasheet settles it.
  struct Changed {
    Leaf leaf;
    double now = 0, value = 0;
    std::optional<GpuModel> model;
  };

  struct Wanted {
    std::string stem, case_id, leaf;
    const GpuModel* model;
  };

  Changed change(const std::string& path) const {
    Changed c;
    const auto leaf = std::find_if(leaves_.begin(), leaves_.end(), [&](const Leaf& l) { return l.path == path; });
    if (leaf == leaves_.end()) return c;
    c.leaf = *leaf;
    const std::string& text = leaf->value;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), c.now);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || leaf->source == Provenance::Vendor) return c;
    const bool whole = text.find_first_of(".e") == std::string::npos;
    c.value = c.now + (whole ? std::max(1.0, std::round(kStep * c.now)) : kStep * c.now);
    try {
      std::vector<std::string> changes = changes_;
      changes.push_back(leaf_change(path, c.value));
      c.model = load_gpu_model(gpu_, changes);
    } catch (const InputError&) {  // the schema does not let it be so, for a power of two, say: it is no number to tune
    }
    return c;
  }

  const std::vector<MeasuredLaunch>& profile(const std::string& gpu, const std::string& stem) {
    const auto found = profiles_.find(stem);
    if (found != profiles_.end()) return found->second;
    // A stem that was not measured on this GPU has no file.
    const std::string path = profile_file(gpu, stem);
    if (!std::filesystem::exists(path)) return profiles_[stem];
    return profiles_[stem] = read_profile(path, stem, CacheState::Cold);
  }

  std::optional<CaseValue> measured_value(const Quantity& q, const std::string& gpu, const std::string& id) {
    for (const MeasuredLaunch& m : profile(gpu, q.stem)) {
      if (m.case_id != id || m.launch != 0) continue;
      const auto value = m.metric(q.metric);
      if (!value || m.cycles == 0) return std::nullopt;
      // Only the cycles' spread is kept; the time's is about the same.
      return CaseValue{*value, *value * m.cycles_min / m.cycles, *value * m.cycles_max / m.cycles};
    }
    return std::nullopt;
  }

  std::optional<Slope> measured_slope(const Quantity& q, const std::string& gpu) {
    const auto high = measured_value(q, gpu, q.high);
    const auto low = q.low.empty() ? CaseValue{} : measured_value(q, gpu, q.low);
    if (!high || !low) return std::nullopt;
    return slope_of(q, *low, *high);
  }

  std::optional<Slope> simulated_slope(const Quantity& q, const std::string& leaf) const {
    const auto of = [&](const std::string& id) -> std::optional<CaseValue> {
      if (id.empty()) return CaseValue{};
      const auto found = simulated_.find({leaf, id});
      if (found == simulated_.end()) return std::nullopt;
      const double value = found->second.metrics.get(q.metric);
      return CaseValue{value, value, value};
    };
    const auto low = of(q.low), high = of(q.high);
    if (!low || !high) return std::nullopt;
    return slope_of(q, *low, *high);
  }

  void want(const Quantity& q, const GpuModel& model, const std::string& leaf, std::vector<Wanted>& wanted) {
    for (const std::string& id : {q.low, q.high}) {
      if (id.empty() || !asked_.insert({leaf, id}).second) continue;
      wanted.push_back({q.stem, id, leaf, &model});
    }
  }

  void simulate(const std::vector<Wanted>& wanted) {
    std::map<std::string, Workload> workloads;
    for (const Wanted& w : wanted)
      if (!workloads.contains(w.stem))
        workloads[w.stem] = load_workload(trace_cubin(w.stem, model_.sm), trace_launch_file(w.stem));
    std::vector<std::optional<Prediction>> made(wanted.size());
    {
      Progress progress(wanted.size());
      rethrow_first(run_side_by_side(wanted.size(), threads_, true, [&](std::size_t i) {
        const Wanted& w = wanted[i];
        progress.started(w.case_id + (w.leaf.empty() ? "" : " with another " + w.leaf));
        const Workload& workload = workloads.at(w.stem);
        const Case& item = choose_one_case(*workload.launches, {w.case_id});
        check_case(*w.model, workload, item);
        auto predicted =
            predict_case(std::span(&w.model, 1), workload, item, SimulateOptions{}, {0}, cache_ ? &*cache_ : nullptr);
        made[i] = std::move(predicted.front().front());
        progress.finished();
      }));
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      simulated_.emplace(std::pair(wanted[i].leaf, wanted[i].case_id), std::move(*made[i]));
  }

  std::string gpu_;
  std::vector<std::string> changes_;
  GpuModel model_;
  std::vector<Leaf> leaves_;
  unsigned threads_;
  std::optional<PredictionCache> cache_;
  std::vector<LeftOut> left_out_;
  std::map<std::string, std::vector<MeasuredLaunch>> profiles_;          // by stem
  std::set<std::pair<std::string, std::string>> asked_;                  // leaf that was changed ("": none) and case
  std::map<std::pair<std::string, std::string>, Prediction> simulated_;  // the same
};

std::vector<Quantity> chosen_quantities(const std::string& path, const std::vector<std::string>& units) {
  std::vector<Quantity> all = read_quantities(path);
  std::set<std::string> known;
  for (const Quantity& q : all) known.insert(q.stem);
  for (const std::string& unit : units) {
    if (known.contains("micro_" + unit)) continue;
    std::string names;
    for (const std::string& stem : known) names += (names.empty() ? "" : ", ") + stem.substr(stem.find('_') + 1);
    throw InputError({path}, "there is no unit '" + unit + "'", "units: " + names);
  }
  std::erase_if(all, [&](const Quantity& q) {
    return !units.empty() &&
           std::none_of(units.begin(), units.end(), [&](const std::string& unit) { return q.stem == "micro_" + unit; });
  });
  return all;
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const double tolerance = c.number("tolerance");
  const std::vector<Quantity> quantities = chosen_quantities(quantities_file(), c.texts("unit"));
  Calibration calibration(c.text("gpu"), c.changes(), c.threads(), c.cache());
  std::vector<CalibratedQuantity> all = calibration.compare(quantities, c.text("measured"));
  if (!c.has("no-proposals")) calibration.propose_leaves(all, tolerance);
  const std::vector<LeftOut>& left_out = calibration.left_out();
  write_results(write_calibration_text(c.text("gpu"), all, left_out, calibration.leaves(), output_style()), json_path,
                json_path ? write_calibration_json(c.text("gpu"), c.changes(), all, left_out) : "");
  return kDone;
}

}  // namespace forewarp::cli
