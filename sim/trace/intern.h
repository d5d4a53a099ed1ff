// Equal patterns and slopes are stored once.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace forewarp {

/// Finds a pattern's index in the caller's vector of distinct patterns; appends it if it is new.
class PatternInterner {
 public:
  std::uint32_t intern(std::vector<AccessPattern>& patterns, const AccessPattern& pattern);

 private:
  void grow(const std::vector<AccessPattern>& patterns);

  std::vector<std::uint32_t> slots_;  ///< open addressing, a power of two; kEmpty or an index
  std::size_t used_ = 0;
};

/// The pools of one KernelTrace, shared by the builders of its classes. Not thread-safe.
class TracePools {
 public:
  /// Refers to `trace`, whose slopes[0] becomes the zero slope; existing patterns and slopes are kept.
  explicit TracePools(KernelTrace& trace);

  std::uint32_t pattern(const AccessPattern& p) { return interner_.intern(trace_.patterns, p); }
  std::uint32_t slope(const BlockSlope& s);
  /// Counts of a class equal to these, or these.
  SharedCounts share(SharedCounts counts);

 private:
  KernelTrace& trace_;
  PatternInterner interner_;
  std::unordered_multimap<std::uint64_t, SharedCounts> counts_;
};

/// Index of a slope in a short vector of distinct slopes whose first is zero.
std::uint32_t intern_slope(std::vector<BlockSlope>& slopes, const BlockSlope& slope);

}  // namespace forewarp
