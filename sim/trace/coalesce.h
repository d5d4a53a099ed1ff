// Coalescing: turns the 32 addresses of an instruction into sectors and lines (global and local memory) and wavefronts,
// which are passes through the banks (shared memory).
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "trace/events.h"
#include "trace/trace.h"

namespace forewarp {

/// A touched line, counted from the line of the access's base, and which of its four sectors.
struct LineSectors {
  std::int32_t line = 0;     ///< address = (base rounded down to kLineBytes) + line * kLineBytes
  std::uint8_t sectors = 0;  ///< bit i = sector i of the line
  std::uint8_t bytes = 0;    ///< bytes of the line that some lane touches
  std::uint8_t fetch = 0;    ///< aligned sectors that L2 fetches at least where it misses; 0: no more than usual
  /// Every byte of the sectors is touched.
  bool whole_sectors() const { return bytes == kSectorBytes * std::popcount(unsigned{sectors}); }
  bool operator==(const LineSectors&) const = default;
};

inline std::uint64_t line_address(std::uint64_t base, std::int32_t line) {
  return (base & ~std::uint64_t{kLineBytes - 1}) + static_cast<std::uint64_t>(std::int64_t{line} * kLineBytes);
}

/// How the banks serve a request. The defaults were measured (see coalesce.cpp); change them where another GPU is found
/// to differ.
struct SharedMemoryRules {
  int banks = 32;
  int bank_bytes = 4;
  int lanes_64 = 16;        ///< lanes served together when a lane moves 64 bits
  int lanes_128 = 8;        ///< lanes served together when a lane moves 128 bits
  bool merge_loads = true;  ///< loads: twice as many lanes go together when neighbours share addresses
};

/// The counts of one pattern; its lines are kept separately.
struct CoalescedCounts {
  std::uint16_t sectors = 0;      ///< distinct 32-byte sectors (global, local); what copies of 16 bytes a lane ask for
  std::uint16_t tag_sectors = 0;  ///< the same, once per pass of an atomic and per half warp of such copies
  std::uint16_t ideal_sectors = 0;  ///< lanes x bytes / 32, rounded up, at most `sectors`
  std::uint16_t lines = 0;          ///< distinct 128-byte lines (tags); of boxes requests
  std::uint16_t requests = 0;       ///< for lines: of copies of 16 bytes a lane some twice
  std::uint16_t wavefronts = 0;     ///< passes through the banks: exact for shared memory; for global and local memory
                                    ///< the data stage's bank conflicts alone (tags may take longer)
  std::uint16_t ideal_wavefronts = 0;  ///< lanes x bytes / 128, rounded up, at most `wavefronts`
  std::uint16_t bank_conflicts = 0;    ///< wavefronts beyond those that the access width needs
  std::uint16_t bytes = 0;             ///< distinct bytes
  std::uint16_t addresses = 0;         ///< distinct lane addresses
  std::uint16_t atomic_passes = 0;     ///< most lanes on one address: their atomics are serialised
  bool operator==(const CoalescedCounts&) const = default;
};

/// Wavefronts of an instruction per wavefront of its pattern: compare-and-swap in shared memory passes twice.
int wavefront_factor(const Instruction& instruction);

/// Computes the counts and, if asked, appends the lines in ascending order. Pure; takes about a microsecond.
CoalescedCounts coalesce(const AccessPattern& pattern, const SharedMemoryRules& rules = {},
                         std::vector<LineSectors>* lines = nullptr);

/// Whether lanes of an access to shared memory reach other blocks of the cluster.
bool reaches_others(const AccessPattern& pattern, std::uint64_t base);
/// What the lanes that do not reach them take of the block's own banks, a wavefront at least
/// (l1tex__data_bank_conflicts_pipe_lsu_mem_shared of histogram_cluster on an H200).
CoalescedCounts own_part(const AccessPattern& pattern, std::uint64_t base);

/// The coalesced form of every pattern of a trace, parallel to KernelTrace::patterns.
class CoalescedPatterns {
 public:
  CoalescedPatterns() = default;
  explicit CoalescedPatterns(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules = {}) {
    extend(patterns, rules);
  }

  /// Adds the patterns beyond those already known.
  void extend(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules = {});

  std::size_t size() const { return counts_.size(); }
  const CoalescedCounts& counts(std::uint32_t pattern) const { return counts_[pattern]; }
  AccessEffect effect(std::uint32_t pattern) const { return effects_[pattern]; }
  /// Ascending by line; empty for shared memory.
  std::span<const LineSectors> lines(std::uint32_t pattern) const {
    return {lines_.data() + first_line_[pattern], first_line_[pattern + 1] - first_line_[pattern]};
  }

 private:
  std::vector<CoalescedCounts> counts_;
  std::vector<AccessEffect> effects_;
  std::vector<std::size_t> first_line_{0};
  std::vector<LineSectors> lines_;
};

}  // namespace forewarp
