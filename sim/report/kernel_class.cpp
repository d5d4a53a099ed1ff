#include "report/kernel_class.h"

#include <algorithm>

namespace forewarp {

namespace {

constexpr double kDivergentLanes = 24, kStridedBytes = 16, kBusyPct = 60;

using Metrics = std::vector<std::pair<std::string, double>>;

std::optional<double> find(const Metrics& metrics, const std::string& name) {
  const auto found = std::find_if(metrics.begin(), metrics.end(), [&](const auto& m) { return m.first == name; });
  if (found == metrics.end()) return std::nullopt;
  return found->second;
}

/// Bytes requested per global sector, over loads and stores; nothing if there are neither.
std::optional<double> bytes_per_sector(const Metrics& metrics) {
  double sectors = 0, bytes = 0;
  for (const char* op : {"ld", "st"}) {
    const auto moved = find(metrics, std::string("l1tex__t_sectors_pipe_lsu_mem_global_op_") + op + ".sum");
    const auto used =
        find(metrics, std::string("smsp__sass_average_data_bytes_per_sector_mem_global_op_") + op + ".ratio");
    if (!moved || !used) continue;
    sectors += *moved;
    bytes += *moved * *used;
  }
  if (sectors == 0) return std::nullopt;
  return bytes / sectors;
}

}  // namespace

const char* kernel_class_name(KernelClass c) {
  static constexpr std::array<const char*, kKernelClasses> kNames = {"memory-bound", "compute-bound", "latency-bound",
                                                                     "divergent", "strided"};
  return kNames[static_cast<std::size_t>(c)];
}

std::optional<KernelClass> classify_kernel(const Metrics& metrics) {
  const auto lanes = find(metrics, "smsp__thread_inst_executed_per_inst_executed.ratio");
  const auto compute = find(metrics, "sm__throughput.avg.pct_of_peak_sustained_elapsed");
  const auto memory = find(metrics, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed");
  if (!lanes || !compute || !memory) return std::nullopt;
  if (*lanes < kDivergentLanes) return KernelClass::Divergent;
  if (bytes_per_sector(metrics).value_or(32) < kStridedBytes) return KernelClass::Strided;
  if (std::max(*compute, *memory) < kBusyPct) return KernelClass::Latency;
  return *compute > *memory ? KernelClass::Compute : KernelClass::Memory;
}

}  // namespace forewarp
