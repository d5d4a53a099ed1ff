// Reads measured profiles, validation/profiles/<gpu>/<stem>.csv as validation/collect writes them: one row per launch.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/kernel_class.h"
#include "timing/simulate.h"

namespace forewarp {

struct MeasuredLaunch {
  std::string stem, case_id, kernel;
  int launch = 0;
  double cycles = 0, cycles_min = 0, cycles_max = 0;    ///< gpc__cycles_elapsed.max: median, minimum, maximum
  double time_ns = 0;                                   ///< gpu__time_duration.sum
  std::optional<KernelClass> kind;                      ///< from the counters of the cold pass, for warm rows too
  std::vector<std::pair<std::string, double>> metrics;  ///< by Nsight Compute's names, in the file's order

  std::optional<double> metric(const std::string& name) const;
};

/// InputError with file and line for a row that does not match the header, a missing column or a malformed number. Rows
/// without cycles for this cache state are skipped.
std::vector<MeasuredLaunch> read_profile(const std::string& path, const std::string& stem, CacheState);

}  // namespace forewarp
