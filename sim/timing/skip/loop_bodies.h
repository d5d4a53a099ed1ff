// What blocks do, by the bodies of their loops: whether what was simulated is like what remains.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "timing/gpu/gpu.h"
#include "timing/skip/loops.h"

namespace forewarp {

/// Warp instructions, by the body of the loop that they are in or on their way to (PathLoop::body); then those after
/// the last loop, by its body, since ends of blocks are not like the rest of them; the last: on ways without loops.
using BodyVector = std::vector<double>;

/// Half the Manhattan distance of two vectors, each as shares of its sum: the part of one that the other does not do.
/// So Sherwood et al. (SimPoint, ASPLOS 2002) compare basic blocks. 1 where one of them is empty.
double unlikeness(std::span<const double> one, std::span<const double> other);

/// later - earlier.
BodyVector between(std::span<const double> earlier, std::span<const double> later);

/// Of the times that began when so much was left and end now, the one that did most nearly what is left now, the
/// longest of equal ones.
std::size_t most_alike(std::span<const BodyVector> left_then, std::span<const double> left_now);

/// Counts what is left of a launch.
class LoopBodies {
 public:
  LoopBodies(const LaunchContext&, const Loops&);

  /// What blocks that have not been handed out and those in flight have before them. Each call goes on from the last.
  BodyVector left(const Gpu&);
  /// What the bodies of the loops that warps are in now are of all that the launch executes.
  double share_in_flight(const Gpu&) const;

 private:
  /// Where those after the last loop are counted.
  static std::size_t after(std::size_t body, const BodyVector& sum) { return (sum.size() - 1) / 2 + body; }
  static void add_way(const PathLoops&, std::uint64_t all, std::uint64_t done, double times, BodyVector&);
  void add_block(const BlockClass&, std::size_t cls, double times, BodyVector&) const;

  const LaunchContext& context_;
  const Loops& loops_;
  BodyVector all_, waiting_;
  std::uint64_t begun_ = 0;  ///< blocks that `waiting_` is without
};

}  // namespace forewarp
