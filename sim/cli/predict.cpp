// forewarp predict: all stages in order.
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/json.h"
#include "report/text.h"

namespace forewarp::cli {

namespace {

CommandLine make_command_line() {
  CommandLine c(
      "predict IMAGE --launch FILE --gpu NAME|FILE [options]",
      "Predicts how the launches of a kernel perform on a GPU, from the kernel's machine code (IMAGE) and\n"
      "a launch file that says on which grids and buffers it runs. No GPU is needed. IMAGE is a cubin, a fat binary, "
      "or an\n"
      "executable, library or object with fat binaries inside; the GPU decides which architecture's code is taken.",
      {"forewarp predict traces/sm_90/matmul_03_shared_tiled.cubin --launch traces/matmul_03_shared_tiled.yaml \\\n"
       "      --gpu h200-sxm --case sgemm_shared_tiled_1024",
       "forewarp predict traces/sm_80/copy_02_strided.cubin --launch traces/copy_02_strided.yaml \\\n"
       "      --gpu a100-sxm4-80gb --json strided.json"});
  namespace po = boost::program_options;
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file");
  c.add_gpu();
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "only this case of the launch file; may be repeated");
  c.add_simulation();
  c.add_assume_opcodes();
  c.add_json();
  c.add_threads();
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

}  // namespace

int run_predict(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string launch_file = c.text("launch");
  SimulateOptions options = c.simulation();
  const unsigned threads = c.threads();
  const std::optional<PredictionCache> cache = c.cache();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);

  const GpuModel model = c.gpu();
  const Workload workload =
      load_workload(c.text("IMAGE"), launch_file, {c.has("assume-opcodes"), model.sm, cache ? &*cache : nullptr});
  const std::vector<const Case*> cases = choose_cases(*workload.launches, c.texts("case"));
  for (const Case* item : cases) check_case(model, workload, *item);
  options.threads = threads_for_each(threads, cases.size());

  const GpuModel* const models[] = {&model};
  std::vector<std::vector<Prediction>> by_case(cases.size());
  {
    Progress progress(cases.size());
    rethrow_first(run_side_by_side(cases.size(), threads, true, [&](std::size_t i) {
      progress.started(cases[i]->id);
      by_case[i] = std::move(predict_case(models, workload, *cases[i], options, {}, cache ? &*cache : nullptr).front());
      progress.finished();
    }));
  }
  std::vector<Prediction> predictions;
  for (auto& of_case : by_case)
    for (Prediction& p : of_case) predictions.push_back(std::move(p));
  for (const Prediction& p : predictions)
    for (const std::string& warning : p.warnings) warn(p.case_id + ": " + warning);
  write_results(write_text(predictions), json_path, json_path ? write_json(model, predictions) : "");
  return kDone;
}

}  // namespace forewarp::cli
