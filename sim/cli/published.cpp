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

Prediction predict_one(const GpuModel& model, const Workload& workload, const std::string& id, int launch,
                       const SuiteOptions& options) {
  const Case& item = choose_one_case(*workload.launches, {id});
  check_case(model, workload, item);
  const GpuModel* models[] = {&model};
  auto predicted =
      predict_case(models, workload, item, options.simulation, {launch}, options.cache ? &*options.cache : nullptr);
  if (predicted.front().empty()) throw InputError("case " + id + " has no launch " + std::to_string(launch));
  return std::move(predicted.front().front());
}

}  // namespace

std::vector<PublishedResult> run_published(const SuiteOptions& options) {
  std::vector<PublishedResult> results;
  for (PublishedRow& row : read_all()) results.push_back({std::move(row), 0, ""});
  std::map<std::string, GpuModel> models;
  std::map<std::pair<std::string, int>, Workload> workloads;
  for (const PublishedResult& r : results) {
    if (!models.contains(r.row.gpu)) models[r.row.gpu] = load_gpu_model(r.row.gpu, options.changes);
    const int sm = models[r.row.gpu].sm;
    if (!workloads.contains({r.row.stem, sm}))
      workloads[{r.row.stem, sm}] = load_workload(trace_cubin(r.row.stem, sm), trace_launch_file(r.row.stem), false);
  }
  Progress progress(results.size());
  const auto failures = run_side_by_side(results.size(), options.threads, false, [&](std::size_t i) {
    PublishedResult& r = results[i];
    progress.started(r.row.id);
    const GpuModel& model = models.at(r.row.gpu);
    const Workload& workload = workloads.at({r.row.stem, model.sm});
    const Prediction high = predict_one(model, workload, r.row.case_id, r.row.launch, options);
    std::optional<Prediction> low;
    if (!r.row.low.empty()) low = predict_one(model, workload, r.row.low, r.row.launch, options);
    r.predicted = predicted_value(r.row, high, low ? &*low : nullptr);
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
