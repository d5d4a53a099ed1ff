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

/// A buffer that launch `first` writes and the one after it reads.
struct Intermediate {
  int first = 0;    ///< launch
  int buffer = -1;  ///< of the case
  double written = 0, read = 0;
  bool needed_later = false;  ///< a later launch reads it, too: it is stored all the same
  Range range;
};
std::vector<Intermediate> intermediates(const Case&, const std::vector<std::shared_ptr<const KernelTrace>>&);

}  // namespace forewarp::advise
