// The loop that dominates a warp's way through the code: the part of its sequence of runs that repeats.
#pragma once

#include <cstdint>
#include <vector>

#include "timing/sm/timed_program.h"
#include "trace/trace.h"

namespace forewarp {

struct PathLoop {
  std::uint32_t first_run = 0;  ///< where the repetition starts
  std::uint32_t period = 0;     ///< runs of one iteration; 0: nothing repeats
  std::uint32_t iterations = 0;
  std::uint32_t accesses = 0;         ///< memory instructions of one iteration
  std::uint32_t accesses_before = 0;  ///< ... executed before the loop
  std::uint64_t instructions = 0;     ///< warp instructions of one iteration
  std::uint32_t line_period = 1;      ///< iterations after which every access has moved by whole lines

  std::uint32_t iteration_of(std::uint32_t run) const { return (run - first_run) / period; }
  std::uint32_t end_run() const { return first_run + period * iterations; }
};

PathLoop find_loop(const WarpPath&, const TimedProgram&);

/// Iterations after which the accesses of a warp in its loop have moved by whole lines: until then the same line is
/// read again, so that a rate has to be measured over a multiple of them.
std::uint32_t find_line_period(const PathLoop&, const WarpTrace&, const KernelTrace&);

}  // namespace forewarp
