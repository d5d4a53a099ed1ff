#include "trace/coalesce.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/error.h"

namespace forewarp {
namespace {

/// A piece of memory that one lane touches, in bytes from the line that holds the base.
struct Piece {
  std::int64_t begin;
  std::int64_t end;
};

constexpr int kMaxPieces = kWarpLanes * 4;

/// Lane after lane; a wide local access is split into words, which lie a line apart (interleaved lanes).
int collect_pieces(const AccessPattern& pattern, std::array<Piece, kMaxPieces>& pieces) {
  const int words = pattern.space == MemorySpace::Local && pattern.bytes > 4 ? pattern.bytes / 4 : 1;
  const int bytes = pattern.bytes / words;
  int count = 0;
  for (LaneMask rest = pattern.lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::int64_t first = std::int64_t{pattern.base_offset} + pattern.offsets[lane];
    for (int w = 0; w < words; ++w) {
      const std::int64_t begin = first + std::int64_t{w} * kLineBytes;
      pieces[static_cast<std::size_t>(count++)] = {begin, begin + bytes};
    }
  }
  const auto by_begin = [](const Piece& a, const Piece& b) { return a.begin < b.begin; };
  if (!std::is_sorted(pieces.begin(), pieces.begin() + count, by_begin))
    std::sort(pieces.begin(), pieces.begin() + count, by_begin);
  return count;
}

/// Shift right of a negative number rounds down: what the division of addresses needs.
constexpr std::int64_t floor_divide(std::int64_t value, int power_of_two) {
  return value >> std::countr_zero(static_cast<unsigned>(power_of_two));
}

void add_sector(std::int64_t sector, CoalescedCounts& counts, std::int64_t& last_line,
                std::vector<LineSectors>* lines) {
  constexpr int kSectorsPerLine = kLineBytes / kSectorBytes;
  const std::int64_t line = floor_divide(sector, kSectorsPerLine);
  ++counts.sectors;
  if (line != last_line) {
    ++counts.lines;
    if (lines) lines->push_back({static_cast<std::int32_t>(line), 0});
    last_line = line;
  }
  if (lines) lines->back().sectors |= static_cast<std::uint8_t>(1u << (sector & (kSectorsPerLine - 1)));
}

// Shared memory. Sources for the rules:
// - 32 banks of 4 bytes; lanes that ask for the same 32-bit word are served together: CUDA C++ Programming Guide,
//   "Compute Capability 5.x: Shared Memory" and after.
// - A request of 64 bits a lane is served half a warp at a time, one of 128 bits a quarter: the same guide says so for
//   2.x (64-bit: conflicts arise within a half-warp), and 32 banks x 4 bytes deliver 128 bytes a pass at most.
// - Two neighbouring groups join when the lanes of each pair (i, i^1), or of each pair (i, i^2), of both groups ask for
//   one address or one of the pair does not take part: then at most half of the words are distinct. 128-bit requests
//   take at least two passes: the halves of the warp never join (Scott Gray's notes on maxas say the same of Maxwell).

bool pairs_share(const AccessPattern& pattern, LaneMask lanes, int distance) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const int other = lane ^ distance;
    if (other < lane || !(lanes >> lane & 1) || !(lanes >> other & 1)) continue;
    if (pattern.offsets[static_cast<std::size_t>(lane)] != pattern.offsets[static_cast<std::size_t>(other)])
      return false;
  }
  return true;
}

/// The lanes that are served together, in order; at most one group for each eight lanes.
int split_groups(const AccessPattern& pattern, const SharedMemoryRules& rules, std::array<LaneMask, kWarpLanes>& groups) {
  int width = kWarpLanes;
  if (pattern.bytes == 8) width = rules.lanes_64;
  if (pattern.bytes >= 16) width = rules.lanes_128;
  const auto mask_of = [&](int first, int lanes) {
    const LaneMask all = lanes >= kWarpLanes ? ~LaneMask{0} : (LaneMask{1} << lanes) - 1;
    return pattern.lanes & (all << first);
  };
  const bool may_merge = rules.merge_groups && width < kWarpLanes && pattern.kind != MemoryKind::Atomic &&
                         pattern.kind != MemoryKind::Reduction;
  int count = 0;
  const auto add = [&](LaneMask lanes) {
    if (lanes != 0) groups[static_cast<std::size_t>(count++)] = lanes;
  };
  for (int first = 0; first < kWarpLanes; first += 2 * width) {
    const LaneMask both = mask_of(first, std::min(2 * width, kWarpLanes));
    if (width == kWarpLanes || (may_merge && (pairs_share(pattern, both, 1) || pairs_share(pattern, both, 2)))) {
      add(both);
    } else {
      add(mask_of(first, width));
      add(mask_of(first + width, width));
    }
  }
  return count;
}

/// The most words that one bank has to deliver to these lanes.
int conflict_degree(const AccessPattern& pattern, const SharedMemoryRules& rules, LaneMask lanes) {
  std::array<std::int64_t, kMaxPieces> words;
  int count = 0;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(rest));
    const std::int64_t begin = std::int64_t{pattern.base_offset} + pattern.offsets[lane];
    const std::int64_t last = floor_divide(begin + pattern.bytes - 1, rules.bank_bytes);
    for (std::int64_t w = floor_divide(begin, rules.bank_bytes); w <= last && count < kMaxPieces; ++w)
      words[static_cast<std::size_t>(count++)] = w;
  }
  const bool is_store = pattern.kind == MemoryKind::Store || pattern.kind == MemoryKind::AsyncCopy;
  // Atomics on one word follow one another, each needs the result of the one before.
  const bool repeats_count = pattern.kind == MemoryKind::Atomic || pattern.kind == MemoryKind::Reduction ||
                             (is_store && !rules.store_broadcast);
  auto end = words.begin() + count;
  if (!repeats_count) {
    if (!std::is_sorted(words.begin(), end)) std::sort(words.begin(), end);
    end = std::unique(words.begin(), end);
  }
  std::array<int, 64> of_bank{};
  int most = 0;
  for (auto w = words.begin(); w != end; ++w)
    most = std::max(most, ++of_bank[static_cast<std::size_t>(*w & (rules.banks - 1))]);
  return most;
}

}  // namespace

int shared_wavefronts(const AccessPattern& pattern, const SharedMemoryRules& rules) {
  std::array<LaneMask, kWarpLanes> groups;
  const int count = split_groups(pattern, rules, groups);
  int wavefronts = 0;
  for (int g = 0; g < count; ++g) wavefronts += conflict_degree(pattern, rules, groups[static_cast<std::size_t>(g)]);
  return wavefronts;
}

int ideal_shared_wavefronts(const AccessPattern& pattern, const SharedMemoryRules& rules) {
  std::array<LaneMask, kWarpLanes> groups;
  return split_groups(pattern, rules, groups);
}

CoalescedCounts coalesce(const AccessPattern& pattern, const SharedMemoryRules& rules,
                         std::vector<LineSectors>* lines) {
  FW_CHECK(rules.banks <= 64 && std::has_single_bit(static_cast<unsigned>(rules.banks)) &&
               std::has_single_bit(static_cast<unsigned>(rules.bank_bytes)),
           "banks and their width are powers of two");
  CoalescedCounts counts;
  if (pattern.lanes == 0 || pattern.bytes == 0) return counts;
  std::array<Piece, kMaxPieces> pieces;
  const int piece_count = collect_pieces(pattern, pieces);
  const bool shared = pattern.space == MemorySpace::Shared;
  std::int64_t covered = INT64_MIN, last_sector = INT64_MIN, last_line = INT64_MIN, last_begin = INT64_MIN;
  std::int64_t bytes = 0;
  for (int i = 0; i < piece_count; ++i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    if (piece.begin != last_begin) ++counts.addresses;
    last_begin = piece.begin;
    if (piece.end <= covered) continue;
    const std::int64_t begin = std::max(piece.begin, covered);
    bytes += piece.end - begin;
    covered = piece.end;
    if (shared) continue;
    const std::int64_t last = floor_divide(piece.end - 1, kSectorBytes);
    for (std::int64_t sector = std::max(floor_divide(begin, kSectorBytes), last_sector + 1); sector <= last; ++sector)
      add_sector(sector, counts, last_line, lines);
    last_sector = last;
  }
  counts.bytes = static_cast<std::uint16_t>(bytes);
  counts.ideal_sectors = shared ? 0 : static_cast<std::uint16_t>((bytes + kSectorBytes - 1) / kSectorBytes);
  if (shared) {
    counts.wavefronts = static_cast<std::uint16_t>(shared_wavefronts(pattern, rules));
    counts.ideal_wavefronts = static_cast<std::uint16_t>(ideal_shared_wavefronts(pattern, rules));
  }
  return counts;
}

void CoalescedPatterns::extend(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules) {
  counts_.reserve(patterns.size());
  first_line_.reserve(patterns.size() + 1);
  for (std::size_t i = counts_.size(); i < patterns.size(); ++i) {
    counts_.push_back(coalesce(patterns[i], rules, &lines_));
    first_line_.push_back(lines_.size());
  }
}

}  // namespace forewarp
