// forewarp sweep: predicts every point of a sweep file and keeps the results in a database.
#include <boost/program_options.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/sweep_kernel.h"
#include "cli/workers.h"
#include "sweep/queue.h"
#include "sweep/results.h"

namespace forewarp::cli {

namespace {

namespace po = boost::program_options;

CommandLine make_command_line() {
  CommandLine c(
      "sweep FILE [--out RESULTS.sqlite] [options]",
      "Predicts every point of a sweep: launches with other sizes and arguments, GPUs with other numbers. Results go\n"
      "into a database as they come. A sweep that was stopped goes on where it was when it is started again, and "
      "several\n"
      "processes may compute the same one. FILE is described in docs/sweep.md.",
      {"forewarp sweep docs/examples/softmax_block.sweep.yaml --out softmax.sqlite --csv softmax.csv",
       "forewarp sweep docs/examples/softmax_block.sweep.yaml --threads 1 --top 0"});
  c.add_simulation();
  c.add_assume_opcodes();
  c.output()("out", po::value<std::string>()->value_name("RESULTS.sqlite"),
             "database of the results (default: FILE with .sqlite in place of .yaml, in this folder)")(
      "csv", po::value<std::string>()->value_name("FILE|-"), "write a line for each point, in the order of the sweep")(
      "top", po::value<int>()->value_name("N")->default_value(20), "rows of the table; 0: all");
  c.add_json();
  c.add_threads();
  c.add_cache();
  c.positional("FILE");
  return c;
}

std::unique_ptr<sweep::Source> make_source(const sweep::SweepFile& file, const CommandLine& c) {
  FW_CHECK(file.kind == KernelSource::kKind, file.kind);
  SimulateOptions options = c.simulation();
  options.threads = threads_for_each(c.threads(), file.points.size());
  return std::make_unique<KernelSource>(file, options, c.has("assume-opcodes"), c.cache(), c.threads() + 1);
}

std::vector<sweep::PlannedPoint> plan(const sweep::SweepFile& file, sweep::Source& source) {
  std::vector<sweep::PlannedPoint> planned;
  planned.reserve(file.points.size());
  for (const sweep::Point& point : file.points) {
    try {
      planned.push_back({source.identify(point), sweep::values_json(point)});
    } catch (const InputError& e) {
      throw InputError(std::string(e.what()) + "\n  at the point " + sweep::point_text(point) +
                       "; `where` leaves points out");
    }
  }
  return planned;
}

std::string default_database(const std::string& file) {
  return std::filesystem::path(file).filename().replace_extension(".sqlite").string();
}

}  // namespace

int run_sweep(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const std::string path = c.text("FILE");
  const auto json_path = c.json();
  const std::string csv_path = c.has("csv") ? c.text("csv") : "";
  if (json_path) check_writable(*json_path);
  if (!csv_path.empty()) check_writable(csv_path);
  if (c.whole_number("top") < 0) throw UsageError("--top is a number of rows, or 0 for all");

  const sweep::SweepFile file = sweep::read_sweep_file(path, {KernelSource::kKind});
  const std::unique_ptr<sweep::Source> source = make_source(file, c);
  const std::vector<sweep::PlannedPoint> points = plan(file, *source);
  sweep::Store store(c.has("out") ? c.text("out") : default_database(path), points);
  {
    Progress progress(store.total(), store.total() - store.left());
    sweep::StoreQueue queue(store);
    const auto threads =
        static_cast<unsigned>(std::min<std::size_t>(c.threads(), std::max<std::size_t>(store.left(), 1)));
    sweep::compute(queue, *source, file.points, threads, [&] { progress.finished(store.total() - store.left()); });
  }
  const sweep::Results results = sweep::make_results(file, store.outcomes());
  const auto most = static_cast<std::size_t>(c.whole_number("top"));
  if (!csv_path.empty()) write_file(csv_path, sweep::write_csv(results));
  if (json_path) write_file(*json_path, sweep::write_json(results));
  if (csv_path != "-" && json_path != "-")
    write_file("-", sweep::write_text(results, most == 0 ? results.rows.size() : most));
  return results.order.empty() ? kBadInput : kDone;
}

}  // namespace forewarp::cli
