#include "timing/memory/l2_slice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace forewarp {
namespace {

std::uint8_t bits(int x) { return static_cast<std::uint8_t>(x & 15); }

}  // namespace

L2Geometry::L2Geometry(const GpuModel& model) {
  const L2Spec& l2 = model.l2;
  const auto access = model.hbm.access_bytes;
  const bool ok = l2.bytes > 0 && l2.ways > (l2.replicate_far_lines ? 1 : 0) && l2.slices > 0 && l2.miss_entries >= 4 &&
                  (access == 32 || access == 64 || access == 128);
  if (!ok) {
    throw InputError(
        "the GPU model's L2 cannot be built",
        "bytes, slices and ways must be positive (ways > 1 with replicate_far_lines), miss_entries at least "
        "4 and hbm access_bytes 32, 64 or 128");
  }
  ways = static_cast<std::uint32_t>(l2.ways);
  // Capacity need not divide evenly (50 MB over 96 slices): take the nearest number of sets.
  const double per_slice = static_cast<double>(l2.bytes) / kLineBytes / l2.slices;
  sets = FastDivisor(static_cast<std::uint64_t>(std::max(1.0, std::round(per_slice / l2.ways))));
  miss_entries = static_cast<std::uint32_t>(l2.miss_entries);
  burst_sectors = static_cast<std::uint32_t>(access / kSectorBytes);
  fetch_sectors = std::max(burst_sectors, static_cast<std::uint32_t>(l2.fetch_bytes / kSectorBytes));
  partial_limit = static_cast<std::uint32_t>(l2.partial_share * static_cast<double>(sets.divisor() * ways));
  dirty_limit = static_cast<std::uint32_t>(std::lround(l2.dirty_share * ways * kDirtyUnit));
  dirty_read = static_cast<std::uint32_t>(std::lround(l2.dirty_share_read * ways * kDirtyUnit));
  spare_of_256 = static_cast<std::uint32_t>(std::lround(l2.spare_dirty * 256));
  victim_choices = static_cast<std::uint32_t>(l2.victim_choices);
}

L2Slice::L2Slice(const L2Geometry& geometry) : geometry_(geometry) {
  const std::size_t ways = geometry.sets.divisor() * geometry.ways;
  tags_.assign(ways, kFree);
  lines_.resize(ways);
  partial_bytes_.assign(ways, 0);
  dirty_lines_.assign(geometry.sets.divisor(), 0);
  // Every entry has at least one sector in flight; home lines and copies have a limit each.
  misses_.resize(std::size_t{2} * geometry.miss_entries);
  FW_CHECK(misses_.size() < kNoMiss, "too many miss entries a slice");
  for (std::size_t i = misses_.size(); i-- > 0;) free_misses_.push_back(static_cast<std::uint16_t>(i));
}

void L2Slice::copy_lines(const L2Slice& other) {
  FW_CHECK(tags_.size() == other.tags_.size(), "L2 slices of different shapes");
  tags_ = other.tags_;
  lines_ = other.lines_;
  partial_bytes_ = other.partial_bytes_;
  clock_ = other.clock_;
  dirty_sectors_ = other.dirty_sectors_;
  dirty_lines_ = other.dirty_lines_;
  partial_lines_ = other.partial_lines_;
  for (std::uint32_t way = 0; way < lines_.size(); ++way) {
    Line& line = lines_[way];
    line.valid = bits(line.valid | line.pending);
    set_partial(way, bits(line.partial & ~line.pending));
    line.pending = 0;
    line.miss = kNoMiss;
  }
}

std::uint64_t L2Slice::index_of(std::uint32_t way) const {
  return unplace_rotated({way / geometry_.ways, tags_[way] >> 1}, geometry_.sets);
}

/// Calls look(ways), with a constant for the number of ways that all GPUs so far have, so that the compiler can
/// vectorise it without branches.
template <typename Look>
auto L2Slice::over_ways(Look&& look) const {
  constexpr std::uint32_t kUsual = 16;
  return geometry_.ways == kUsual ? look(std::integral_constant<std::uint32_t, kUsual>{}) : look(geometry_.ways);
}

std::uint32_t L2Slice::find(Place p) const {
  const std::uint32_t* tags = tags_.data() + p.first_way;
  const std::uint32_t found = over_ways([&](auto ways) {
    std::uint32_t place = 0;  // from 1
    for (std::uint32_t w = 0; w < ways; ++w) place |= tags[w] == p.tag ? w + 1 : 0;
    return place;
  });
  return found == 0 ? kNoWay : p.first_way + found - 1;
}

template <typename Wanted>
std::uint32_t L2Slice::oldest_of(std::uint32_t set, Wanted&& wanted) const {
  std::uint32_t found = kNoWay;
  for (std::uint32_t way = set * geometry_.ways; way < (set + 1) * geometry_.ways; ++way) {
    if (!wanted(way)) continue;
    if (found == kNoWay || clock_ - lines_[way].used > clock_ - lines_[found].used) found = way;
  }
  return found;
}

std::uint32_t L2Slice::busy_now() {
  busy_mean_ += in_flight_[0] - busy_mean_ / kBusyUnit;
  return in_flight_[0];
}

bool L2Slice::spared(std::uint32_t way, std::uint32_t busy) const {
  return lines_[way].used > others_ && ((chance() >> 8) & 255) * geometry_.miss_entries < geometry_.spare_of_256 * busy;
}

std::uint32_t L2Slice::copies_in_flight(std::uint32_t first_way) const {
  std::uint32_t copies = 0;
  for (std::uint32_t way = first_way; way < first_way + geometry_.ways; ++way)
    copies += lines_[way].miss != kNoMiss ? tags_[way] & 1u : 0u;
  return copies;
}

std::uint32_t L2Slice::victim(Place p, bool copy, std::uint32_t busy) const {
  // Two partitions whose sets are full of copies in flight, each waiting for a way in the other, would deadlock.
  const std::size_t in_flight = misses_.size() - free_misses_.size();
  if (copy && in_flight + 1 >= geometry_.ways && copies_in_flight(p.first_way) + 1 >= geometry_.ways) return kNoWay;
  // Age and place as one number, the first of equally old ways highest; 0 while in flight. A free way is older than any
  // line. In a line read as one number, `used` is the lower half and `miss` the top.
  static_assert(sizeof(Line) == sizeof(std::uint64_t) && std::endian::native == std::endian::little);
  const Line* lines = lines_.data() + p.first_way;
  const auto key = [&](std::uint32_t w) {
    std::uint64_t line = 0;
    std::memcpy(&line, lines + w, sizeof line);
    const std::uint64_t age = (clock_ - line) & 0xFFFFFFFF;
    return static_cast<std::int64_t>(line >> 48 == kNoMiss ? age << 16 | (0xFFFF - w) : 0);
  };
  const auto [oldest, second] = over_ways([&](auto ways) {
    std::pair<std::int64_t, std::int64_t> keys{0, 0};
    for (std::uint32_t w = 0; w < ways; ++w) keys.first = std::max(keys.first, key(w));
    for (std::uint32_t w = 0; w < ways; ++w) keys.second = std::max(keys.second, key(w) == keys.first ? 0 : key(w));
    return keys;
  });
  const auto way_of = [&](std::int64_t of) {
    return of == 0 ? kNoWay : p.first_way + (0xFFFF - static_cast<std::uint32_t>(of & 0xFFFF));
  };
  const std::uint32_t best = way_of(oldest), next = way_of(second);
  if (best == kNoWay || tags_[best] == kFree) return best;
  const std::uint32_t chosen = geometry_.victim_choices > 1 && next != kNoWay && (chance() & 1) != 0 ? next : best;
  if (lines_[chosen].dirty == 0 || !spared(chosen, busy)) return chosen;
  const std::uint32_t clean = oldest_of(p.first_way / geometry_.ways, [this](std::uint32_t way) {
    return lines_[way].dirty == 0 && lines_[way].miss == kNoMiss;
  });
  return clean == kNoWay ? chosen : clean;
}

Eviction L2Slice::replace(std::uint32_t way, Place p) {
  Eviction e;
  Line& line = lines_[way];
  if (line.dirty != 0) {
    e = {index_of(way), line.dirty, line.partial};
    write_backs_ += static_cast<std::uint32_t>(std::popcount(unsigned{line.dirty}));
    clear_dirty(way);
  }
  set_partial(way, 0);
  line = Line{};
  tags_[way] = p.tag;
  return e;
}

bool L2Slice::room(bool copy, std::uint8_t fetch, std::uint32_t victim_way) const {
  if (!may_fetch(copy, fetch)) return false;
  if (victim_way == kNoWay || write_backs_ == 0) return true;
  return write_backs_ + static_cast<std::uint32_t>(std::popcount(unsigned{lines_[victim_way].dirty})) <=
         geometry_.miss_entries;
}

std::uint16_t L2Slice::new_miss(std::uint32_t way, bool copy) {
  const std::uint16_t id = free_misses_.back();
  free_misses_.pop_back();
  misses_[id] = Miss{};
  misses_[id].way = way;
  misses_[id].copy = copy;
  lines_[way].miss = id;
  return id;
}

L2Slice::Access L2Slice::read(std::uint64_t index, bool copy, std::uint8_t sectors, std::uint8_t at_once) {
  Access a;
  const Place p = place(index, copy);
  std::uint32_t way = find(p);
  if (way == kNoWay) {
    a.fetch = geometry_.whole_fetches(sectors, at_once);
    way = victim(p, copy, busy_now());
    if (way == kNoWay || !room(copy, a.fetch, tags_[way] == kFree ? kNoWay : way)) return a;
    a.evicted = replace(way, p);
    a.missing = a.missed = sectors;
  } else {
    const Line& line = lines_[way];
    a.missing = bits(sectors & ~line.valid);
    a.missed = bits(a.missing & ~line.pending);
    // A sector of the piece that is present or in flight is not fetched (DRAM brings whole bursts
    // anyway).
    a.fetch = bits(geometry_.whole_fetches(a.missed, at_once) & ~line.valid & ~line.pending);
    if (!room(copy, a.fetch, kNoWay)) return a;
    if (!copy) a.fetch = geometry_.whole_bursts(a.fetch);
  }
  Line& line = lines_[way];
  line.used = ++clock_;
  a.cleaned = clean_for_read(way, copy, a.fetch == 0, in_flight_[0]);
  a.way = way;
  a.outcome = a.missing == 0 ? Outcome::Hit : Outcome::Wait;
  if (a.fetch != 0) {
    if (line.miss == kNoMiss) new_miss(way, copy);
    a.added = bits(a.fetch & ~line.valid & ~line.pending);
    line.pending = bits(line.pending | a.added);
    misses_[line.miss].pending |= a.added;
    in_flight_[copy] += static_cast<std::uint32_t>(std::popcount(unsigned{a.added}));
  }
  a.miss = line.miss;
  return a;
}

L2Slice::Access L2Slice::write(std::uint64_t index, std::uint8_t sectors, bool full, std::uint8_t bytes) {
  Access a;
  const Place p = place(index, false);
  std::uint32_t way = find(p);
  if (way == kNoWay) {
    way = victim(p, false, busy_now());
    if (way == kNoWay || !room(false, 0, tags_[way] == kFree ? kNoWay : way)) return a;
    if (holds_up(way)) return a;
    a.evicted = replace(way, p);
  } else if (holds_up(way)) {
    return a;
  }
  const bool again = lines_[way].dirty != 0;
  write_line(way, sectors, full, bytes);
  a.cleaned = clean_for_write(way, again);
  a.outcome = Outcome::Hit;
  a.way = way;
  return a;
}

std::uint32_t L2Slice::to_clean(std::uint32_t way, std::uint32_t more, std::uint32_t limit) const {
  const std::uint32_t set = way / geometry_.ways;
  std::uint32_t found = kNoWay;
  if (partial_lines_ + more > geometry_.partial_limit)
    found = oldest_of(set, [&](std::uint32_t other) { return other != way && lines_[other].partial != 0; });
  if (found == kNoWay && dirty_lines_[set] + more > lines_of(limit, set))
    found = oldest_of(set, [&](std::uint32_t other) { return other != way && lines_[other].dirty != 0; });
  return found;
}

std::uint32_t L2Slice::lines_of(std::uint32_t limit, std::uint32_t set) {
  // Sets are numbered in order of addresses: those with one line more are spread over them.
  const std::uint32_t turn = (set * 0x9E3779B1u) >> 24;
  return (limit + turn) / L2Geometry::kDirtyUnit;
}

bool L2Slice::holds_up(std::uint32_t way) const {
  if (write_backs_ == 0) return false;
  const std::uint32_t oldest = to_clean(way, 1, geometry_.dirty_limit);
  return oldest != kNoWay && !room(false, 0, oldest);
}

Eviction L2Slice::clean(std::uint32_t way, std::uint32_t limit) {
  const std::uint32_t oldest = to_clean(way, 0, limit);
  return oldest == kNoWay ? Eviction{} : write_back(oldest);
}

Eviction L2Slice::clean_for_write(std::uint32_t way, bool again) {
  return clean(way, again ? geometry_.dirty_read : geometry_.dirty_limit);
}

Eviction L2Slice::clean_for_read(std::uint32_t way, bool copy, bool found, std::uint32_t busy) {
  const std::uint32_t set = way / geometry_.ways;
  if (dirty_lines_[set] == 0) return {};
  if (!copy)
    if (const Eviction cleaned = clean(way, geometry_.dirty_read); cleaned.dirty != 0) return cleaned;
  if (!found) return {};
  // A read that finds all leaves DRAM idle: the next line to leave becomes clean. A free way is older than any line.
  const std::uint32_t oldest = oldest_of(set, [this](std::uint32_t other) { return lines_[other].miss == kNoMiss; });
  return oldest == kNoWay || lines_[oldest].dirty == 0 || spared(oldest, busy) ? Eviction{} : write_back(oldest);
}

Eviction L2Slice::write_back(std::uint32_t way) {
  if (!room(false, 0, way)) return {};
  Line& line = lines_[way];
  const Eviction e = {index_of(way), line.dirty, line.partial};
  write_backs_ += static_cast<std::uint32_t>(std::popcount(unsigned{line.dirty}));
  clear_dirty(way);
  line.valid = bits(line.valid | line.partial);  // read to be merged
  set_partial(way, 0);
  return e;
}

void L2Slice::write_line(std::uint32_t way, std::uint8_t sectors, bool full, std::uint8_t bytes) {
  Line& line = lines_[way];
  line.used = ++clock_;
  set_dirty(way, sectors);
  if (full) {
    line.valid = bits(line.valid | sectors);
    set_partial(way, bits(line.partial & ~sectors));
    return;
  }
  set_partial(way, bits(line.partial | (sectors & ~line.valid)));
  if (line.partial == 0) return;
  const int sum = partial_bytes_[way] + bytes;
  if (sum >= kSectorBytes * std::popcount(unsigned{line.partial})) {
    line.valid = bits(line.valid | line.partial);
    set_partial(way, 0);
  } else {
    partial_bytes_[way] = static_cast<std::uint8_t>(sum);
  }
}

void L2Slice::set_partial(std::uint32_t way, std::uint8_t sectors) {
  Line& line = lines_[way];
  if (sectors == 0 && line.partial == 0) return;  // nearly always, without a look at partial_bytes_
  partial_lines_ += (sectors != 0 ? 1u : 0u) - (line.partial != 0 ? 1u : 0u);
  line.partial = bits(sectors);
  if (sectors == 0) partial_bytes_[way] = 0;
}

Eviction L2Slice::modify(std::uint32_t way, std::uint8_t sectors) {
  set_dirty(way, sectors);
  return clean(way, geometry_.dirty_limit);
}

L2Slice::Miss& L2Slice::arrive(std::uint16_t miss, std::uint8_t sectors) {
  Miss& entry = misses_[miss];
  Line& line = lines_[entry.way];
  const std::uint8_t arrived = bits(sectors & entry.pending);
  entry.pending = bits(entry.pending & ~arrived);
  line.pending = entry.pending;
  line.valid = bits(line.valid | arrived);
  set_partial(entry.way, bits(line.partial & ~arrived));
  in_flight_[entry.copy] -= static_cast<std::uint32_t>(std::popcount(unsigned{arrived}));
  return entry;
}

void L2Slice::release(std::uint16_t miss) {
  const Miss& entry = misses_[miss];
  if (entry.pending != 0) return;
  FW_CHECK(entry.first == ~0u, "an L2 miss entry is released with requests waiting");
  lines_[entry.way].miss = kNoMiss;
  free_misses_.push_back(miss);
}

void L2Slice::invalidate_copy(std::uint64_t index, std::uint8_t sectors) {
  const std::uint32_t way = find(place(index, true));
  if (way == kNoWay) return;
  lines_[way].valid = bits(lines_[way].valid & ~sectors);
  if (lines_[way].valid != 0 || lines_[way].miss != kNoMiss) return;
  tags_[way] = kFree;
  lines_[way] = Line{};
}

Eviction L2Slice::keep_copy(std::uint64_t index, std::uint8_t sectors, bool full) {
  Eviction e;
  const Place p = place(index, true);
  std::uint32_t way = find(p);
  if (way == kNoWay) {
    way = victim(p, true, busy_mostly());
    if (way == kNoWay || !room(true, 0, tags_[way] == kFree ? kNoWay : way)) return e;
    e = replace(way, p);
  }
  Line& line = lines_[way];
  line.used = ++clock_;
  line.valid = bits(full ? line.valid | (sectors & ~line.pending) : line.valid & ~sectors);
  return e;
}

L2Slice::Access L2Slice::touch(std::uint64_t index, bool copy, std::uint8_t sectors, bool write, bool full,
                               std::uint8_t bytes, std::uint8_t at_once) {
  Access a;
  const Place p = place(index, copy);
  a.way = find(p);
  if (a.way == kNoWay) {
    a.way = victim(p, copy, busy_mostly());
    if (a.way == kNoWay) return a;
    a.evicted = replace(a.way, p);
    written_back(std::popcount(unsigned{a.evicted.dirty}));
  }
  a.outcome = Outcome::Hit;
  if (write) {
    const bool again = lines_[a.way].dirty != 0;
    write_line(a.way, sectors, full, bytes);
    a.cleaned = clean_for_write(a.way, again);
    written_back(std::popcount(unsigned{a.cleaned.dirty}));
    return a;
  }
  Line& line = lines_[a.way];
  line.used = ++clock_;
  a.cleaned = clean_for_read(a.way, copy, (sectors & ~line.valid) == 0, busy_mostly());
  written_back(std::popcount(unsigned{a.cleaned.dirty}));
  a.missing = bits(sectors & ~line.valid);
  a.missed = bits(a.missing & ~line.pending);
  a.added = bits(geometry_.whole_fetches(a.missed, at_once) & ~line.valid & ~line.pending);
  a.fetch = copy ? a.added : geometry_.whole_bursts(a.added);
  line.valid = bits(line.valid | a.fetch);
  set_partial(a.way, bits(line.partial & ~a.fetch));
  if (a.missing != 0) a.outcome = Outcome::Wait;
  return a;
}

void L2Slice::clear_dirty(std::uint32_t way) {
  Line& line = lines_[way];
  dirty_sectors_ -= static_cast<std::uint64_t>(std::popcount(unsigned{line.dirty}));
  if (line.dirty != 0) --dirty_lines_[way / geometry_.ways];
  line.dirty = 0;
}

void L2Slice::set_dirty(std::uint32_t way, std::uint8_t sectors) {
  Line& line = lines_[way];
  dirty_sectors_ += static_cast<std::uint64_t>(std::popcount(unsigned{sectors} & ~unsigned{line.dirty}));
  if (line.dirty == 0 && sectors != 0) ++dirty_lines_[way / geometry_.ways];
  line.dirty = bits(line.dirty | sectors);
}

std::uint8_t L2Slice::valid(std::uint64_t index, bool copy) const {
  const std::uint32_t way = find(place(index, copy));
  return way == kNoWay ? 0 : lines_[way].valid;
}

}  // namespace forewarp
