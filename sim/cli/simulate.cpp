// forewarp simulate: runs the timing model on a trace file.
#include <boost/program_options.hpp>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/workers.h"
#include "report/json.h"
#include "report/text.h"
#include "trace/trace_file.h"

namespace forewarp::cli {

namespace {

CommandLine make_command_line() {
  CommandLine c("simulate TRACE --gpu NAME|FILE [options]",
                "Replays the launches of a trace file, as `forewarp trace` writes it, on a GPU model and reports like\n"
                "`forewarp predict`.",
                {"forewarp simulate tiled.fwt --gpu h200-sxm",
                 "forewarp simulate softmax.fwt --gpu a100-sxm4-80gb --json softmax.json"});
  c.add_gpu();
  c.add_simulation();
  c.add_causes();
  c.add_record();
  c.add_threads();
  c.add_json();
  c.positional("TRACE");
  return c;
}

KernelTrace read_launch(TraceReader& reader, KernelTrace trace) {
  while (auto block_class = reader.next_class(trace)) trace.classes.push_back(std::move(*block_class));
  return trace;
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string path = c.text("TRACE");
  SimulateOptions options = c.simulation();
  options.threads = c.threads();
  options.record = c.record();
  const Causes causes = c.causes();
  if (options.caches == CacheState::Sequence)
    throw UsageError("--cache sequence follows the launches of a case more than once: use forewarp predict");
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const GpuModel model = c.gpu();

  std::vector<Prediction> predictions;
  TraceReader reader(path);
  {
    Progress progress(1);
    KernelTrace next;
    while (reader.next_launch(next)) {
      progress.started(next.launch.case_id);
      const auto trace = std::make_shared<const KernelTrace>(read_launch(reader, std::move(next)));
      predictions.push_back(predict_trace(model, trace, options, causes));
      next = KernelTrace{};
    }
  }
  if (predictions.empty()) throw InputError({path}, "holds no launch");
  for (const Prediction& p : predictions)
    for (const std::string& warning : p.warnings) warn(p.case_id + ": " + warning);
  write_results(write_text(predictions, output_style()), json_path, json_path ? write_json(model, predictions) : "");
  return kDone;
}

}  // namespace forewarp::cli
