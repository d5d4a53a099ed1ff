// Reads validation/suites.yaml: the cases of each suite, its GPU, and its tolerance.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "timing/simulate.h"

namespace forewarp {

/// Cases of one trace: traces/<stem>.yaml with traces/sm_<sm>/<stem>.cubin.
struct SuiteTrace {
  std::string stem;
  std::vector<std::string> cases;  ///< empty: every case that has a measured profile
  SourcePosition where;
};

/// Limits for the error of predicted cycles, in percent; 0 = not limited.
struct Tolerance {
  double mean_pct = 0, p90_pct = 0, worst_pct = 0;
};

/// A third of the swept cases is sealed: reported in total only, so that no model can be fitted to single ones.
enum class SuitePart { LookedAt, Sealed };

/// The rule: a case of a launch file STEM.sweep is sealed if the 32-bit FNV-1a hash of its id is a multiple of three.
bool is_sealed(const std::string& stem, const std::string& case_id);

struct Suite {
  std::string name, title, gpu;
  SuitePart part = SuitePart::LookedAt;
  CacheState caches = CacheState::Cold;
  std::vector<SuiteTrace> traces;
  Tolerance tolerance;
};

/// InputError with file, line and column if the file is invalid.
std::vector<Suite> read_suites(const std::string& path);
/// InputError that lists the suites if there is none of that name.
const Suite& find_suite(const std::vector<Suite>&, const std::string& name, const std::string& path);

}  // namespace forewarp
