// What the memory pipe makes of the 32 addresses of one instruction: sectors and lines for global and local memory,
// wavefronts (passes through the banks) for shared memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "trace/trace.h"

namespace forewarp {

/// A touched line: lines from the one that holds the access's base, and which of its four sectors.
struct LineSectors {
  std::int32_t line = 0;      ///< address = (base rounded down to kLineBytes) + line * kLineBytes
  std::uint8_t sectors = 0;   ///< bit i = sector i of the line
  bool operator==(const LineSectors&) const = default;
};

inline std::uint64_t line_address(std::uint64_t base, std::int32_t line) {
  return (base & ~std::uint64_t{kLineBytes - 1}) + static_cast<std::uint64_t>(std::int64_t{line} * kLineBytes);
}

/// How shared memory serves a request. The defaults are the rules in coalesce.cpp; measurement may correct them.
struct SharedMemoryRules {
  int banks = 32;
  int bank_bytes = 4;
  int lanes_64 = 16;             ///< lanes served together when a lane moves 64 bits
  int lanes_128 = 8;             ///< lanes served together when a lane moves 128 bits
  bool merge_groups = true;      ///< groups join in one wavefront when lane pairs share addresses
  bool store_broadcast = true;   ///< stores of several lanes to one word take one pass
};

/// The numbers of one pattern; its lines are kept apart.
struct CoalescedCounts {
  std::uint16_t sectors = 0;           ///< distinct 32-byte sectors (global, local)
  std::uint16_t ideal_sectors = 0;     ///< distinct bytes / 32, rounded up
  std::uint16_t lines = 0;             ///< distinct 128-byte lines
  std::uint16_t wavefronts = 0;        ///< shared memory
  std::uint16_t ideal_wavefronts = 0;  ///< shared memory, without bank conflicts
  std::uint16_t bytes = 0;             ///< distinct bytes
  std::uint16_t addresses = 0;         ///< distinct lane addresses
  bool operator==(const CoalescedCounts&) const = default;
};

/// Computes the numbers and, if asked, appends the lines in ascending order. Pure; costs about a microsecond.
CoalescedCounts coalesce(const AccessPattern& pattern, const SharedMemoryRules& rules = {},
                         std::vector<LineSectors>* lines = nullptr);

/// Passes a shared-memory request takes, and what it would take were no two words in one bank.
int shared_wavefronts(const AccessPattern& pattern, const SharedMemoryRules& rules);
int ideal_shared_wavefronts(const AccessPattern& pattern, const SharedMemoryRules& rules);

/// The coalesced form of every pattern of a trace, parallel to KernelTrace::patterns.
class CoalescedPatterns {
 public:
  CoalescedPatterns() = default;
  explicit CoalescedPatterns(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules = {}) {
    extend(patterns, rules);
  }

  /// Takes in the patterns beyond those already known.
  void extend(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules = {});

  std::size_t size() const { return counts_.size(); }
  const CoalescedCounts& counts(std::uint32_t pattern) const { return counts_[pattern]; }
  /// Ascending; empty for shared memory.
  std::span<const LineSectors> lines(std::uint32_t pattern) const {
    return {lines_.data() + first_line_[pattern], first_line_[pattern + 1] - first_line_[pattern]};
  }

 private:
  std::vector<CoalescedCounts> counts_;
  std::vector<std::size_t> first_line_{0};
  std::vector<LineSectors> lines_;
};

}  // namespace forewarp
