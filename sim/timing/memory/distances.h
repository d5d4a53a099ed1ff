// By how many cycles the round trip of a read from an SM to an L2 slice differs from the mean, depending on where both
// lie. Because of it, SMs that do the same fall out of step, except those whose reads the coalescer merges
// (kernels/micro l2_drift).
//
// The TPCs of a GPC lie in a row. Half of a partition's GPCs are nearer to one end of its slices, half to the other. A
// copy of a line of the other partition takes longer than a line at home.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "hardware/gpu_model.h"

namespace forewarp {

class Distances {
 public:
  explicit Distances(const GpuModel& model) {
    const CrossbarSpec& x = model.crossbar;
    const ChipSpec& chip = model.chip;
    for (std::size_t g = 0; g < chip.tpcs_per_gpc.size(); ++g) {
      const bool first = of_gpc(x.gpc_ends, g) == 0;
      for (int sm = 0; sm < chip.tpcs_per_gpc[g] * chip.sms_per_tpc; ++sm) {
        const auto tpc = static_cast<std::size_t>(sm / chip.sms_per_tpc);
        tpc_.push_back(static_cast<std::int8_t>(x.tpc_cycles.empty() ? 0 : x.tpc_cycles[tpc % x.tpc_cycles.size()]));
        side_.push_back(first ? 1 : -1);
      }
    }
    const int slices = model.l2.slices / model.l2.partitions;
    for (int s = 0; s < model.l2.slices; ++s)  // evenly from one end to the other
      slice_.push_back(static_cast<std::int8_t>(x.slice_cycles * (2 * (s % slices) + 1 - slices) / slices));
    if (model.l2.partitions == 2 && model.l2.replicate_far_lines)
      home_ = x.copy_cycles / 2, copy_ = x.copy_cycles - home_;
  }

  /// Of a read from a slice of the SM's own partition, there and back.
  int cycles(std::uint16_t sm, std::uint16_t slice, bool copy) const {
    return tpc_[sm] + side_[sm] * slice_[slice] + (copy ? copy_ : -home_);
  }

  /// The minimum over all pairs of the way back, which is half of cycles().
  int least_back() const {
    int least = 0;
    for (std::size_t sm = 0; sm < tpc_.size(); ++sm) {
      for (std::size_t slice = 0; slice < slice_.size(); ++slice) {
        const int there_and_back = cycles(static_cast<std::uint16_t>(sm), static_cast<std::uint16_t>(slice), false);
        least = std::min(least, there_and_back - there_and_back / 2);
      }
    }
    return least;
  }

 private:
  std::vector<std::int8_t> tpc_, side_;  ///< by SM
  std::vector<std::int8_t> slice_;
  int home_ = 0, copy_ = 0;
};

}  // namespace forewarp
