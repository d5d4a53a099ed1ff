// forewarp validate --suite published: compares predictions with measurements that others published.
#include "report/published.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/places.h"
#include "cli/suite_run.h"
#include "cli/workers.h"

namespace forewarp::cli {

namespace {

std::vector<PublishedRow> read_all() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(published_folder()))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<PublishedRow> rows;
  for (const std::string& file : files)
    for (PublishedRow& row : read_published(file)) rows.push_back(std::move(row));
  return rows;
}

PredictedTime predict_time(const GpuModel& model, const Workload& workload, const std::string& id, int launch,
                           const SuiteOptions& options) {
  const Case& item = choose_one_case(*workload.launches, {id});
  check_case(model, workload, item);
  const GpuModel* models[] = {&model};
  std::vector<int> chosen;
  if (launch != PublishedRow::kAllLaunches) chosen.push_back(launch);
  const auto predicted =
      predict_case(models, workload, item, options.simulation, chosen, options.cache ? &*options.cache : nullptr);
  if (predicted.front().empty()) throw InputError("case " + id + " has no launch " + std::to_string(launch));
  PredictedTime time;
  for (const Prediction& p : predicted.front()) {
    time.cycles += p.cycles();
    time.ns += p.time_ns();
    time.stream_gap_us = p.costs.stream_gap_us;
    time.hand_over_us = p.costs.hand_over_us;
  }
  return time;
}

/// The row's GPU, at the clock that its source states.
GpuModel model_of(const PublishedRow& row, std::vector<std::string> changes) {
  if (row.sm_clock_mhz > 0) changes.insert(changes.begin(), "chip.sm_clock_mhz=" + std::to_string(row.sm_clock_mhz));
  return load_gpu_model(row.gpu, changes);
}

}  // namespace

std::vector<PublishedResult> run_published(const SuiteOptions& options) {
  std::vector<PublishedResult> results;
  for (PublishedRow& row : read_all()) results.push_back({std::move(row), 0, ""});
  std::map<std::pair<std::string, double>, GpuModel> models;
  std::map<std::pair<std::string, int>, Workload> workloads;
  for (const PublishedResult& r : results) {
    GpuModel& model = models[{r.row.gpu, r.row.sm_clock_mhz}];
    if (model.name.empty()) model = model_of(r.row, options.changes);
    const int sm = model.sm;
    if (!workloads.contains({r.row.stem, sm}))
      workloads[{r.row.stem, sm}] = load_workload(trace_cubin(r.row.stem, sm), trace_launch_file(r.row.stem));
  }
  Progress progress(results.size());
  const auto failures = run_side_by_side(results.size(), options.threads, false, [&](std::size_t i) {
    PublishedResult& r = results[i];
    progress.started(r.row.id);
    const GpuModel& model = models.at({r.row.gpu, r.row.sm_clock_mhz});
    const Workload& workload = workloads.at({r.row.stem, model.sm});
    PredictedTime time = predict_time(model, workload, r.row.case_id, r.row.launch, options);
    if (!r.row.low.empty()) {
      const PredictedTime low = predict_time(model, workload, r.row.low, r.row.launch, options);
      time.cycles -= low.cycles;
      time.ns -= low.ns;
    }
    r.predicted = predicted_value(r.row, time);
    progress.finished();
  });
  for (std::size_t i = 0; i < results.size(); ++i) try {
      if (failures[i]) std::rethrow_exception(failures[i]);
    } catch (const std::exception& e) {  // listed in the report rather than ending the run
      results[i].failure = e.what();
    }
  return results;
}

}  // namespace forewarp::cli
