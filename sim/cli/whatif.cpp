// forewarp whatif: half and twice of every resource of a GPU, and what each does to a kernel's time.
#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"
#include "sketch/sketch.h"
#include "sweep/resources.h"

namespace forewarp::cli {

namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

CommandLine make_command_line() {
  CommandLine c(
      "whatif IMAGE --launch FILE --case ID --gpu NAME|FILE [options]",
      "Predicts a case on GPUs that have half and twice as much of one resource each, and lists the resources\n"
      "by what they do to its time. The case is traced once. `forewarp plot tornado` draws the --json file.\n"
      "IMAGE may be a file of sketches (docs/sketch.md), without --launch: one is lowered for the GPU as it is.",
      {"forewarp whatif traces/sm_90/matmul_03_shared_tiled.cubin --launch traces/matmul_03_shared_tiled.yaml \\\n"
       "      --case sgemm_shared_tiled_1024 --gpu h200-sxm --json tiled.json",
       "forewarp whatif docs/examples/products.yaml --case two_stages --gpu h200-sxm"});
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file, where IMAGE is no file of sketches");
  c.add_gpu();
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"), "case of the launch file, or sketch");
  c.add_simulation();
  c.add_assume_opcodes();
  c.add_json();
  c.add_threads();
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

/// One GPU that there is not.
struct Trial {
  sweep::Variant variant;
  std::optional<double> time_ns;
  std::string failure;  ///< why it does not run there
};

struct Row {
  const sweep::Resource* resource = nullptr;
  Trial half, twice;
  const Trial& better() const { return resource->more_is_better ? twice : half; }
  const Trial& worse() const { return resource->more_is_better ? half : twice; }
};

double total_time(const std::vector<Prediction>& predictions) {
  return std::accumulate(predictions.begin(), predictions.end(), 0.0,
                         [](double sum, const Prediction& p) { return sum + p.time_ns(); });
}

double effect(const Trial& trial, double base) { return trial.time_ns ? std::abs(std::log(*trial.time_ns / base)) : 0; }

/// Below this a change is no finding: a simulation of the same launch moves by as much with any change of its timing.
constexpr double kNoticeable = 0.01;

std::string gain_text(const Trial& trial, double base) {
  if (!trial.variant.impossible.empty()) return "-";
  if (!trial.time_ns) return "does not run";
  const double pct = 100 * (*trial.time_ns / base - 1);
  return (pct > 0 ? "+" : "") + report::fixed(pct, 1) + " %";
}

std::string write_text(const Prediction& first, std::size_t launches, double base, const std::vector<Row>& rows) {
  const Style style = output_style();
  std::string text = style.paint(Tone::Heading, first.case_id + " on " + first.gpu + ":") + " " +
                     report::fixed(base / 1000, 2) + " us" +
                     (launches > 1 ? " in " + std::to_string(launches) + " launches" : "") + "\n";
  const auto change = [&](const Row& row, const Trial& trial) {
    return trial.time_ns && !row.resource->everything ? *trial.time_ns / base - 1 : 0.0;
  };
  const auto best = std::min_element(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return change(a, a.better()) < change(b, b.better());
  });
  const auto worst = std::max_element(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return change(a, a.worse()) < change(b, b.worse());
  });
  const double gain = change(*best, best->better()), loss = change(*worst, worst->worse());
  const auto scaled = [](const Row& row, bool better) {
    return row.resource->more_is_better == better ? "doubled" : "halved";
  };
  const auto finding = [&](const char* what, const Row& row, bool better, double pct, const char* than) {
    return style.paint(Tone::Verdict, std::string(what) + row.resource->name + ":") + " " + scaled(row, better) +
           ", it takes " + report::fixed(pct, 1) + " % " + than + " time.\n";
  };
  text += gain > -kNoticeable ? "No resource alone makes it faster.\n"
                              : finding("Bound by ", *best, true, -100 * gain, "less");
  if (loss > kNoticeable) text += finding("Most sensitive to ", *worst, false, 100 * loss, "more");
  report::Table table({{"resource", report::Table::Left},
                       {"half", report::Table::Right},
                       {"twice", report::Table::Right},
                       {"", report::Table::Left}});
  for (const Row& row : rows) {
    std::string note;
    for (const Trial* trial : {&row.half, &row.twice}) {
      const std::string& why = trial->variant.impossible.empty() ? trial->failure : trial->variant.impossible;
      if (!why.empty()) note += (note.empty() ? "" : "; ") + why.substr(0, why.find('\n'));
    }
    table.row({row.resource->name, gain_text(row.half, base), gain_text(row.twice, base), note});
  }
  return text + table.text("  ", style);
}

Json trial_json(const Trial& trial, double base) {
  Json j;
  if (!trial.variant.impossible.empty()) {
    j["impossible"] = trial.variant.impossible;
    return j;
  }
  j["changes"] = trial.variant.changes;
  if (trial.time_ns) {
    j["time_ns"] = *trial.time_ns;
    j["change_pct"] = 100 * (*trial.time_ns / base - 1);
  } else {
    j["failure"] = trial.failure;
  }
  return j;
}

std::string write_json(const Prediction& first, double base, const std::vector<Row>& rows) {
  Json j;
  j["forewarp"] = FOREWARP_VERSION;
  j["gpu"] = first.gpu;
  report::add_changes(first.gpu_changes, j);
  Json& w = j["whatif"];
  w["case"] = first.case_id;
  w["time_ns"] = base;
  w["resources"] = Json::array();
  for (const Row& row : rows)
    w["resources"].push_back({{"resource", row.resource->name},
                              {"better", row.resource->more_is_better ? "more" : "less"},
                              {"half", trial_json(row.half, base)},
                              {"twice", trial_json(row.twice, base)}});
  return j.dump(1) + "\n";
}

Workload sketch_workload(const std::string& path, const GpuModel& model) {
  const sketch::Sketches sketches = sketch::read_sketches(path, model);
  return {sketches.program, sketches.launches};
}

}  // namespace

int run_whatif(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string image = c.text("IMAGE"), gpu = c.text("gpu");
  const bool sketched = image.ends_with(".yaml") || image.ends_with(".yml");
  if (sketched && c.has("launch")) throw UsageError("a sketch launches itself: leave --launch out");
  const std::string launch_file = sketched ? "" : c.text("launch");
  SimulateOptions options = c.simulation();
  const unsigned threads = c.threads();
  const std::optional<PredictionCache> cache = c.cache();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);

  const GpuModel model = c.gpu();
  const ImageChoice choice{c.has("assume-opcodes"), model.sm, cache ? &*cache : nullptr};
  const Workload workload = sketched ? sketch_workload(image, model) : load_workload(image, launch_file, choice);
  const Case& item = choose_one_case(*workload.launches, c.texts("case"));
  check_case(model, workload, item);

  std::vector<Row> rows;
  std::vector<Trial*> trials;
  for (const sweep::Resource& resource : sweep::resources())
    rows.push_back({&resource, {resource.scaled(model, 0.5), {}, {}}, {resource.scaled(model, 2), {}, {}}});
  for (Row& row : rows)
    for (Trial* trial : {&row.half, &row.twice})
      if (trial->variant.impossible.empty()) trials.push_back(trial);

  TraceShelf shelf(item.launches.size());
  const auto predict = [&](const GpuModel& on) {
    const GpuModel* const models[] = {&on};
    return std::move(predict_case(models, workload, item, options, {}, cache ? &*cache : nullptr, &shelf).front());
  };
  std::vector<Prediction> as_is;
  {
    Progress progress(trials.size() + 1);
    progress.started(item.id);
    options.threads = threads;
    as_is = predict(model);
    progress.finished();
    options.threads = threads_for_each(threads, trials.size());
    rethrow_first(run_side_by_side(trials.size(), threads, true, [&](std::size_t i) {
      std::vector<std::string> changes = c.changes();
      changes.insert(changes.end(), trials[i]->variant.changes.begin(), trials[i]->variant.changes.end());
      try {
        const GpuModel other = load_gpu_model(gpu, changes);
        check_case(other, workload, item);
        trials[i]->time_ns = total_time(predict(other));
      } catch (const InputError& e) {
        trials[i]->failure = e.what();
      }
      progress.finished();
    }));
  }
  const double base = total_time(as_is);
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return std::max(effect(a.half, base), effect(a.twice, base)) >
           std::max(effect(b.half, base), effect(b.twice, base));
  });
  for (const Prediction& p : as_is)
    for (const std::string& warning : p.warnings) warn(p.case_id + ": " + warning);
  write_results(write_text(as_is.front(), as_is.size(), base, rows), json_path,
                json_path ? write_json(as_is.front(), base, rows) : "");
  return kDone;
}

}  // namespace forewarp::cli
