#include "trace/intern.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <type_traits>

#include "base/error.h"

namespace forewarp {
namespace {

constexpr std::uint32_t kEmpty = 0xffffffffu;
constexpr std::size_t kFirstSlots = 256;

// Patterns are hashed as bytes, so every byte has to belong to a value.
static_assert(std::has_unique_object_representations_v<AccessPattern>);

std::size_t hash(const AccessPattern& pattern) { return XXH3_64bits(&pattern, sizeof pattern); }

}  // namespace

void PatternInterner::grow(const std::vector<AccessPattern>& patterns) {
  slots_.assign(slots_.empty() ? kFirstSlots : slots_.size() * 2, kEmpty);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < used_; ++i) {
    std::size_t slot = hash(patterns[i]) & mask;
    while (slots_[slot] != kEmpty) slot = (slot + 1) & mask;
    slots_[slot] = i;
  }
}

std::uint32_t PatternInterner::intern(std::vector<AccessPattern>& patterns, const AccessPattern& pattern) {
  if (used_ * 2 >= slots_.size()) grow(patterns);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash(pattern) & mask;
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & mask)
    if (patterns[slots_[slot]] == pattern) return slots_[slot];
  FW_CHECK(used_ < kEmpty, "too many access patterns");
  slots_[slot] = static_cast<std::uint32_t>(used_++);
  patterns.push_back(pattern);
  return slots_[slot];
}

std::uint32_t intern_slope(std::vector<BlockSlope>& slopes, const BlockSlope& slope) {
  // A kernel has a handful of slopes (one a buffer and stride), the newest are asked for most.
  for (std::size_t i = slopes.size(); i-- > 0;)
    if (slopes[i] == slope) return static_cast<std::uint32_t>(i);
  slopes.push_back(slope);
  return static_cast<std::uint32_t>(slopes.size() - 1);
}

TracePools::TracePools(KernelTrace& trace) : trace_(trace) {
  if (trace.slopes.empty()) trace.slopes.push_back({});
  FW_CHECK(trace.slopes[0] == BlockSlope{}, "the first slope of a trace is zero");
  std::vector<AccessPattern> known;
  known.swap(trace.patterns);
  trace.patterns.reserve(known.size());
  for (const AccessPattern& p : known) interner_.intern(trace.patterns, p);
  FW_CHECK(trace.patterns.size() == known.size(), "the patterns of a trace are distinct");
}

SharedCounts TracePools::share(SharedCounts counts) {
  static_assert(std::has_unique_object_representations_v<InstructionCount>);
  if (counts.size() == 0) return counts;
  const std::uint64_t key = XXH3_64bits(&counts[0], counts.size() * sizeof(InstructionCount));
  const auto [begin, end] = counts_.equal_range(key);
  for (auto it = begin; it != end; ++it)
    if (it->second == counts) return it->second;
  return counts_.emplace(key, std::move(counts))->second;
}

std::uint32_t TracePools::slope(const BlockSlope& s) { return intern_slope(trace_.slopes, s); }

}  // namespace forewarp
