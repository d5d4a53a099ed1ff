// Compares measured and simulated calibration kernels, and proposes the values of a GPU file that would make them
// agree. A quantity (kernels/micro/quantities.yaml) is a slope between two cases, so that what both share cancels; it
// names the leaves it depends on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/style.h"
#include "hardware/gpu_model.h"

namespace forewarp {

struct Quantity {
  std::string id, stem;
  std::string low, high;  ///< cases; without `low`, `high` alone
  double divisor = 1;     ///< extra operations of `high`
  std::string unit, metric;
  bool rate = false;  ///< divisor per difference instead of difference per divisor
  std::vector<std::string> leaves;
};

/// InputError with file, line and column if the file is invalid.
std::vector<Quantity> read_quantities(const std::string& path);

/// A metric of one case: median, minimum and maximum of its runs; all equal if simulated.
struct CaseValue {
  double value = 0, least = 0, most = 0;
};

struct Slope {
  double value = 0;
  double spread = 0;  ///< half the range of the runs
};

/// Nothing if `high` is not the larger.
std::optional<Slope> slope_of(const Quantity&, const CaseValue& low, const CaseValue& high);

/// The value a leaf would need for a quantity to come out as measured, from the slope of the quantity over the leaf.
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

/// A quantity that could not be compared, and why.
struct LeftOut {
  std::string id, why;
};

/// The proposal, given that leaf value `now` yields `simulated` and `other` yields `simulated_other`. Nothing if the
/// quantity does not depend on the leaf, or if the value would be far from `now`.
std::optional<double> propose(double now, double other, double measured, double simulated, double simulated_other);

std::string write_calibration_text(const std::string& gpu, const std::vector<CalibratedQuantity>&,
                                   const std::vector<LeftOut>&, const std::vector<Leaf>& leaves, Style style = Style());
std::string write_calibration_json(const std::string& gpu, const std::vector<std::string>& changes,
                                   const std::vector<CalibratedQuantity>&, const std::vector<LeftOut>&);

}  // namespace forewarp
