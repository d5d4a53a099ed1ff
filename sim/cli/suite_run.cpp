#include "cli/suite_run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/places.h"
#include "cli/workers.h"

namespace forewarp::cli {

namespace {

/// One case on one GPU.
struct Job {
  std::size_t run = 0, trace = 0;
  const GpuModel* model = nullptr;
  Workload workload;
  const Case* item = nullptr;
  std::vector<int> launches;  ///< those that were measured; empty: all
};

std::vector<std::string> measured_cases(const std::vector<MeasuredLaunch>& launches) {
  std::vector<std::string> ids;
  for (const MeasuredLaunch& m : launches)
    if (std::find(ids.begin(), ids.end(), m.case_id) == ids.end()) ids.push_back(m.case_id);
  return ids;
}

class Planner {
 public:
  explicit Planner(const Suite& suite) : suite_(suite) {}

  SuiteRun plan(std::size_t run_index, const GpuModel& model, std::vector<Job>& jobs) {
    SuiteRun run;
    run.gpu = model.name;
    for (const SuiteTrace& trace : suite_.traces) {
      std::vector<MeasuredLaunch> measured = read_if_there(model.name, trace.stem);
      std::vector<std::string> ids = trace.cases;
      if (ids.empty())
        ids = measured_cases(model.name == suite_.gpu ? measured : read_if_there(suite_.gpu, trace.stem));
      if (ids.empty())
        run.unmeasured.push_back({trace.stem, "(any case)", "there is no measured profile for " + suite_.gpu});
      for (MeasuredLaunch& m : measured)
        if (std::find(ids.begin(), ids.end(), m.case_id) != ids.end()) run.measured.push_back(std::move(m));
      for (const std::string& id : ids) {
        if (std::none_of(run.measured.begin(), run.measured.end(),
                         [&](const MeasuredLaunch& m) { return m.stem == trace.stem && m.case_id == id; }))
          run.unmeasured.push_back({trace.stem, id, "there is no measured profile for " + model.name});
      }
      if (!ids.empty()) add_jobs(run_index, run.traces.size(), model, trace, ids, jobs);
      run.traces.push_back({trace.stem, {}});
    }
    return run;
  }

 private:
  std::vector<MeasuredLaunch> read_if_there(const std::string& gpu, const std::string& stem) const {
    const std::string path = profile_file(gpu, stem);
    if (!std::filesystem::exists(path)) return {};
    return read_profile(path, stem, suite_.caches);
  }

  void add_jobs(std::size_t run, std::size_t place, const GpuModel& model, const SuiteTrace& trace,
                const std::vector<std::string>& ids, std::vector<Job>& jobs) {
    std::optional<Workload>& workload = workloads_[{trace.stem, model.sm}];
    if (!workload) workload = load_workload(trace_cubin(trace.stem, model.sm), trace_launch_file(trace.stem), false);
    const std::vector<MeasuredLaunch> measured = read_if_there(suite_.gpu, trace.stem);
    for (const Case* item : choose_cases(*workload->launches, ids)) {
      std::vector<int> launches;
      for (const MeasuredLaunch& m : measured)
        if (m.case_id == item->id) launches.push_back(m.launch);
      jobs.push_back({run, place, &model, *workload, item, std::move(launches)});
    }
  }

  const Suite& suite_;
  std::map<std::pair<std::string, int>, std::optional<Workload>> workloads_;
};

std::string message_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {  // listed in the report rather than ending the run
    return e.what();
  }
}

}  // namespace

std::vector<SuiteRun> run_suite(const Suite& suite, const std::vector<std::string>& gpus, const SuiteOptions& options) {
  std::vector<GpuModel> models;
  for (const std::string& gpu : gpus) models.push_back(load_gpu_model(gpu));
  Planner planner(suite);
  std::vector<Job> jobs;
  std::vector<SuiteRun> runs;
  for (std::size_t g = 0; g < models.size(); ++g) runs.push_back(planner.plan(g, models[g], jobs));

  std::vector<std::vector<Prediction>> by_job(jobs.size());
  std::vector<std::exception_ptr> failures;
  {
    Progress progress(jobs.size());
    failures = run_side_by_side(jobs.size(), options.threads, false, [&](std::size_t i) {
      const Job& job = jobs[i];
      progress.started(job.item->id + " on " + job.model->name);
      check_case(*job.model, job.workload, *job.item);
      by_job[i] = predict_case(*job.model, job.workload, *job.item, options.simulation, job.launches);
      progress.finished();
    });
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SuiteRun& run = runs[jobs[i].run];
    PredictedTrace& trace = run.traces[jobs[i].trace];
    if (failures[i]) run.failures.push_back({trace.stem, jobs[i].item->id, message_of(failures[i])});
    for (Prediction& p : by_job[i]) trace.predictions.push_back(std::move(p));
  }
  return runs;
}

}  // namespace forewarp::cli
