// From files to predictions: the stages in order, for every command that predicts.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "accounting/accounting.h"
#include "accounting/counterfactual.h"
#include "cache/prediction_cache.h"
#include "hardware/gpu_model.h"
#include "launch/launch.h"
#include "program/program.h"
#include "report/prediction.h"
#include "timing/simulate.h"

namespace forewarp::cli {

/// An image with its launches.
struct Workload {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const LaunchFile> launches;
  bool assume_opcodes = false;
};

/// How an image is read for a command: whether unknown opcodes are assumed, the architecture to take from an image that
/// holds several (0: the newest), disassembly made before.
struct ImageChoice {
  bool assume_opcodes = false;
  int sm = 0;
  const TextStore* texts = nullptr;
};

/// Loads the kernels that the launch file names. Warnings about the image go to standard error.
Workload load_workload(const std::string& image, const std::string& launch_file, const ImageChoice& = {});

/// The cases named by `ids`, in the file's order, or all of them. An unknown id is an InputError that lists the cases.
std::vector<const Case*> choose_cases(const LaunchFile&, const std::vector<std::string>& ids);
/// The same for a command that takes exactly one.
const Case& choose_one_case(const LaunchFile&, const std::vector<std::string>& ids);

/// Checks a case before it is traced: InputError if a kernel is missing or ambiguous, a block does not fit on an SM, or
/// arguments do not match the kernel.
void check_case(const GpuModel&, const Workload&, const Case&);

/// Traces the launches of a case one after another; a trace lives only during the call that receives it.
void for_each_trace(const Workload&, const Case&, const Effort&, const std::function<void(const KernelTrace&)>& use);

/// A traced launch of a case on a GPU, and what a sequence of launches has left before it (null: no sequence).
struct LaunchScene {
  accounting::Scene scene;
  std::shared_ptr<const CacheHistory> before;
};

/// All launches of a case, in order. Warnings of the tracing go to standard error.
std::vector<LaunchScene> launch_scenes(const GpuModel&, const Workload&, const Case&, const SimulateOptions&,
                                       const PredictionCache*);

/// Occupancy, timing and report of one traced launch.
Prediction predict_trace(const GpuModel&, std::shared_ptr<const KernelTrace>, const SimulateOptions&, Causes);

/// The last few traces in memory, for predictions that follow each other or run side by side: each is made once.
class TraceShelf {
 public:
  explicit TraceShelf(std::size_t most) : most_(most) {}
  PredictionCache::Traced get(const ContentKey&, const std::function<PredictionCache::Traced()>& make);

 private:
  struct Place {
    std::mutex mutex;
    std::optional<PredictionCache::Traced> traced;
  };
  const std::size_t most_;
  std::mutex mutex_;
  std::list<std::pair<ContentKey, std::shared_ptr<Place>>> places_;  ///< last used first
};

/// Predicts the launches of a case in order on each GPU: all of them, or those listed in `only`. Each is traced once
/// for all GPUs, and for all that share a shelf. With a cache, finished work is taken from it and new work is stored.
std::vector<std::vector<Prediction>> predict_case(std::span<const GpuModel* const>, const Workload&, const Case&,
                                                  const SimulateOptions&, const std::vector<int>& only,
                                                  const PredictionCache* cache, TraceShelf* shelf = nullptr,
                                                  Causes = Causes::Counted);

}  // namespace forewarp::cli
