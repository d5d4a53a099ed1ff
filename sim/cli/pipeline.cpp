#include "cli/pipeline.h"

#include <algorithm>

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

TraceOptions trace_options(const Workload& workload, std::vector<std::string>& warnings) {
  TraceOptions options;
  options.emulation.ignore_unknown_instructions = workload.assume_opcodes;
  options.emulation.warnings = &warnings;
  return options;
}

/// What the trace took for granted where data decides the way.
void add_sampling_warnings(const LaunchInfo& launch, std::vector<std::string>& warnings) {
  if (launch.inferred_blocks > 0) {
    const std::uint64_t all = launch.sampled_blocks + launch.inferred_blocks;
    warnings.push_back("data decides the way of this kernel; it was followed in " +
                       std::to_string(launch.sampled_blocks) + " of " + std::to_string(all) + " blocks, which " +
                       (!launch.samples_differ ? "all went the same way"
                        : !launch.counted.empty()
                            ? "did not go the same way: counts are of all blocks, timing takes these for all"
                            : "did not go the same way: counts are estimates"));
  }
  if (launch.inputs_incomplete)
    warnings.push_back(
        "data decides the way of this kernel, and the launches before it are too long to be run for their results");
}

}  // namespace

Workload load_workload(const std::string& image, const std::string& launch_file, bool assume_opcodes) {
  std::vector<std::string> warnings;
  Workload workload;
  workload.assume_opcodes = assume_opcodes;
  workload.launches = std::make_shared<const LaunchFile>(read_launch_file(launch_file));
  workload.program = std::make_shared<const Program>(
      load_program(image, assume_opcodes ? UnknownOpcode::Assume : UnknownOpcode::Reject, &warnings));
  for (const std::string& warning : warnings) warn(warning);
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
                     "give the cubin that was compiled for sm_" + std::to_string(model.sm));
  }
  const std::vector<std::uint64_t> addresses = place_buffers(item);
  for (const Launch& launch : item.launches) {
    const Kernel& kernel = workload.program->kernel(launch.kernel);
    std::vector<ParameterSlot> slots;
    for (const Parameter& p : kernel.parameters) slots.push_back({p.offset, p.size});
    pack_parameters(launch, addresses, slots);
    compute_occupancy(model, kernel, launch.grid, launch.block, launch.dynamic_shared_bytes);
  }
}

void for_each_trace(const Workload& workload, const Case& item, const std::function<void(const KernelTrace&)>& use) {
  std::vector<std::string> warnings;
  CaseTracer tracer(*workload.program, item, trace_options(workload, warnings));
  for (std::size_t i = 0; i < item.launches.size(); ++i) use(*tracer.trace(static_cast<int>(i)));
  for (const std::string& warning : warnings) warn(item.id + ": " + warning);
}

Prediction predict_trace(const GpuModel& model, const KernelTrace& trace, const SimulateOptions& options) {
  FW_CHECK(trace.kernel != nullptr, "a trace without its kernel");
  if (trace.sm != model.sm) {
    throw InputError("case " + trace.launch.case_id + " is a trace of code for sm_" + std::to_string(trace.sm) +
                     ", but " + model.name + " runs sm_" + std::to_string(model.sm));
  }
  const Occupancy occupancy =
      compute_occupancy(model, *trace.kernel, trace.launch.grid, trace.launch.block, trace.launch.dynamic_shared_bytes);
  const TimingResult timing = simulate(model, trace, occupancy, options);
  Prediction p = build_prediction(model, *trace.kernel, trace, occupancy, timing, options.caches);
  add_sampling_warnings(trace.launch, p.warnings);
  return p;
}

std::vector<Prediction> predict_case(const GpuModel& model, const Workload& workload, const Case& item,
                                     const SimulateOptions& options, const std::vector<int>& only) {
  std::vector<Prediction> predictions;
  std::vector<std::string> warnings;
  CaseTracer tracer(*workload.program, item, trace_options(workload, warnings));
  for (std::size_t i = 0; i < item.launches.size(); ++i) {
    if (!only.empty() && std::find(only.begin(), only.end(), static_cast<int>(i)) == only.end()) continue;
    warnings.clear();
    const std::shared_ptr<KernelTrace> trace = tracer.trace(static_cast<int>(i));
    Prediction p = predict_trace(model, *trace, options);
    p.warnings.insert(p.warnings.begin(), warnings.begin(), warnings.end());
    predictions.push_back(std::move(p));
  }
  return predictions;
}

}  // namespace forewarp::cli
