// forewarp bench: forewarp's own speed and memory, by class of kernel. Each prediction runs in a process of its own, so
// that its peak memory can be told.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/places.h"
#include "report/case_json.h"
#include "report/format.h"
#include "report/table.h"

namespace forewarp::cli {

namespace {

/// One representative per class; `detailed`: small enough to be simulated in full.
struct BenchCase {
  const char* kernel_class;
  const char* stem;
  const char* id;
  bool detailed;
};

constexpr BenchCase kCases[] = {
    {"product, FMA-bound", "matmul_06_vectorized", "sgemm_vectorized_512", true},
    {"product, shared memory", "matmul_03_shared_tiled", "sgemm_shared_tiled_512", true},
    {"product, uncoalesced", "matmul_01_naive_uncoalesced", "sgemm_naive_uncoalesced_512", true},
    {"streaming copy", "copy_03_offset", "copy_offset_64mi_offset_0", true},
    {"fused attention", "attention_03_flash", "flash_attention_512", true},
    {"divergence", "divergence_01_branch_ways", "divergence_by_lane_8_256ki", true},
    {"product 4096, FMA-bound", "matmul_06_vectorized", "sgemm_vectorized_4096", false},
    {"product 4096, shared memory", "matmul_03_shared_tiled", "sgemm_shared_tiled_4096", false},
    {"product 4096, uncoalesced", "matmul_01_naive_uncoalesced", "sgemm_naive_uncoalesced_4096", false},
    {"rows, normalised", "reduce_02_layer_norm_rows", "layer_norm_rows_65536x768", false},
};

/// What a prediction's process reports to its parent.
struct Sample {
  double seconds = 0;
  std::uint64_t instructions = 0, simulated = 0;
  bool good = false;
};

struct Run {
  const BenchCase* item = nullptr;
  bool full = false;
  double seconds = 0;  ///< processor time, hardly affected by other load; median
  double peak_mib = 0;
  std::uint64_t instructions = 0, simulated = 0;
  double rate() const { return seconds > 0 ? static_cast<double>(simulated) / seconds : 0; }
};

Sample predict_once(const GpuModel& model, const BenchCase& item, bool full) {
  Sample sample;
  const Workload workload = load_workload(trace_cubin(item.stem, model.sm), trace_launch_file(item.stem));
  SimulateOptions options;
  options.full = full;
  const GpuModel* const models[] = {&model};
  const Case& chosen = *choose_cases(*workload.launches, {item.id}).front();
  const auto predictions = predict_case(models, workload, chosen, options, {}, nullptr);
  for (const Prediction& p : predictions.front()) {
    sample.instructions += p.coverage.warp_instructions;
    sample.simulated += p.coverage.simulated_warp_instructions;
  }
  sample.good = true;
  return sample;
}

/// In a child of this process. Returns the child's peak memory in `peak_mib`.
Sample predict_apart(const GpuModel& model, const BenchCase& item, bool full, double& peak_mib) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw InternalError(std::string("pipe: ") + std::strerror(errno));
  const pid_t child = ::fork();
  if (child < 0) throw InternalError(std::string("fork: ") + std::strerror(errno));
  if (child == 0) {
    ::close(ends[0]);
    Sample sample;
    try {
      sample = predict_once(model, item, full);
    } catch (const std::exception& e) {  // told to the parent by `good`
      warn(std::string(item.id) + ": " + e.what());
    }
    const bool sent = ::write(ends[1], &sample, sizeof sample) == static_cast<ssize_t>(sizeof sample);
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  Sample sample;
  const bool whole = ::read(ends[0], &sample, sizeof sample) == static_cast<ssize_t>(sizeof sample);
  ::close(ends[0]);
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  if (!whole || !sample.good) throw InputError(std::string("case ") + item.id + " could not be predicted");
  peak_mib = static_cast<double>(usage.ru_maxrss) / 1024;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  sample.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  return sample;
}

Run measure(const GpuModel& model, const BenchCase& item, bool full, int times) {
  Run run{&item, full, 0, 0, 0, 0};
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    double peak = 0;
    const Sample sample = predict_apart(model, item, full, peak);
    seconds.push_back(sample.seconds);
    run.peak_mib = std::max(run.peak_mib, peak);
    run.instructions = sample.instructions;
    run.simulated = sample.simulated;
  }
  std::nth_element(seconds.begin(), seconds.begin() + times / 2, seconds.end());
  run.seconds = seconds[static_cast<std::size_t>(times / 2)];
  return run;
}

std::string write_text(const std::vector<Run>& runs) {
  using report::fixed;
  using report::Table;
  Table t({{"class", Table::Left},
           {"case", Table::Left},
           {"mode", Table::Left},
           {"warp instructions", Table::Right},
           {"simulated", Table::Right},
           {"seconds", Table::Right},
           {"million simulated a second", Table::Right},
           {"peak MiB", Table::Right}});
  for (const Run& r : runs)
    t.row({r.item->kernel_class, r.item->id, r.full ? "detailed" : "steady state",
           report::si(static_cast<double>(r.instructions), ""), report::si(static_cast<double>(r.simulated), ""),
           fixed(r.seconds, 2), fixed(r.rate() / 1e6, 2), fixed(r.peak_mib, 0)});
  return t.text("", output_style());
}

std::string write_json(const GpuModel& gpu, int times, const std::vector<Run>& runs) {
  nlohmann::ordered_json root;
  root["forewarp"] = FOREWARP_VERSION;
  root["gpu"] = gpu.name;
  report::add_changes(gpu.changes, root);
  root["times"] = times;
  root["runs"] = nlohmann::ordered_json::array();
  for (const Run& r : runs)
    root["runs"].push_back({{"class", r.item->kernel_class},
                            {"case", r.item->id},
                            {"mode", r.full ? "detailed" : "steady state"},
                            {"warp_instructions", r.instructions},
                            {"simulated_warp_instructions", r.simulated},
                            {"seconds", r.seconds},
                            {"simulated_per_second", r.rate()},
                            {"peak_mib", r.peak_mib}});
  return root.dump(2) + "\n";
}

CommandLine make_command_line() {
  CommandLine c(
      "bench [--gpu NAME|FILE] [options]",
      "Measures forewarp itself: processor seconds, warp instructions simulated a second and peak memory of a "
      "prediction on\n"
      "one core, from reading the cubin to the finished result, by class of kernel; every instruction simulated\n"
      "(detailed) and as predictions are made by default (steady state). Medians of several runs.",
      {"forewarp bench", "forewarp bench --times 5 --class copy --json bench.json"});
  namespace po = boost::program_options;
  c.model()("gpu", po::value<std::string>()->value_name("NAME|FILE")->default_value("h200-sxm"), "GPU model");
  c.add_set();
  c.model()("class", po::value<std::string>()->value_name("TEXT"), "only classes whose name holds this");
  c.model()("times", po::value<int>()->value_name("N")->default_value(3), "runs of each, of which the median counts");
  c.add_json();
  return c;
}

}  // namespace

int run_bench(const Arguments& arguments) {
  CommandLine c = make_command_line();
  if (!c.parse(arguments)) return kDone;
  const int times = c.whole_number("times");
  if (times < 1 || times > 1000) throw UsageError("--times is 1 to 1000, not " + std::to_string(times));
  const auto json_path = c.json();
  if (json_path) check_writable(*json_path);
  const GpuModel model = c.gpu();
  const std::string wanted = c.has("class") ? c.text("class") : "";
  std::vector<Run> runs;
  for (const bool full : {true, false}) {
    for (const BenchCase& item : kCases) {
      if (std::string_view(item.kernel_class).find(wanted) == std::string_view::npos || (full && !item.detailed))
        continue;
      runs.push_back(measure(model, item, full, times));
    }
  }
  if (runs.empty()) throw UsageError("there is no class that holds '" + wanted + "'");
  write_results(write_text(runs), json_path, json_path ? write_json(model, times, runs) : "");
  return kDone;
}

}  // namespace forewarp::cli
