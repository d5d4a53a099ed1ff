#include "cli/pipeline.h"

#include <algorithm>
#include <optional>
#include <set>

#include "accounting/accounting.h"
#include "base/error.h"
#include "cli/output.h"
#include "emulation/emulation.h"
#include "launch/parameters.h"

namespace forewarp::cli {

namespace {

std::string known_cases(const LaunchFile& file) {
  std::string ids;
  for (const Case& c : file.cases) ids += (ids.empty() ? "" : ", ") + c.id;
  return "cases: " + ids;
}

TraceOptions trace_options(const Workload& workload, const Effort& effort, unsigned threads, int sm_count,
                           std::vector<std::string>& warnings) {
  TraceOptions options;
  options.limit(effort);
  options.emulation.sm_count = sm_count;
  options.threads = threads;
  options.emulation.ignore_unknown_instructions = workload.assume_opcodes;
  options.emulation.warnings = &warnings;
  return options;
}

/// What the trace took for granted where data decides the way.
void add_sampling_warnings(const LaunchInfo& launch, std::vector<std::string>& warnings) {
  if (launch.inferred_blocks > 0) {
    const std::uint64_t all = launch.sampled_blocks + launch.inferred_blocks;
    warnings.push_back("blocks of this kernel differ by more than their place; " +
                       std::to_string(launch.sampled_blocks) + " of " + std::to_string(all) + " were followed, which " +
                       (!launch.samples_differ ? "all went the same way"
                        : !launch.counted.empty()
                            ? "did not go the same way: counts are of all blocks, timing takes these for all"
                            : "did not go the same way: counts are estimates"));
  }
  if (launch.blocks_wait)
    warnings.push_back("blocks wait for what other blocks write: how often each asks was settled by running " +
                       std::to_string(launch.side_by_side) +
                       " blocks side by side, the one with the fewest instructions first, not by their time on this "
                       "GPU; a wait for a slower block is longer there");
  else if (launch.side_by_side > 0)
    warnings.push_back(
        "blocks draw their work from an atomic counter: which block gets what was settled by running " +
        std::to_string(launch.side_by_side) +
        " blocks side by side, the one with the fewest instructions first, not by their time on this GPU; "
        "a block that waits longer for memory than others draws less there");
  if (launch.draws_unfollowed)
    warnings.push_back(
        "blocks draw their work from an atomic counter, and there is too much of it to follow: the first block is "
        "taken to "
        "draw all of it, so cycles and work by block mean little");
  if (launch.inputs_incomplete)
    warnings.push_back(
        "data decides the way of this kernel, and the launches before it are too long to be run for their results");
}

/// Blocks are followed one after another, so none comes between another's load and its compare-and-swap.
void add_contention_warning(const Kernel& kernel, std::vector<std::string>& warnings) {
  const auto swaps = [](const Instruction& in) {
    return in.memory == MemoryKind::Atomic && in.space != MemorySpace::Shared && in.has(Modifier::CAS);
  };
  if (std::any_of(kernel.instructions.begin(), kernel.instructions.end(), swaps))
    warnings.push_back(
        "compare-and-swap on global memory: a loop that tries again when another block was first makes no second "
        "tries here; on a GPU it does, and takes longer");
}

}  // namespace

Workload load_workload(const std::string& image, const std::string& launch_file, const ImageChoice& choice) {
  std::vector<std::string> warnings;
  Workload workload;
  workload.assume_opcodes = choice.assume_opcodes;
  auto launches = std::make_shared<LaunchFile>(read_launch_file(launch_file));
  std::set<std::string> names;
  for (const Case& item : launches->cases)
    for (const Launch& launch : item.launches) names.insert(launch.kernel);
  ImageOptions options;
  options.sm = choice.sm;
  options.kernels.emplace(names.begin(), names.end());
  options.unknown = choice.assume_opcodes ? UnknownOpcode::Assume : UnknownOpcode::Reject;
  options.warnings = &warnings;
  options.texts = choice.texts;
  workload.program = std::make_shared<const Program>(load_program(image, options));
  for (const std::string& warning : warnings) warn(warning);
  settle_clusters(*workload.program, *launches);
  workload.launches = std::move(launches);
  return workload;
}

std::vector<const Case*> choose_cases(const LaunchFile& file, const std::vector<std::string>& ids) {
  for (const std::string& id : ids)
    if (std::none_of(file.cases.begin(), file.cases.end(), [&](const Case& c) { return c.id == id; }))
      throw InputError({file.path}, "there is no case '" + id + "'", known_cases(file));
  std::vector<const Case*> chosen;
  for (const Case& c : file.cases)
    if (ids.empty() || std::find(ids.begin(), ids.end(), c.id) != ids.end()) chosen.push_back(&c);
  return chosen;
}

const Case& choose_one_case(const LaunchFile& file, const std::vector<std::string>& ids) {
  const std::vector<const Case*> chosen = choose_cases(file, ids);
  if (chosen.size() != 1) throw InputError({file.path}, "one case is needed: name it with --case", known_cases(file));
  return *chosen.front();
}

void check_case(const GpuModel& model, const Workload& workload, const Case& item) {
  if (workload.program->sm != model.sm) {
    throw InputError({workload.program->path},
                     "is code for sm_" + std::to_string(workload.program->sm) + ", but " + model.name + " runs sm_" +
                         std::to_string(model.sm),
                     "give the image that was compiled for sm_" + std::to_string(model.sm));
  }
  const std::vector<std::uint64_t> addresses = place_buffers(item);
  for (const Launch& launch : item.launches) {
    if (model.sm < 90 && launch.cluster.count() > 1)
      throw InputError(launch.where, "launches clusters, which " + model.name + " does not have",
                       "take `cluster` out, or predict for a GPU that runs sm_90");
    const Kernel& kernel = workload.program->kernel(launch.kernel);
    std::vector<ParameterSlot> slots;
    for (const Parameter& p : kernel.parameters) slots.push_back({p.offset, p.size});
    pack_parameters(launch, addresses, slots);
    compute_occupancy(model, kernel, launch.grid, launch.block, launch.dynamic_shared_bytes);
  }
}

void for_each_trace(const Workload& workload, const Case& item, const Effort& effort,
                    const std::function<void(const KernelTrace&)>& use) {
  std::vector<std::string> warnings;
  CaseTracer tracer(*workload.program, item, trace_options(workload, effort, 1, 0, warnings));
  for (std::size_t i = 0; i < item.launches.size(); ++i) use(*tracer.trace(static_cast<int>(i)));
  for (const std::string& warning : warnings) warn(item.id + ": " + warning);
}

namespace {

void check_architecture(const GpuModel& model, const KernelTrace& trace) {
  FW_CHECK(trace.kernel != nullptr, "a trace without its kernel");
  if (trace.sm == model.sm) return;
  throw InputError("case " + trace.launch.case_id + " is a trace of code for sm_" + std::to_string(trace.sm) +
                   ", but " + model.name + " runs sm_" + std::to_string(model.sm));
}

Occupancy occupancy_of(const GpuModel& model, const KernelTrace& trace) {
  return compute_occupancy(model, *trace.kernel, trace.launch.grid, trace.launch.block,
                           trace.launch.dynamic_shared_bytes);
}

Prediction make_prediction(const GpuModel& model, const std::shared_ptr<const KernelTrace>& shared,
                           const SimulateOptions& options, const CacheHistory* before, Causes causes,
                           const std::function<TimingResult(const Occupancy&)>& time) {
  const KernelTrace& trace = *shared;
  check_architecture(model, trace);
  const Occupancy occupancy = occupancy_of(model, trace);
  const TimingResult timing = time(occupancy);
  Prediction p = build_prediction(model, *trace.kernel, trace, occupancy, timing, options.caches);
  if (causes == Causes::Simulated) {
    SimulateOptions unwatched = options;
    unwatched.record.reset();
    accounting::account({model, shared, occupancy}, timing, unwatched, before, p);
  }
  add_sampling_warnings(trace.launch, p.warnings);
  add_contention_warning(*trace.kernel, p.warnings);
  return p;
}

/// The traces of a case's launches, from the cache where they are there.
class LaunchTracer {
 public:
  /// `sm_count`: what the kernels are told, 0 where none of them asks.
  LaunchTracer(const Workload& workload, const Case& item, const SimulateOptions& options, int sm_count,
               const PredictionCache* cache, TraceShelf* shelf)
      : workload_(workload),
        item_(item),
        effort_(options.effort),
        threads_(options.threads),
        sm_count_(sm_count),
        cache_(cache),
        shelf_(shelf) {}

  /// Every launch will be asked for again.
  void keep_all() { kept_.resize(item_.launches.size()); }

  /// Of this launch; the key is made only with a cache or a shelf.
  PredictionCache::Traced trace(int launch, ContentKey& key) {
    const auto place = static_cast<std::size_t>(launch);
    if (cache_ != nullptr || shelf_ != nullptr)
      key = trace_key(*workload_.program, item_, launch, workload_.assume_opcodes, sm_count_, effort_);
    if (place < kept_.size()) {
      if (!kept_[place]) kept_[place] = find(launch, key);
      return *kept_[place];
    }
    return find(launch, key);
  }

 private:
  PredictionCache::Traced find(int launch, const ContentKey& key) {
    if (shelf_ == nullptr) return make(launch, key);
    return shelf_->get(key, [&] { return make(launch, key); });
  }

  PredictionCache::Traced make(int launch, const ContentKey& key) {
    if (cache_ != nullptr) {
      if (auto found = cache_->trace(key)) return std::move(*found);
    }
    if (!tracer_)
      tracer_.emplace(*workload_.program, item_, trace_options(workload_, effort_, threads_, sm_count_, warnings_));
    warnings_.clear();
    PredictionCache::Traced traced{tracer_->trace(launch), warnings_};
    if (cache_ != nullptr) cache_->keep(key, traced);
    return traced;
  }

  const Workload& workload_;
  const Case& item_;
  Effort effort_;
  unsigned threads_;
  int sm_count_;
  const PredictionCache* cache_;
  TraceShelf* shelf_;
  std::vector<std::string> warnings_;
  std::optional<CaseTracer> tracer_;
  std::vector<std::optional<PredictionCache::Traced>> kept_;
};

/// What all launches of a case leave, one after another.
CacheHistory run_through(const GpuModel& model, const Case& item, LaunchTracer& tracer, unsigned threads) {
  CacheHistory history(model);
  for (int i = 0; i < static_cast<int>(item.launches.size()); ++i) {
    ContentKey key;
    const PredictionCache::Traced traced = tracer.trace(i, key);
    history.run(*traced.trace, occupancy_of(model, *traced.trace), threads);
  }
  return history;
}

}  // namespace

PredictionCache::Traced TraceShelf::get(const ContentKey& key, const std::function<PredictionCache::Traced()>& make) {
  std::shared_ptr<Place> place;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(places_.begin(), places_.end(), [&](const auto& p) { return p.first == key; });
    if (known != places_.end())
      places_.splice(places_.begin(), places_, known);
    else
      places_.emplace_front(key, std::make_shared<Place>());
    place = places_.front().second;
    if (places_.size() > most_) places_.pop_back();
  }
  const std::lock_guard lock(place->mutex);
  if (!place->traced) place->traced = make();
  return *place->traced;
}

std::vector<LaunchScene> launch_scenes(const GpuModel& model, const Workload& workload, const Case& item,
                                       const SimulateOptions& options, const PredictionCache* cache) {
  const bool asks = std::any_of(item.launches.begin(), item.launches.end(), [&](const Launch& l) {
    return emulation::reads_sm_count(workload.program->kernel(l.kernel));
  });
  LaunchTracer tracer(workload, item, options, asks ? model.chip.sm_count : 0, cache, nullptr);
  tracer.keep_all();
  std::vector<LaunchScene> scenes;
  for (int i = 0; i < static_cast<int>(item.launches.size()); ++i) {
    ContentKey key;
    const PredictionCache::Traced traced = tracer.trace(i, key);
    check_architecture(model, *traced.trace);
    for (const std::string& warning : traced.warnings) warn(item.id + ": " + warning);
    scenes.push_back({{model, traced.trace, occupancy_of(model, *traced.trace)}, nullptr});
  }
  if (options.caches != CacheState::Sequence) return scenes;
  for (std::size_t i = 0; i < scenes.size(); ++i) {  // each needs a history of its own, for as long as it is there
    auto history = std::make_shared<CacheHistory>(run_through(model, item, tracer, options.threads));
    for (std::size_t before = 0; before < i; ++before)
      history->run(*scenes[before].scene.trace, scenes[before].scene.occupancy, options.threads);
    scenes[i].before = std::move(history);
  }
  return scenes;
}

Prediction predict_trace(const GpuModel& model, std::shared_ptr<const KernelTrace> trace,
                         const SimulateOptions& options, Causes causes) {
  return make_prediction(model, trace, options, nullptr, causes,
                         [&](const Occupancy& occupancy) { return simulate(model, *trace, occupancy, options); });
}

std::vector<std::vector<Prediction>> predict_case(std::span<const GpuModel* const> models, const Workload& workload,
                                                  const Case& item, const SimulateOptions& options,
                                                  const std::vector<int>& only, const PredictionCache* cache,
                                                  TraceShelf* shelf, Causes causes) {
  std::vector<std::vector<Prediction>> predictions(models.size());
  const bool asks = std::any_of(item.launches.begin(), item.launches.end(), [&](const Launch& l) {
    return emulation::reads_sm_count(workload.program->kernel(l.kernel));
  });
  if (asks && models.size() > 1) {  // a trace for each
    for (std::size_t m = 0; m < models.size(); ++m)
      predictions[m] =
          std::move(predict_case(models.subspan(m, 1), workload, item, options, only, cache, shelf, causes).front());
    return predictions;
  }
  LaunchTracer tracer(workload, item, options, asks ? models.front()->chip.sm_count : 0, cache, shelf);
  std::vector<CacheHistory> before;
  if (options.caches == CacheState::Sequence) {
    tracer.keep_all();
    for (const GpuModel* model : models) before.push_back(run_through(*model, item, tracer, options.threads));
  }
  for (int i = 0; i < static_cast<int>(item.launches.size()); ++i) {
    const bool wanted = only.empty() || std::find(only.begin(), only.end(), i) != only.end();
    if (!wanted && before.empty()) continue;
    ContentKey key;
    const PredictionCache::Traced traced = tracer.trace(i, key);
    for (std::size_t m = 0; m < models.size(); ++m) {
      const GpuModel& model = *models[m];
      const CacheHistory* history = before.empty() ? nullptr : &before[m];
      const auto time = [&](const Occupancy& occupancy) {
        // A record is not kept.
        if (cache == nullptr || options.record) return simulate(model, *traced.trace, occupancy, options, history);
        const ContentKey timed = timing_key(key, model, options);
        if (auto found = cache->timing(timed)) return std::move(*found);
        TimingResult result = simulate(model, *traced.trace, occupancy, options, history);
        cache->keep(timed, result);
        return result;
      };
      if (!wanted) {
        before[m].run(*traced.trace, occupancy_of(model, *traced.trace));
        continue;
      }
      Prediction p = make_prediction(model, traced.trace, options, history, causes, time);
      p.warnings.insert(p.warnings.begin(), traced.warnings.begin(), traced.warnings.end());
      predictions[m].push_back(std::move(p));
      if (!before.empty()) before[m].run(*traced.trace, occupancy_of(model, *traced.trace));
    }
  }
  return predictions;
}

}  // namespace forewarp::cli
