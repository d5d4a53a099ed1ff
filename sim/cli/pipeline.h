// From files to predictions: the stages in a row, for every command that predicts.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cache/prediction_cache.h"
#include "hardware/gpu_model.h"
#include "launch/launch.h"
#include "program/program.h"
#include "report/prediction.h"
#include "timing/simulate.h"

namespace forewarp::cli {

/// A cubin with its launches.
struct Workload {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const LaunchFile> launches;
  bool assume_opcodes = false;
};

/// Warnings about the image go to standard error.
Workload load_workload(const std::string& image, const std::string& launch_file, bool assume_opcodes);

/// The cases named by `ids` in the file's order, or all of them. InputError that lists the cases for an unknown id.
std::vector<const Case*> choose_cases(const LaunchFile&, const std::vector<std::string>& ids);
/// The same where there can be only one.
const Case& choose_one_case(const LaunchFile&, const std::vector<std::string>& ids);

/// What can be said about a case before it is traced: InputError when a kernel is missing or ambiguous, a block does
/// not fit the GPU, or arguments do not fit the kernel.
void check_case(const GpuModel&, const Workload&, const Case&);

/// Traces the launches of a case one after another; a trace lives no longer than the call that receives it.
void for_each_trace(const Workload&, const Case&, const std::function<void(const KernelTrace&)>& use);

/// Occupancy, timing and report of one traced launch.
Prediction predict_trace(const GpuModel&, const KernelTrace&, const SimulateOptions&);

/// The launches of a case in order, on each of the GPUs: all of them, or those whose numbers are in `only`. Each is
/// traced once for all GPUs. With a cache, what was made before is taken from it, and what is new is kept there.
std::vector<std::vector<Prediction>> predict_case(std::span<const GpuModel* const>, const Workload&, const Case&,
                                                  const SimulateOptions&, const std::vector<int>& only,
                                                  const PredictionCache* cache);

}  // namespace forewarp::cli
