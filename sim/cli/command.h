// The subcommands of `forewarp`, one file each.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace forewarp::cli {

enum ExitCode : int { kDone = 0, kBadInput = 1, kUsage = 2, kOutsideTolerance = 3, kInternal = 4 };

/// A wrong command line: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Arguments = std::vector<std::string>;  ///< what follows the subcommand's name

int run_predict(const Arguments&);
int run_sketch(const Arguments&);
int run_sweep(const Arguments&);
int run_whatif(const Arguments&);
int run_advise(const Arguments&);
int run_trace(const Arguments&);
int run_addresses(const Arguments&);
int run_simulate(const Arguments&);
int run_emulate(const Arguments&);
int run_validate(const Arguments&);
int run_calibrate(const Arguments&);
int run_compare(const Arguments&);
int run_describe(const Arguments&);
int run_list(const Arguments&);
int run_plot(const Arguments&);
int run_report(const Arguments&);
int run_timeline(const Arguments&);
int run_bench(const Arguments&);

}  // namespace forewarp::cli
