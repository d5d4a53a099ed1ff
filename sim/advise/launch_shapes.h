// A launch with other blocks or another grid, where the kernel computes the same with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulation/emulation.h"
#include "launch/launch.h"

namespace forewarp::advise {

struct Shape {
  Dim3 grid, block;
  bool other_blocks = false;  ///< as many threads in other blocks; otherwise as many blocks as fill waves
};

/// Shapes that a kernel may be launched in instead, without regard to whether it computes the same in them.
std::vector<Shape> other_shapes(const Launch&, std::uint64_t blocks_per_wave);

/// The case with launch `index` in that shape.
Case reshaped(const Case&, int index, const Shape&);

/// Whether a case leaves the same bytes in all its buffers when it is launched otherwise: all blocks are executed,
/// values and all.
class SameResults {
 public:
  /// Refers to program and case.
  SameResults(const Program& program, const Case& item, const EmulationOptions& options)
      : program_(program), item_(item), options_(options) {}

  /// False too where a launch fails, or where every buffer begins as zeros, which proves nothing.
  bool of(const Case& other);

 private:
  bool tells() const;

  const Program& program_;
  const Case& item_;
  EmulationOptions options_;
  std::vector<std::vector<std::uint8_t>> own_;  ///< of the case as it is
  bool known_ = false;
};

}  // namespace forewarp::advise
