// forewarp validate: compares predictions with measured profiles.
#include <algorithm>
#include <boost/program_options.hpp>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/places.h"
#include "cli/suite_run.h"

namespace forewarp::cli {

namespace {

constexpr const char* kPublished = "published";

CommandLine make_command_line() {
  CommandLine c(
      "validate [--suite NAME] [options]",
      "Predicts every case of a suite and compares it with the profile measured on a real GPU: cycles by launch,\n"
      "counters by name, errors by class of kernel. Exits with 3 when outside the suite's tolerance or when a\n"
      "case could not be predicted. Suites are listed in validation/suites.yaml;\n"
      "`published` stands for what others measured on A100 and H100 (validation/published), `sealed` for a part of "
      "the\n"
      "sweeps that is reported in total only.",
      {"forewarp validate --suite published", "forewarp validate --suite matmul",
       "forewarp validate --suite all --json validation.json"});
  namespace po = boost::program_options;
  c.model()("suite", po::value<std::string>()->value_name("NAME")->default_value("all"), "suite of cases");
  c.model()("suites", po::value<std::string>()->value_name("FILE"),
            "list of suites (default: the project's validation/suites.yaml)");
  c.model()("full", "simulate every instruction of every block instead of extrapolating from a part");
  c.add_set();
  c.add_effort();
  c.add_json();
  c.add_threads();
  c.add_cache();
  return c;
}

}  // namespace

int run_validate(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  SuiteOptions options;
  options.threads = c.threads();
  options.cache = c.cache();
  options.changes = c.changes();
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  options.simulation.full = c.has("full");
  options.simulation.effort = c.effort();
  if (c.text("suite") == kPublished) {
    const std::vector<PublishedResult> rows = run_published(options);
    write_results(write_published_text(rows, output_style()), json_path,
                  json_path ? write_published_json(rows, options.changes) : "");
    const bool failed = std::any_of(rows.begin(), rows.end(), [](const auto& r) { return !r.failure.empty(); });
    return failed ? kOutsideTolerance : kDone;
  }
  const std::string path = c.has("suites") ? c.text("suites") : suites_file();
  const std::vector<Suite> suites = read_suites(path);
  const Suite& suite = find_suite(suites, c.text("suite"), path);
  options.simulation.caches = suite.caches;
  options.at_measured_clock = true;

  SuiteRun run = std::move(run_suite(suite, {suite.gpu}, options).front());
  std::vector<ValidationFailure> failures = std::move(run.failures);
  failures.insert(failures.end(), run.unmeasured.begin(), run.unmeasured.end());
  const Validation result = validate(suite, run.gpu, run.traces, run.measured, std::move(failures));
  write_results(write_validation_text(result, output_style()), json_path,
                json_path ? write_validation_json(result) : "");
  return result.violations.empty() ? kDone : kOutsideTolerance;
}

}  // namespace forewarp::cli
