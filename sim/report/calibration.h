// What the calibration kernels measured beside what is simulated for them, and the numbers of a GPU file that would
// make the two agree. A quantity (kernels/micro/quantities.yaml) is a slope between two cases, so that what both share
// cancels; it names the leaves that decide it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "hardware/gpu_model.h"

namespace forewarp {

struct Quantity {
  std::string id, stem;
  std::string low, high;  ///< cases; without `low` it is all of `high`
  double divisor = 1;     ///< operations that `high` runs more
  std::string unit, metric;
  bool rate = false;  ///< divisor per difference instead of difference per divisor
  std::vector<std::string> leaves;
};

/// InputError with file, line and column for anything that is not as it should be.
std::vector<Quantity> read_quantities(const std::string& path);

/// A metric of one case: median, least and most of its runs; all the same where it is simulated.
struct CaseValue {
  double value = 0, least = 0, most = 0;
};

struct Slope {
  double value = 0;
  double spread = 0;  ///< half of what the runs' least and most leave
};

/// Nothing where `high` is not the larger.
std::optional<Slope> slope_of(const Quantity&, const CaseValue& low, const CaseValue& high);

/// What a leaf would have to be for one quantity to come out as measured, by the slope of the quantity with the leaf.
struct LeafProposal {
  Leaf leaf;
  double now = 0, proposed = 0;
  double response = 0;  ///< percent of the quantity for a percent of the leaf
};

struct CalibratedQuantity {
  Quantity quantity;
  Slope measured, simulated;
  double error_pct = 0;  ///< signed
  bool within_spread = false;
  std::vector<LeafProposal> proposals;
};

/// The proposal that follows when a leaf of `now` gives `simulated` and one of `other` gives `simulated_other`; nothing
/// where the quantity does not follow the leaf, or only one far from `now` would do.
std::optional<double> propose(double now, double other, double measured, double simulated, double simulated_other);

std::string write_calibration_text(const std::string& gpu, const std::vector<CalibratedQuantity>&,
                                   const std::vector<Leaf>& leaves);
std::string write_calibration_json(const std::string& gpu, const std::vector<CalibratedQuantity>&);

}  // namespace forewarp
