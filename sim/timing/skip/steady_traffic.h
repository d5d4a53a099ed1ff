// When what is touched in L2 for left-out work brings and takes the same again and again, so that the rest of it need
// not be touched: traffic of waves of blocks, or of iterations of a loop, one after another.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/memory/l2_traffic.h"

namespace forewarp {

class SteadyTraffic {
 public:
  /// `l2_lines`: that L2 holds. `period`: steps after which their pattern may repeat; a mean is over so many at least.
  SteadyTraffic(std::uint64_t l2_lines, std::uint64_t period) : l2_lines_(l2_lines), period_(period) {
    so_far_.emplace_back();
  }

  /// A step has touched so many lines.
  void add(std::uint64_t lines, const L2Traffic&);
  std::uint64_t steps() const { return so_far_.size() - 1; }

  /// Steps of `left` that may be left out now: L2 has been replaced once, the last two quarters of all steps agree, and
  /// what remains after them replaces L2 again, so that it ends as if all had been touched.
  std::uint64_t may_skip(std::uint64_t left);
  /// What so many steps bring at the rate of the last two quarters.
  L2Traffic expected(std::uint64_t steps) const;

 private:
  struct Sum {
    std::uint64_t lines = 0;
    L2Traffic traffic;
  };
  Sum between(std::uint64_t first, std::uint64_t last) const;

  std::uint64_t l2_lines_, period_, next_look_ = 4;
  std::vector<Sum> so_far_;  ///< after each step
};

}  // namespace forewarp
