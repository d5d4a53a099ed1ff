// forewarp compare: predicts the same cases on several GPUs.
#include <boost/program_options.hpp>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/suite_run.h"
#include "report/comparison.h"

namespace forewarp::cli {

namespace {

CommandLine make_command_line() {
  CommandLine c(
      "compare [--suite NAME] --gpu NAME [--gpu NAME ...] [options]",
      "Predicts the cases of a suite on several GPUs and prints one table, a line for each case and GPU: cycles,\n"
      "time, place on the roofline, wasted sectors, divergence, waves and the top stall; where a GPU has measured\n"
      "profiles of the cases, the measured cycles and the error beside them.",
      {"forewarp compare --suite ladder --gpu h100-sxm5 --gpu a100-sxm4-80gb --gpu h200-sxm",
       "forewarp compare --suite ladder --gpu h200-sxm --gpu h100-pcie --json ladder.json"});
  namespace po = boost::program_options;
  c.model()("suite", po::value<std::string>()->value_name("NAME")->default_value("ladder"), "suite of cases");
  c.model()("suites", po::value<std::string>()->value_name("FILE"),
            "list of suites (default: the project's validation/suites.yaml)");
  c.model()("gpu", po::value<std::vector<std::string>>()->value_name("NAME|FILE"),
            "GPU model; repeat it for each column (default: the suite's)");
  c.model()("full", "simulate every instruction of every block instead of extrapolating from a part");
  c.add_set();
  c.add_effort();
  c.add_json();
  c.add_threads();
  c.add_cache();
  return c;
}

}  // namespace

int run_compare(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  SuiteOptions options;
  options.threads = c.threads();
  options.cache = c.cache();
  options.changes = c.changes();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const std::string path = c.has("suites") ? c.text("suites") : suites_file();
  const std::vector<Suite> suites = read_suites(path);
  const Suite& suite = find_suite(suites, c.text("suite"), path);
  std::vector<std::string> gpus = c.texts("gpu");
  if (gpus.empty()) gpus = {suite.gpu};
  options.simulation.caches = suite.caches;
  options.simulation.full = c.has("full");
  options.simulation.effort = c.effort();

  std::vector<ComparedGpu> columns;
  std::size_t failed = 0;
  for (SuiteRun& run : run_suite(suite, gpus, options)) {
    ComparedGpu column{run.gpu, {}, std::move(run.measured)};
    for (PredictedTrace& trace : run.traces)
      for (Prediction& p : trace.predictions) column.predictions.push_back(std::move(p));
    for (const ValidationFailure& f : run.failures) warn(f.case_id + " on " + run.gpu + ": " + f.message);
    failed += run.failures.size();
    columns.push_back(std::move(column));
  }
  write_results(write_comparison_text(suite.title, columns, output_style()), json_path,
                json_path ? write_comparison_json(columns) : "");
  return failed == 0 ? kDone : kBadInput;
}

}  // namespace forewarp::cli
