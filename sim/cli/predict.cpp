// forewarp predict: all stages in order.
#include "cli/command_line.h"
#include "cli/inputs.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/comparison.h"
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
       "      --gpu a100-sxm4-80gb --json strided.json",
       "forewarp predict traces/sm_90/matmul_23_warp_specialised.cubin --launch traces/matmul_23_warp_specialised.yaml "
       "\\\n"
       "      --gpu h200-sxm --case specialised_bf16_4096 --warps 0 --json specialised.json",
       "forewarp predict tiled.fatbin --launch tiled.yaml --gpu a100-sxm4-80gb --gpu h100-sxm5 --gpu h200-sxm"});
  namespace po = boost::program_options;
  c.model()("launch", po::value<std::string>()->value_name("FILE"), "launch file");
  c.model()(
      "gpu", po::value<std::vector<std::string>>()->value_name("NAME|FILE"),
      "GPU model: a name (`forewarp describe gpu` lists them) or a YAML file; repeat it for one table of several");
  c.add_set();
  c.model()("case", po::value<std::vector<std::string>>()->value_name("ID"),
            "only this case of the launch file; may be repeated");
  c.add_simulation();
  c.add_causes();
  c.add_record();
  c.add_assume_opcodes();
  c.add_json();
  c.add_threads();
  c.add_cache();
  c.positional("IMAGE");
  return c;
}

/// The chosen cases on one GPU.
std::vector<Prediction> predict_on(const GpuModel& model, const std::string& gpu, const CommandLine& c,
                                   SimulateOptions options, const PredictionCache* cache, ResultInputs& inputs) {
  const unsigned threads = c.threads();
  const Causes causes = c.causes();
  const Workload workload =
      load_workload(c.text("IMAGE"), c.text("launch"), {c.has("assume-opcodes"), model.sm, cache});
  const std::vector<const Case*> cases = choose_cases(*workload.launches, c.texts("case"));
  for (const Case* item : cases) check_case(model, workload, *item);
  inputs = kernel_inputs(c, model, gpu, workload);
  options.threads = threads_for_each(threads, cases.size());

  const GpuModel* const models[] = {&model};
  std::vector<std::vector<Prediction>> by_case(cases.size());
  {
    Progress progress(cases.size());
    rethrow_first(run_side_by_side(cases.size(), threads, true, [&](std::size_t i) {
      progress.started(cases[i]->id);
      by_case[i] = std::move(predict_case(models, workload, *cases[i], options, {}, cache, nullptr, causes).front());
      progress.finished();
    }));
  }
  std::vector<Prediction> predictions;
  for (auto& of_case : by_case)
    for (Prediction& p : of_case) predictions.push_back(std::move(p));
  return predictions;
}

}  // namespace

int run_predict(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  c.text("launch");  // says so if it is missing
  SimulateOptions options = c.simulation();
  options.record = c.record();
  const std::optional<PredictionCache> cache = c.cache();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const std::vector<std::string> names = c.texts("gpu");
  if (names.empty()) c.text("gpu");

  std::vector<GpuModel> models;
  for (const std::string& name : names) models.push_back(load_gpu_model(name, c.changes()));
  std::vector<ComparedGpu> columns;
  ResultInputs inputs;
  for (std::size_t i = 0; i < models.size(); ++i)
    columns.push_back(
        {models[i].name, predict_on(models[i], names[i], c, options, cache ? &*cache : nullptr, inputs), {}});
  for (const ComparedGpu& column : columns)
    for (const Prediction& p : column.predictions)
      for (const std::string& warning : p.warnings)
        warn(p.case_id + (columns.size() > 1 ? " on " + column.gpu : "") + ": " + warning);
  if (columns.size() > 1) {
    write_results(write_comparison_text(c.text("IMAGE"), columns, output_style()), json_path,
                  json_path ? write_comparison_json(columns) : "");
  } else {
    const std::vector<Prediction>& only = columns.front().predictions;
    write_results(write_text(only, output_style()), json_path,
                  json_path ? write_json(models.front(), only, &inputs) : "");
  }
  return kDone;
}

}  // namespace forewarp::cli
