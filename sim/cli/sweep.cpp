// forewarp sweep: predicts every point of a sweep file and keeps the results in a database.
#include <algorithm>
#include <boost/program_options.hpp>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/sweep_sources.h"
#include "cli/workers.h"
#include "counters/metrics.h"
#include "sketch/sketch.h"
#include "sweep/queue.h"
#include "sweep/ranks.h"
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
       "mpirun -n 4 forewarp sweep docs/examples/softmax_block.sweep.yaml --out softmax.sqlite"});
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

std::unique_ptr<sweep::Source> make_source(const sweep::SweepFile& file, const CommandLine& c, unsigned threads) {
  SimulateOptions options = c.simulation();
  options.threads = threads_for_each(threads, file.points.size());
  const bool assume = c.has("assume-opcodes");
  if (file.kind == SketchSource::kKind)
    return std::make_unique<SketchSource>(file, options, assume, c.cache(), threads + 1);
  return std::make_unique<KernelSource>(file, options, assume, c.cache(), threads + 1);
}

/// What a prediction has: those of a small one, and the families that depend on the kernel.
std::vector<std::string> metric_names() {
  constexpr const char* kSmall =
      "small: {elementwise: {shape: [32], block: 32, tensors: {x: f32, y: f32}, compute: ['y = x']}}";
  const GpuModel model = load_gpu_model("h200-sxm");
  const sketch::Sketches sketches = sketch::parse_sketches(kSmall, "metrics", model);
  const GpuModel* const models[] = {&model};
  SimulateOptions options;
  options.threads = 1;
  const auto predicted = predict_case(models, {sketches.program, sketches.launches, false},
                                      sketches.launches->cases.front(), options, {}, nullptr);
  std::vector<std::string> names;
  for (const auto& [name, value] : predicted.front().front().metrics) names.push_back(name);
  for (MetricDescription& metric : describe_metrics()) names.push_back(std::move(metric.name));
  names.push_back("<unit>.avg.pct_of_peak_sustained_elapsed");  // of units that the kernel uses
  return names;
}

/// Points whose sketch cannot be built are rows with the reason, unless all are.
std::vector<sweep::PlannedPoint> plan(const sweep::SweepFile& file, sweep::Source& source) {
  std::vector<sweep::PlannedPoint> planned;
  planned.reserve(file.points.size());
  std::size_t not_lowered = 0;
  std::string first_failure;
  for (const sweep::Point& point : file.points) {
    const std::string values = sweep::values_json(point);
    const auto failure = [&](const InputError& e) {
      return std::string(e.what()) + "\n  at the point " + sweep::point_text(point) + "; `where` leaves points out";
    };
    try {
      planned.push_back({source.identify(point), values});
    } catch (const NotLowered& e) {
      if (not_lowered++ == 0) first_failure = failure(e);
      KeyMaker key;
      key.add(e.what());
      key.add(values);
      planned.push_back({{key.key().text(), key.key().text()}, values});
    } catch (const InputError& e) {
      throw InputError(failure(e));
    }
  }
  if (not_lowered > 0 && not_lowered == planned.size()) throw InputError(first_failure);
  return planned;
}

/// Places in the list stand for points between ranks.
void check_same(sweep::Ranks& ranks, const std::vector<sweep::PlannedPoint>& points) {
  KeyMaker all;
  for (const sweep::PlannedPoint& point : points) {
    all.add(point.identity.key);
    all.add(point.values);
  }
  if (ranks.of_first(all.key().text()) != all.key().text())
    throw InputError("rank " + std::to_string(ranks.rank()) + " has another sweep than rank 0",
                     "give every machine the same forewarp, sweep file, image and launch file");
}

/// All points, with the help of the other ranks if there are any.
void compute_here(sweep::Store& store, sweep::Source& source, const sweep::SweepFile& file, unsigned threads,
                  sweep::Ranks* ranks) {
  Progress progress(store.total(), store.total() - store.left());
  std::exception_ptr failure;
  std::jthread server;
  if (ranks != nullptr)
    server = std::jthread([&] {
      try {
        sweep::serve(*ranks, store);
      } catch (...) {  // rethrown below
        failure = std::current_exception();
      }
    });
  sweep::StoreQueue queue(store);
  const auto useful = static_cast<unsigned>(std::clamp<std::size_t>(store.left(), 1, threads));
  sweep::compute(queue, source, file.points, useful, [&] { progress.finished(store.total() - store.left()); });
  if (server.joinable()) server.join();
  if (failure) std::rethrow_exception(failure);
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

  const std::shared_ptr<sweep::Ranks> ranks = sweep::join_ranks();
  const unsigned threads = ranks && !c.has("threads") ? 1 : c.threads();
  const sweep::SweepFile file = sweep::read_sweep_file(path, {KernelSource::kKind, SketchSource::kKind});
  sweep::check_metrics(file, metric_names());
  const std::unique_ptr<sweep::Source> source = make_source(file, c, threads);
  const std::vector<sweep::PlannedPoint> points = plan(file, *source);
  if (ranks) check_same(*ranks, points);
  if (ranks && ranks->rank() != 0) {
    sweep::AskingQueue queue(*ranks);
    sweep::compute(queue, *source, file.points, threads, [] {});
    queue.leave();
    return kDone;
  }
  sweep::Store store(c.has("out") ? c.text("out") : default_database(path), points);
  compute_here(store, *source, file, threads, ranks.get());
  const sweep::Results results = sweep::make_results(file, store.outcomes());
  const auto most = static_cast<std::size_t>(c.whole_number("top"));
  if (!csv_path.empty()) write_file(csv_path, sweep::write_csv(results));
  if (json_path) write_file(*json_path, sweep::write_json(results));
  if (csv_path != "-" && json_path != "-")
    write_file("-", sweep::write_text(results, most == 0 ? results.rows.size() : most, output_style()));
  return results.order.empty() ? kBadInput : kDone;
}

}  // namespace forewarp::cli
