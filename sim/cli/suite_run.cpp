#include "cli/suite_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>

#include "cli/output.h"
#include "cli/pipeline.h"
#include "cli/places.h"
#include "cli/workers.h"

namespace forewarp::cli {

namespace {

/// One case on all GPUs that run the same code, traced once; or those of its launches that ran at one clock.
struct Job {
  std::vector<std::size_t> runs;  ///< in step with the models
  std::vector<const GpuModel*> models;
  std::size_t trace = 0;
  Workload workload;
  const Case* item = nullptr;
  std::vector<int> launches;  ///< those that were measured; empty: all
  double size = 0;            ///< warp instructions that were measured
};

std::vector<std::string> measured_cases(const std::vector<MeasuredLaunch>& launches) {
  std::vector<std::string> ids;
  for (const MeasuredLaunch& m : launches)
    if (std::find(ids.begin(), ids.end(), m.case_id) == ids.end()) ids.push_back(m.case_id);
  return ids;
}

class Planner {
 public:
  Planner(const Suite& suite, const SuiteOptions& options) : suite_(suite), options_(options) {}

  SuiteRun plan(std::size_t run_index, const GpuModel& model, std::vector<Job>& jobs) {
    SuiteRun run;
    run.gpu = model.name;
    for (const SuiteTrace& trace : suite_.traces) {
      std::vector<MeasuredLaunch> measured = read_if_there(model.name, trace.stem);
      std::vector<std::string> ids = trace.cases;
      if (ids.empty())
        ids = measured_cases(model.name == suite_.gpu ? measured : read_if_there(suite_.gpu, trace.stem));
      if (keep_part(trace, ids)) continue;
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
  /// Leaves the cases of the suite's part; true when there were others only.
  bool keep_part(const SuiteTrace& trace, std::vector<std::string>& ids) const {
    const bool sealed = suite_.part == SuitePart::Sealed;
    const auto other = [&](const std::string& id) { return is_sealed(trace.stem, id) != sealed; };
    const auto found = std::find_if(trace.cases.begin(), trace.cases.end(), other);
    if (found != trace.cases.end())
      throw InputError(trace.where, "case " + *found + " is " + (sealed ? "not sealed" : "sealed"),
                       "leave it to the other part's suite");
    return std::erase_if(ids, other) > 0 && ids.empty();
  }

  std::vector<MeasuredLaunch> read_if_there(const std::string& gpu, const std::string& stem) const {
    const std::string path = profile_file(gpu, stem);
    if (!std::filesystem::exists(path)) return {};
    return read_profile(path, stem, suite_.caches);
  }

  void add_jobs(std::size_t run, std::size_t place, const GpuModel& model, const SuiteTrace& trace,
                const std::vector<std::string>& ids, std::vector<Job>& jobs) {
    std::optional<Workload>& workload = workloads_[{trace.stem, model.sm}];
    if (!workload) workload = load_workload(trace_cubin(trace.stem, model.sm), trace_launch_file(trace.stem));
    const std::vector<MeasuredLaunch> measured = read_if_there(suite_.gpu, trace.stem);
    for (const Case* item : choose_cases(*workload->launches, ids)) {
      const auto known = std::find_if(jobs.begin(), jobs.end(), [&](const Job& j) { return j.item == item; });
      if (known != jobs.end()) {
        known->runs.push_back(run);
        known->models.push_back(&model);
        continue;
      }
      // A job for the launches at each clock.
      const std::size_t first = jobs.size();
      for (const MeasuredLaunch& m : measured) {
        if (m.case_id != item->id) continue;
        const GpuModel* at =
            options_.at_measured_clock && m.time_ns > 0 ? &at_clock_of(model, m.cycles / m.time_ns * 1000) : &model;
        const auto from = jobs.begin() + static_cast<std::ptrdiff_t>(first);
        auto job = std::find_if(from, jobs.end(), [&](const Job& j) { return j.models.front() == at; });
        if (job == jobs.end()) job = jobs.insert(job, {{run}, {at}, place, *workload, item, {}, 0});
        job->launches.push_back(m.launch);
        job->size += m.metric("smsp__inst_executed.sum").value_or(0);
      }
      if (jobs.size() == first) jobs.push_back({{run}, {&model}, place, *workload, item, {}, 0});
    }
  }

  /// The suite's GPU at the clock that power left its SMs, to 10 MHz: what a launch takes is compared in their cycles.
  const GpuModel& at_clock_of(const GpuModel& model, double mhz) {
    constexpr double kStep = 10, kPowerLimited = 0.97;  // a launch of 3 us is timed to 2 %
    if (mhz > kPowerLimited * model.chip.sm_clock_mhz) return model;
    const double rounded = std::round(mhz / kStep) * kStep;
    const auto [slowed, fresh] = slowed_.try_emplace(rounded);
    if (fresh) {
      std::vector<std::string> changes = options_.changes;
      changes.push_back(leaf_change("sm_clock", rounded));
      slowed->second = load_gpu_model(suite_.gpu, changes);
    }
    return slowed->second;
  }

  const Suite& suite_;
  const SuiteOptions& options_;
  std::map<std::pair<std::string, int>, std::optional<Workload>> workloads_;
  std::map<double, GpuModel> slowed_;  ///< by MHz
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
  for (const std::string& gpu : gpus) models.push_back(load_gpu_model(gpu, options.changes));
  Planner planner(suite, options);
  std::vector<Job> jobs;
  std::vector<SuiteRun> runs;
  for (std::size_t g = 0; g < models.size(); ++g) runs.push_back(planner.plan(g, models[g], jobs));

  // Largest first, so that no large one is left for a single worker at the end.
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return jobs[a].size > jobs[b].size; });
  std::vector<std::vector<std::vector<Prediction>>> by_job(jobs.size());
  std::vector<std::exception_ptr> failures;
  SimulateOptions simulation = options.simulation;
  simulation.threads = threads_for_each(options.threads, jobs.size());
  {
    Progress progress(jobs.size());
    const PredictionCache* cache = options.cache ? &*options.cache : nullptr;
    failures = run_side_by_side(jobs.size(), options.threads, false, [&](std::size_t i) {
      const Job& job = jobs[order[i]];
      progress.started(job.item->id);
      for (const GpuModel* model : job.models) check_case(*model, job.workload, *job.item);
      by_job[order[i]] = predict_case(job.models, job.workload, *job.item, simulation, job.launches, cache);
      progress.finished();
    });
  }
  std::vector<std::exception_ptr> failed(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) failed[order[i]] = failures[i];
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    for (std::size_t m = 0; m < job.models.size(); ++m) {
      SuiteRun& run = runs[job.runs[m]];
      PredictedTrace& trace = run.traces[job.trace];
      const auto names_it = [&](const ValidationFailure& f) {
        return f.stem == trace.stem && f.case_id == job.item->id;
      };
      if (failed[i] && std::none_of(run.failures.begin(), run.failures.end(), names_it))
        run.failures.push_back({trace.stem, job.item->id, message_of(failed[i])});
      if (m < by_job[i].size())
        for (Prediction& p : by_job[i][m]) trace.predictions.push_back(std::move(p));
    }
  }
  return runs;
}

}  // namespace forewarp::cli
