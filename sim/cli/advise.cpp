// forewarp advise: changes of what a result was predicted from, each predicted.
#include <algorithm>
#include <boost/program_options.hpp>
#include <optional>

#include "advise/compiled.h"
#include "advise/sketch_advice.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"

namespace forewarp::cli {

namespace {

namespace po = boost::program_options;

CommandLine make_command_line() {
  CommandLine c(
      "advise RESULT.json [options]",
      "Tries changes of what a result was predicted from, and lists those that would save most: what to do, where,\n"
      "what it gains with which uncertainty, the counter that shows it, and what it may cost. RESULT.json is what\n"
      "`forewarp predict --json` or `forewarp sketch --json` wrote; the files it was predicted from must be as they\n"
      "were. Every gain is simulated.",
      {"forewarp predict traces/sm_90/faults_01_memory.cubin --launch traces/faults_01_memory.yaml \\\n"
       "      --gpu h200-sxm --case fault_tile_columns --json tile.json && forewarp advise tile.json",
       "forewarp sketch docs/examples/products.yaml --gpu h200-sxm --case two_stages --json products.json\n"
       "  forewarp advise products.json --top 3 --json advice.json"});
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "only this case of the result; may be repeated");
  c.model()("budget", po::value<double>()->value_name("SECONDS"),
            "processor seconds that each simulation may take, at a nominal speed (default: those of the result)");
  c.output()("top", po::value<int>()->value_name("N")->default_value(5), "suggestions for each launch or sketch");
  c.add_json();
  c.add_threads();
  c.add_cache();
  c.positional("RESULT");
  return c;
}

std::vector<std::string> chosen(const OpenedResult& result, const std::string& path,
                                const std::vector<std::string>& wanted) {
  std::string known;
  for (const std::string& id : result.cases) known += (known.empty() ? "" : ", ") + id;
  for (const std::string& id : wanted)
    if (std::find(result.cases.begin(), result.cases.end(), id) == result.cases.end())
      throw InputError({path}, "holds no case '" + id + "'", "cases: " + known);
  std::vector<std::string> ids;
  for (const std::string& id : result.cases)
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), id) != wanted.end()) ids.push_back(id);
  return ids;
}

advise::ForEach side_by_side(unsigned threads, const std::string& what) {
  return [threads, what](std::size_t count, const std::function<void(std::size_t)>& work) {
    Progress progress(count);
    progress.started(what);
    rethrow_first(run_side_by_side(count, threads, true, [&](std::size_t i) {
      work(i);
      progress.finished();
    }));
  };
}

void advise_kernel(const OpenedResult& result, const Case& item, const SimulateOptions& options,
                   const PredictionCache* cache, const advise::ForEach& each, std::size_t top,
                   std::vector<advise::Advice>& all) {
  check_case(result.model, result.workload, item);
  std::vector<advise::LaunchTask> tasks;
  std::uint64_t emulated = 0;
  const std::vector<LaunchScene> scenes = launch_scenes(result.model, result.workload, item, options, cache);
  for (const LaunchScene& scene : scenes) {
    advise::LaunchTask task;
    task.scene = scene.scene;
    task.options = options;
    task.before = scene.before.get();
    task.program = result.workload.program.get();
    task.item = &item;
    task.launch = static_cast<int>(tasks.size());
    task.tracing.limit(options.effort);
    task.tracing.emulation.sm_count = result.model.chip.sm_count;
    task.tracing.emulation.ignore_unknown_instructions = result.workload.assume_opcodes;
    for (const InstructionCount& count : task.scene.trace->totals()) emulated += count.executed;
    tasks.push_back(std::move(task));
  }
  for (advise::LaunchTask& task : tasks) {
    task.emulated = emulated;
    all.push_back(advise::advise_launch(task, each, top));
  }
  if (tasks.size() < 2) return;
  advise::Advice fused = advise::advise_fusion(tasks, each, top);
  if (fused.tried > 0) all.push_back(std::move(fused));
}

advise::Advice advise_a_sketch(const OpenedResult& result, const std::string& id, const config::Node& sketch,
                               const SimulateOptions& options, const PredictionCache* cache,
                               const advise::ForEach& each, std::size_t top) {
  const GpuModel* const models[] = {&result.model};
  const std::string& path = result.inputs.sketch->path;
  return advise::advise_sketch(
      id, sketch,
      [&](const config::Node& root, bool quick) {
        const sketch::Sketches lowered = sketch::read_sketches(root, path, result.model);
        const Workload workload{lowered.program, lowered.launches, false};
        const Case& item = lowered.launches->cases.front();
        check_case(result.model, workload, item);
        SimulateOptions with = quick ? advise::quick(options) : options;
        with.threads = 1;
        return std::move(predict_case(models, workload, item, with, {}, cache).front());
      },
      each, top);
}

}  // namespace

int run_advise(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string path = c.text("RESULT");
  const unsigned threads = c.threads();
  const std::optional<PredictionCache> cache = c.cache();
  const PredictionCache* kept = cache ? &*cache : nullptr;
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const int top = c.whole_number("top");
  if (top < 1 || top > 100) throw UsageError("--top is 1 to 100, not " + std::to_string(top));

  const OpenedResult result = open_result(path, kept);
  SimulateOptions options = result.inputs.options;
  if (c.has("budget")) {
    const double seconds = c.number("budget");
    if (!(seconds > 0 && seconds <= 1e9)) throw UsageError("--budget is a number of seconds above 0");
    give_seconds(options, seconds);
  }
  if (result.version != FOREWARP_VERSION)
    warn(path + " is of forewarp " + result.version + "; this is " FOREWARP_VERSION ", whose cycles may differ");

  std::vector<advise::Advice> all;
  for (const std::string& id : chosen(result, path, c.texts("case"))) {
    const advise::ForEach each = side_by_side(threads, id);
    if (result.sketches) {
      const std::vector<config::Entry> entries = config::read_file(result.inputs.sketch->path).entries();
      const auto entry = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.key == id; });
      if (entry == entries.end())
        throw InputError({path}, "holds the case '" + id + "', which is no sketch of its file");
      all.push_back(advise_a_sketch(result, id, entry->value, options, kept, each, static_cast<std::size_t>(top)));
    } else {
      advise_kernel(result, choose_one_case(*result.workload.launches, {id}), options, kept, each,
                    static_cast<std::size_t>(top), all);
    }
    if (const auto said = result.verdicts.find(id); said != result.verdicts.end())
      for (advise::Advice& a : all)
        if (a.case_id == id && a.launch >= 0 && static_cast<std::size_t>(a.launch) < said->second.size())
          a.verdict = said->second[static_cast<std::size_t>(a.launch)];
  }
  write_results(advise::write_text(all, static_cast<std::size_t>(top), output_style()), json_path,
                json_path ? advise::write_json(result.model, all, static_cast<std::size_t>(top)) : "");
  return kDone;
}

}  // namespace forewarp::cli
