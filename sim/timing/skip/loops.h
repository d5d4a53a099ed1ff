// The loops of a warp's way through the code: the parts of its sequence of runs that repeat.
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
  std::uint32_t accesses = 0;             ///< memory instructions of one iteration
  std::uint32_t accesses_before = 0;      ///< ... executed before the loop
  std::uint64_t instructions = 0;         ///< warp instructions of one iteration
  std::uint64_t instructions_before = 0;  ///< ... executed before the loop
  std::uint32_t body = 0;                 ///< the same number: loops of the launch that do the same in an iteration
  std::uint32_t line_period = 1;          ///< iterations after which every access has moved by whole lines
  std::uint32_t phase_period = 1;         ///< iterations after which the barriers in shared memory come round; 0: never
};

/// The loops of a path in the order in which a warp goes through them, one after another: the one that repeats most of
/// the path, and others that are worth looking at beside it.
using PathLoops = std::vector<PathLoop>;
PathLoops find_loops(const WarpPath&, const TimedProgram&);

/// Which of the loops a run is in; their number if it is in none.
std::size_t loop_at(const PathLoops&, std::uint32_t run);

/// The loops of every path of every class: loops[class][path].
using Loops = std::vector<std::vector<PathLoops>>;
Loops find_loops(const KernelTrace&, const TimedProgram&);

}  // namespace forewarp
