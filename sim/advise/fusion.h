// Two launches of a case that become one, so that what the first writes for the second stays on chip.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/launch.h"
#include "trace/trace.h"

namespace forewarp::advise {

/// The launch with no access to a range of global memory: instructions issue and access nothing.
struct Range {
  std::uint64_t first = 0, last = 0;  ///< addresses [first, last)
  bool holds(std::uint64_t address) const { return address >= first && address < last; }
};
enum class Direction : std::uint8_t { Loads, Stores };
std::shared_ptr<const KernelTrace> without_range(const KernelTrace&, const Range&, Direction);

/// Bytes of a range that all lanes of the grid load, or store.
double bytes_in_range(const KernelTrace&, const Range&, Direction);

/// A buffer that one launch writes and another after it reads.
struct Intermediate {
  int buffer = -1;  ///< of the case
  Range range;
  double written = 0, read = 0;  ///< bytes, by the launches that are fused
  bool needed_later = false;     ///< a launch after them reads it, too: it is stored all the same
};

/// Launches first ... last of a case as one kernel.
struct Fusion {
  int first = 0, last = 0;
  std::vector<Intermediate> handed_over;  ///< not empty
};

/// Neighbours, and all launches of the case, where something is handed over.
std::vector<Fusion> fusions(const Case&, const std::vector<std::shared_ptr<const KernelTrace>>&);

/// A launch of a fusion without what it hands over or is handed over.
std::shared_ptr<const KernelTrace> fused(std::shared_ptr<const KernelTrace>, const Fusion&);

}  // namespace forewarp::advise
