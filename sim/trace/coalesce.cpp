#include "trace/coalesce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/error.h"
#include "base/limits.h"
#include "program/traits.h"

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
    if (lines) lines->push_back({static_cast<std::int32_t>(line), 0, 0});
    last_line = line;
  }
  if (lines) lines->back().sectors |= static_cast<std::uint8_t>(1u << (sector & (kSectorsPerLine - 1)));
}

/// Bytes that no piece before has touched.
void add_bytes(std::int64_t begin, std::int64_t end, std::span<LineSectors> lines) {
  for (std::size_t i = lines.size(); i-- > 0;) {
    const std::int64_t line = std::int64_t{lines[i].line} * kLineBytes;
    if (line + kLineBytes <= begin) break;
    lines[i].bytes =
        static_cast<std::uint8_t>(lines[i].bytes + std::min(end, line + kLineBytes) - std::max(begin, line));
  }
}

bool is_atomic(const AccessPattern& pattern) {
  return pattern.kind == MemoryKind::Atomic || pattern.kind == MemoryKind::Reduction;
}

// The banks. All of it was measured on an H200 with Nsight Compute's l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*
// and l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_*, one warp and one instruction a launch, over 530 patterns of
// lanes (strides, permutations, shared addresses, random addresses and masks); every one agrees with these rules:
// - 32 banks of 4 bytes; lanes on the same 32-bit word are served together (also CUDA C++ Programming Guide, "Shared
//   Memory" of compute capability 5.x and after).
// - 64 bits a lane: half a warp at a time; 128 bits: a quarter.
// - Loads only: twice as many lanes go together when in the whole warp each pair (i, i^1), or each pair (i, i^2), of
//   active lanes asks for one address. A 128-bit load never takes fewer than two passes for a full warp.
// - A group of lanes takes as many passes as the busiest bank has distinct words; conflicts = passes - groups.
// - Atomics on one word follow one another: lanes of a bank count, not words.
// - Compare-and-swap takes each pass twice, its conflicts are counted once; 64-bit ones report no conflicts at all.
// A100 has the same banks and widths; its counters could not be measured.

bool pairs_share(const AccessPattern& pattern, int distance) {
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    const int other = lane ^ distance;
    if (other < lane || !(pattern.lanes >> lane & 1) || !(pattern.lanes >> other & 1)) continue;
    if (pattern.offsets[static_cast<std::size_t>(lane)] != pattern.offsets[static_cast<std::size_t>(other)])
      return false;
  }
  return true;
}

/// How many neighbouring lanes are served together.
int group_width(const AccessPattern& pattern, const SharedMemoryRules& rules) {
  if (pattern.bytes <= 4) return kWarpLanes;
  const int width = pattern.bytes <= 8 ? rules.lanes_64 : rules.lanes_128;
  const bool merges = rules.merge_loads && pattern.kind == MemoryKind::Load && pattern.space == MemorySpace::Shared &&
                      (pairs_share(pattern, 1) || pairs_share(pattern, 2));
  return std::min(kWarpLanes, merges ? 2 * width : width);
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
  auto end = words.begin() + count;
  if (!is_atomic(pattern)) {
    if (!std::is_sorted(words.begin(), end)) std::sort(words.begin(), end);
    end = std::unique(words.begin(), end);
  }
  std::array<int, 64> of_bank{};
  int most = 0;
  for (auto w = words.begin(); w != end; ++w)
    most = std::max(most, ++of_bank[static_cast<std::size_t>(*w & (rules.banks - 1))]);
  return most;
}

void count_wavefronts(const AccessPattern& pattern, const SharedMemoryRules& rules, int lane_bytes,
                      CoalescedCounts& counts) {
  const int width = group_width(pattern, rules);
  const LaneMask group = width >= kWarpLanes ? ~LaneMask{0} : (LaneMask{1} << width) - 1;
  int wavefronts = 0, groups = 0;
  for (int first = 0; first < kWarpLanes; first += width) {
    const LaneMask lanes = pattern.lanes & (group << first);
    if (lanes == 0) continue;
    ++groups;
    wavefronts += conflict_degree(pattern, rules, lanes);
  }
  const int pass_bytes = rules.banks * rules.bank_bytes;
  counts.wavefronts = static_cast<std::uint16_t>(wavefronts);
  counts.ideal_wavefronts =
      static_cast<std::uint16_t>(std::min(wavefronts, (lane_bytes + pass_bytes - 1) / pass_bytes));
  const bool silent = is_atomic(pattern) && pattern.bytes > 4;
  counts.bank_conflicts = static_cast<std::uint16_t>(silent ? 0 : wavefronts - groups);
}

/// An asynchronous copy of 16 bytes a lane fills shared memory a line at a time, from eight lanes, and each 32 bytes of
/// that from two. What these two ask for lies in a sector or in two: a sector may fill all 32 bytes, or its halves the
/// halves of them, straight or crosswise. The eight ask for each of these by itself, each time once for a line of
/// memory; a sector that two pairs share comes twice. Tags are looked up for the first and the last sector of all pairs
/// at once: of a line as often as one of the two lies in it. Measured on an H100: kernels/micro copy_requests and
/// copy_parts, 94 patterns of rows of which all or the first lanes read, all agree (lts__t_requests_srcunit_tex,
/// l1tex__m_xbar2l1tex_read_sectors, l1tex__t_sectors_pipe_lsu_mem_global_op_ld).
void ask_by_pairs(const AccessPattern& copy, CoalescedCounts& counts, std::vector<LineSectors>* lines) {
  constexpr int kLineLanes = kLineBytes / 16;
  enum Fill { Whole, Straight, StraightUpper, UpperToLower, LowerToUpper, Fills };
  std::array<LineSectors, kWarpLanes> requests;
  std::size_t count = 0;
  const auto add = [&](std::size_t first, std::int64_t sector, int bytes) {
    const auto line = static_cast<std::int32_t>(floor_divide(sector, kLineBytes / kSectorBytes));
    const auto bit = static_cast<std::uint8_t>(1u << (sector & (kLineBytes / kSectorBytes - 1)));
    std::size_t at = first;
    while (at < count && (requests[at].line != line || (requests[at].sectors & bit) != 0)) ++at;
    if (at == count) requests[count++] = {line, 0, 0};
    requests[at].sectors = static_cast<std::uint8_t>(requests[at].sectors | bit);
    requests[at].bytes = static_cast<std::uint8_t>(requests[at].bytes + bytes);
    ++counts.sectors;
  };
  const auto place = [&](int lane) {
    return std::int64_t{copy.base_offset} + copy.offsets[static_cast<std::size_t>(lane)];
  };
  const auto sector_of = [&](int lane) { return floor_divide(place(lane), kSectorBytes); };
  const auto line_of = [&](int lane) { return floor_divide(place(lane), kLineBytes); };
  const auto fill_of = [&](int lane) {
    const bool upper = (place(lane) & 16) != 0, to_upper = (lane & 1) != 0;
    return upper == to_upper ? (upper ? StraightUpper : Straight) : upper ? UpperToLower : LowerToUpper;
  };
  for (int eight = 0; eight < kWarpLanes; eight += kLineLanes) {
    for (int fill = Whole; fill < Fills; ++fill) {
      const std::size_t first = count;
      for (int lane = eight; lane < eight + kLineLanes; lane += 2) {
        const LaneMask both = copy.lanes >> lane & 3;
        if (both == 3 && sector_of(lane) == sector_of(lane + 1)) {
          if (fill == Whole) add(first, sector_of(lane), kSectorBytes);
          continue;
        }
        for (int half = 0; half < 2; ++half)
          if ((both >> half & 1) != 0 && fill_of(lane + half) == fill) add(first, sector_of(lane + half), copy.bytes);
      }
    }
    struct Tag {
      std::int64_t line = 0;
      int firsts = 0, lasts = 0;  ///< of pairs
    };
    std::array<Tag, kLineLanes> tags;
    std::size_t looked_up = 0;
    const auto tag = [&](std::int64_t line) -> Tag& {
      std::size_t at = 0;
      while (at < looked_up && tags[at].line != line) ++at;
      if (at == looked_up) tags[looked_up++].line = line;
      return tags[at];
    };
    for (int lane = eight; lane < eight + kLineLanes; lane += 2) {
      const LaneMask both = copy.lanes >> lane & 3;
      if (both == 0) continue;
      ++tag(line_of(both == 2 ? lane + 1 : lane)).firsts;
      ++tag(line_of(both == 1 ? lane : lane + 1)).lasts;
    }
    for (std::size_t i = 0; i < looked_up; ++i)
      counts.tag_sectors = static_cast<std::uint16_t>(counts.tag_sectors + std::max(tags[i].firsts, tags[i].lasts));
  }
  counts.requests = static_cast<std::uint16_t>(count);
  const auto end = requests.begin() + static_cast<std::ptrdiff_t>(count);
  std::stable_sort(requests.begin(), end, [](const auto& a, const auto& b) { return a.line < b.line; });
  std::int64_t last_line = INT64_MIN;
  for (auto request = requests.begin(); request != end; ++request)
    if (std::exchange(last_line, request->line) != request->line) ++counts.lines;
  if (lines != nullptr) lines->insert(lines->end(), requests.begin(), end);
}

/// Atomics on one address go in passes: the first lane of every address, then the second, and so on; each pass looks
/// its sectors up. Measured like the banks: l1tex__t_sectors_pipe_lsu_mem_global_op_{atom,red}, 57 patterns, all agree.
void count_atomic_passes(const std::array<Piece, kMaxPieces>& pieces, int piece_count, CoalescedCounts& counts) {
  std::array<std::int64_t, kWarpLanes> last_sector;
  last_sector.fill(INT64_MIN);
  int tag_sectors = 0, passes = 0, repeat = 0;
  for (int i = 0; i < piece_count; ++i) {
    const Piece& piece = pieces[static_cast<std::size_t>(i)];
    repeat = i > 0 && pieces[static_cast<std::size_t>(i - 1)].begin == piece.begin ? repeat + 1 : 0;
    passes = std::max(passes, repeat + 1);
    std::int64_t& last = last_sector[static_cast<std::size_t>(repeat)];
    const std::int64_t sector = floor_divide(piece.begin, kSectorBytes);  // an atomic's address is aligned
    tag_sectors += sector != last;
    last = sector;
  }
  counts.tag_sectors = static_cast<std::uint16_t>(tag_sectors);
  counts.atomic_passes = static_cast<std::uint16_t>(passes);
}

}  // namespace

int wavefront_factor(const Instruction& instruction) {
  const bool compares = instruction.has(Modifier::CAS) || instruction.has(Modifier::CAST);
  return traits(instruction.opcode).space == MemorySpace::Shared && compares ? 2 : 1;
}

namespace {

/// Whether the rows of a box follow each other without a gap, so that it is one run of bytes.
bool is_dense(const AccessPattern& box) {
  std::int64_t bytes = box.offsets[0];
  for (std::size_t d = 1; d < kMostBoxDims && (box.lanes >> d & 1) != 0; ++d) {
    if (box.offsets[d] > 1 && box.offsets[kBoxPitch + d] != bytes) return false;
    bytes *= box.offsets[d];
  }
  return true;
}

/// What is read of a row and a line: a sector of which the row has a part is asked for alone (kernels/micro
/// phases.rows: of rows of 128 bytes 1 request where they begin at a line, 1.5 at 64 bytes, 1.75 at any sector, 2.63 at
/// any 16 bytes).
void ask_for_row(std::int64_t line, std::int64_t from, std::int64_t to, std::vector<LineSectors>& found) {
  while (from < to) {
    const std::int64_t sector = from / kSectorBytes, whole_to = to / kSectorBytes * kSectorBytes;
    const bool part = from % kSectorBytes != 0 || whole_to <= from;
    const std::int64_t end = part ? std::min(to, (sector + 1) * kSectorBytes) : whole_to;
    const auto sectors = (1u << ((end - 1) / kSectorBytes - sector + 1)) - 1u;
    found.push_back({static_cast<std::int32_t>(line), static_cast<std::uint8_t>(sectors << sector),
                     static_cast<std::uint8_t>(end - from)});
    from = end;
  }
}

/// A box's rows one after another. Lines that rows share are joined where the box is written, or one run of bytes.
CoalescedCounts coalesce_box(const AccessPattern& box, std::vector<LineSectors>* lines) {
  const bool by_row = (box.kind == MemoryKind::AsyncCopy || box.kind == MemoryKind::Load) && !is_dense(box);
  std::vector<LineSectors> found;
  std::array<std::int32_t, kMostBoxDims> at{};
  for (bool more = true; more;) {
    std::int64_t begin = box.base_offset;
    for (std::size_t d = 1; d < kMostBoxDims; ++d) begin += std::int64_t{at[d]} * box.offsets[kBoxPitch + d];
    const std::int64_t end = begin + box.offsets[0];
    for (std::int64_t line = floor_divide(begin, kLineBytes); line * kLineBytes < end; ++line) {
      const std::int64_t from = std::max(begin, line * kLineBytes), to = std::min(end, (line + 1) * kLineBytes);
      if (by_row) {
        ask_for_row(line, from - line * kLineBytes, to - line * kLineBytes, found);
        continue;
      }
      LineSectors part{static_cast<std::int32_t>(line), 0, static_cast<std::uint8_t>(to - from)};
      for (std::int64_t s = from / kSectorBytes; s * kSectorBytes < to; ++s)
        part.sectors = static_cast<std::uint8_t>(part.sectors | 1u << (s & 3));
      found.push_back(part);
    }
    more = false;
    for (std::size_t d = 1; d < kMostBoxDims && !more; ++d) {
      if ((box.lanes >> d & 1) == 0) break;
      more = ++at[d] < box.offsets[d];
      if (!more) at[d] = 0;
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
  CoalescedCounts counts;
  for (std::size_t i = 0; i < found.size();) {
    LineSectors whole = found[i];
    for (++i; !by_row && i < found.size() && found[i].line == whole.line; ++i) {
      whole.sectors = static_cast<std::uint8_t>(whole.sectors | found[i].sectors);
      whole.bytes = static_cast<std::uint8_t>(std::min(kLineBytes, whole.bytes + found[i].bytes));
    }
    ++counts.lines;
    counts.sectors = static_cast<std::uint16_t>(counts.sectors + std::popcount(unsigned{whole.sectors}));
    if (lines != nullptr) lines->push_back(whole);
  }
  counts.tag_sectors = counts.sectors;
  counts.requests = counts.lines;
  return counts;
}

}  // namespace

CoalescedCounts coalesce(const AccessPattern& pattern, const SharedMemoryRules& rules,
                         std::vector<LineSectors>* lines) {
  if (is_box(pattern)) return coalesce_box(pattern, lines);
  FW_CHECK(rules.banks <= 64 && std::has_single_bit(static_cast<unsigned>(rules.banks)) &&
               std::has_single_bit(static_cast<unsigned>(rules.bank_bytes)),
           "banks and their width are powers of two");
  CoalescedCounts counts;
  if (pattern.lanes == 0 || pattern.bytes == 0) return counts;
  std::array<Piece, kMaxPieces> pieces;
  const int piece_count = collect_pieces(pattern, pieces);
  const bool shared = pattern.space == MemorySpace::Shared;
  const bool by_pairs = pattern.kind == MemoryKind::AsyncCopy && pattern.bytes == 16 && !shared;
  const std::size_t first_line = lines != nullptr ? lines->size() : 0;
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
    if (shared || by_pairs) continue;
    const std::int64_t last = floor_divide(piece.end - 1, kSectorBytes);
    for (std::int64_t sector = std::max(floor_divide(begin, kSectorBytes), last_sector + 1); sector <= last; ++sector)
      add_sector(sector, counts, last_line, lines);
    last_sector = last;
    if (lines != nullptr) add_bytes(begin, piece.end, std::span(*lines).subspan(first_line));
  }
  const int lane_bytes = std::popcount(pattern.lanes) * pattern.bytes;
  counts.bytes = static_cast<std::uint16_t>(bytes);
  if (by_pairs) {
    ask_by_pairs(pattern, counts, lines);
  } else {
    counts.tag_sectors = counts.sectors;
    counts.requests = counts.lines;
  }
  counts.ideal_sectors = std::min<std::uint16_t>(
      counts.sectors, static_cast<std::uint16_t>((lane_bytes + kSectorBytes - 1) / kSectorBytes));
  if (is_atomic(pattern) && !shared) count_atomic_passes(pieces, piece_count, counts);
  count_wavefronts(pattern, rules, lane_bytes, counts);
  if (pattern.fetch_bytes != 0 && lines != nullptr) {
    // Of 256 bytes, the other line is left out.
    const std::uint32_t fetched = std::min<std::uint32_t>(pattern.fetch_bytes, kLineBytes) / kSectorBytes;
    for (LineSectors& line : std::span(*lines).subspan(first_line)) line.fetch = static_cast<std::uint8_t>(fetched);
  }
  return counts;
}

namespace {

LaneMask own_lanes(const AccessPattern& pattern, std::uint64_t base) {
  LaneMask own = 0;
  for (LaneMask m = pattern.lanes; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto offset = static_cast<std::uint64_t>(std::int64_t{pattern.offsets[static_cast<std::size_t>(lane)]});
    if (remote_rank(base + offset) < 0) own |= LaneMask{1} << lane;
  }
  return own;
}

}  // namespace

bool reaches_others(const AccessPattern& pattern, std::uint64_t base) {
  return pattern.space == MemorySpace::Shared && own_lanes(pattern, base) != pattern.lanes;
}

CoalescedCounts own_part(const AccessPattern& pattern, std::uint64_t base) {
  AccessPattern own = pattern;
  own.lanes = own_lanes(pattern, base);
  CoalescedCounts counts = coalesce(own);
  counts.wavefronts = std::max<std::uint16_t>(counts.wavefronts, 1);
  counts.ideal_wavefronts = std::max<std::uint16_t>(counts.ideal_wavefronts, 1);
  return counts;
}

void CoalescedPatterns::extend(const std::vector<AccessPattern>& patterns, const SharedMemoryRules& rules) {
  counts_.reserve(patterns.size());
  effects_.reserve(patterns.size());
  first_line_.reserve(patterns.size() + 1);
  for (std::size_t i = counts_.size(); i < patterns.size(); ++i) {
    counts_.push_back(coalesce(patterns[i], rules, &lines_));
    effects_.push_back(effect_of(patterns[i]));
    first_line_.push_back(lines_.size());
  }
}

}  // namespace forewarp
