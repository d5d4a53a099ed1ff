// What there is to mend in a compiled kernel: faults whose absence can be simulated, and the limits behind them.
#pragma once

#include <string>
#include <vector>

#include "accounting/counterfactual.h"
#include "report/prediction.h"

namespace forewarp::advise {

struct Mending {
  CauseKind kind;
  bool fault;        ///< of the kernel or its launch; otherwise a limit, met once the faults are mended
  const char* what;  ///< to do
  const char* cost;
};

/// All of them, in the order of the causes.
const std::vector<Mending>& mendings();

/// Whether the counters of a launch leave room for it.
bool worth_trying(const Mending&, const Prediction&, const accounting::Scene&);

/// Those limits of a launch that are worth trying: the busiest units, and latency.
std::vector<CauseKind> limits_of(const Prediction&);

}  // namespace forewarp::advise
