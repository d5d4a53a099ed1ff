// One L2 slice: sectored set-associative tags and the table of misses in flight. It decides what happens to a line and
// keeps no time; memory_paths.cpp moves requests through it and owns its rates. Why each policy is as it is:
// validation/FINDINGS.md, L2.
//
// - Write-back, allocate on write without fetching. A sector written in part is dirty but not valid: a read of it
//   fetches and merges, an eviction costs a DRAM read besides the write (HBM with ECC has no masked write). No byte
//   mask is kept: once the partial writes to a line add up to all of its partial sectors, these count as complete.
// - A fetch brings whole pieces of fetch_bytes, from DRAM and from the other partition alike. These are the promoted
//   sectors that lts__t_sectors_lookup_miss counts. A request may ask for larger pieces (LTC128B).
// - A way may hold a copy of a line homed in the other partition. Copies are clean and age as home lines do; hits on a
//   copy do not keep its home line young. A write from the far side leaves a copy of the sectors it wrote whole.
// - At most partial_share of the lines are written in part; beyond that the set's oldest one is read, merged and
//   written back.
// - At most dirty_share of a set's lines are dirty. A write beyond that has the least recently used one written back;
//   it stays as a clean line.
// - Where more than dirty_share_read of a set is dirty, a lookup of a home line that makes no other line dirty has the
//   oldest dirty one written back, too.
// - A read that misses nothing in a full set has the set's oldest line written back if it is dirty and not spared.
// - One of the set's victim_choices oldest lines leaves. If that line is dirty and DRAM is behind with reads, it is
//   spared, the more often the more sectors the slice is fetching (spare_dirty), and the oldest clean line leaves.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "timing/engine/host_lines.h"
#include "timing/memory/address_map.h"

namespace forewarp {

struct L2Geometry {
  explicit L2Geometry(const GpuModel&);
  FastDivisor sets;
  std::uint32_t ways = 0;
  std::uint32_t miss_entries = 0;
  std::uint32_t burst_sectors = 0;   ///< sectors that a DRAM access moves: 1, 2 or 4
  std::uint32_t fetch_sectors = 0;   ///< sectors that a miss fetches together: 1, 2 or 4
  std::uint32_t dirty_limit = 0;     ///< lines a set, times kDirtyUnit
  std::uint32_t dirty_read = 0;      ///< the same for lookups that make no other line dirty
  std::uint32_t partial_limit = 0;   ///< lines of a slice
  std::uint32_t victim_choices = 1;  ///< 1: the oldest line leaves; 2: it or the next
  std::uint32_t spare_of_256 = 0;    ///< times out of 256 that a dirty line is spared when DRAM is furthest behind

  static constexpr std::uint32_t kDirtyUnit = 256;  ///< a fractional limit holds on average over sets

  /// All sectors of the bursts that the given sectors lie in.
  std::uint8_t whole_bursts(std::uint8_t sectors) const { return whole(sectors, burst_sectors); }
  /// All sectors that are fetched when the given ones are missed by a request that asks for so many at once.
  std::uint8_t whole_fetches(std::uint8_t sectors, std::uint32_t at_once) const {
    return whole(sectors, std::max(fetch_sectors, at_once));
  }

 private:
  static std::uint8_t whole(std::uint8_t sectors, std::uint32_t unit) {
    if (unit == 1) return sectors;
    if (unit == 2) return static_cast<std::uint8_t>(((sectors & 3) != 0 ? 3 : 0) | ((sectors & 12) != 0 ? 12 : 0));
    return sectors != 0 ? 15 : 0;
  }
};

/// Data that left the slice for DRAM.
struct Eviction {
  std::uint64_t index = 0;
  std::uint8_t dirty = 0;    ///< sectors to write; 0: nothing
  std::uint8_t partial = 0;  ///< of those, sectors to be read first
};

class L2Slice {
 public:
  static constexpr std::uint16_t kNoMiss = 0xFFFF;
  static constexpr std::uint32_t kNoWay = ~0u;

  enum class Outcome : std::uint8_t { Hit, Wait, Stall };
  struct Access {
    Outcome outcome = Outcome::Stall;
    std::uint8_t missing = 0;      ///< of the sectors asked for: what to wait for
    std::uint8_t missed = 0;       ///< of those, what this access found absent and not yet asked for
    std::uint8_t fetch = 0;        ///< what has to be fetched now (when stalled: what would be), whole pieces
    std::uint8_t added = 0;        ///< of that, what was neither present nor in flight
    std::uint16_t miss = kNoMiss;  ///< entry to wait at
    std::uint32_t way = kNoWay;
    Eviction evicted;
    Eviction cleaned;  ///< written back, but still here
  };

  /// A miss entry (MSHR): the waiters of a line with sectors in flight, chained through the owner's records.
  struct Miss {
    std::uint32_t first = ~0u, last = ~0u;
    std::uint32_t way = 0;
    std::uint8_t pending = 0;
    bool copy = false;
  };

  explicit L2Slice(const L2Geometry&);

  /// Prefetches the line's set: the tags of a GPU's L2 are larger than the host's caches.
  void prefetch(std::uint64_t index, bool copy) const {
    const std::size_t first = place(index, copy).first_way;
    __builtin_prefetch(tags_.data() + first);
    __builtin_prefetch(lines_.data() + first);
    __builtin_prefetch(lines_.data() + first + geometry_.ways / 2);
  }
  void prefetch_miss(std::uint16_t miss) const { __builtin_prefetch(misses_.data() + miss); }
  void prefetch_way(std::uint32_t way) const { __builtin_prefetch(lines_.data() + way); }

  /// Looks sectors up for a read or an atomic. Wait: Access::miss is the entry. Stall: no room for another miss,
  /// nothing has changed.
  /// `at_once`: sectors that a miss fetches together at least.
  Access read(std::uint64_t index, bool copy, std::uint8_t sectors, std::uint8_t at_once = 0);
  /// Writes sectors of a home line. `bytes`: of partly written sectors together, 0 if unknown.
  Access write(std::uint64_t index, std::uint8_t sectors, bool full, std::uint8_t bytes);
  /// An atomic was executed on sectors that are present. Returns what is written back for it.
  Eviction modify(std::uint32_t way, std::uint8_t sectors);
  /// Sectors of an entry arrive. The entry lives on until release().
  Miss& arrive(std::uint16_t miss, std::uint8_t sectors);
  Miss& entry(std::uint16_t miss) { return misses_[miss]; }
  const Miss& entry(std::uint16_t miss) const { return misses_[miss]; }
  /// Frees the entry if nothing of it is pending.
  void release(std::uint16_t miss);
  /// Written-back sectors have been taken by the DRAM channel.
  void written_back(int sectors) { write_backs_ -= static_cast<std::uint32_t>(sectors); }
  /// The line's home was written: a copy here loses these sectors.
  void invalidate_copy(std::uint64_t index, std::uint8_t sectors);
  /// The line's home was written from this side: the sectors that were written whole stay as a copy. Returns what was
  /// evicted for it.
  Eviction keep_copy(std::uint64_t index, std::uint8_t sectors, bool full);

  /// A read() or write() whose data arrives at once, without a miss entry. Hit unless sectors missed.
  Access touch(std::uint64_t index, bool copy, std::uint8_t sectors, bool write, bool full = true,
               std::uint8_t bytes = 0, std::uint8_t at_once = 0);
  /// Limits the sectors that touch() takes to be in flight, for traffic that arrives more slowly than what was read
  /// lately.
  void fetch_at_most(std::uint32_t sectors) { most_busy_ = sectors; }
  /// Lines that are dirty now belong to earlier launches and are not spared.
  void spare_nothing_so_far() { others_ = clock_; }

  /// Takes over the lines of a slice of the same shape. What is on its way there has arrived here.
  void copy_lines(const L2Slice& other);

  std::uint64_t dirty_sectors() const { return dirty_sectors_; }
  std::uint32_t set_of(std::uint64_t index) const { return place(index, false).first_way / geometry_.ways; }
  /// Whether these sectors could be fetched now. A stalled request need not be looked up again before.
  bool may_fetch(bool copy, std::uint8_t fetch) const {
    return in_flight_[copy] + static_cast<std::uint32_t>(std::popcount(unsigned{fetch})) <= geometry_.miss_entries;
  }
  std::uint32_t in_flight(bool copy) const { return in_flight_[copy]; }
  /// Sectors readable now; for tests and state comparison.
  std::uint8_t valid(std::uint64_t index, bool copy) const;

 private:
  struct Line {
    std::uint32_t used = 0;  ///< value of clock_ at the last use
    std::uint8_t valid : 4 = 0, dirty : 4 = 0;
    std::uint8_t partial : 4 = 0, pending : 4 = 0;
    std::uint16_t miss = kNoMiss;
  };
  struct Place {
    std::uint32_t first_way;
    std::uint32_t tag;
  };
  static constexpr std::uint32_t kFree = ~0u;     ///< tag of an empty way
  static constexpr std::uint32_t kBusyUnit = 64;  ///< scale and time constant of busy_mean_

  Place place(std::uint64_t index, bool copy) const {
    const Placement p = place_rotated(index, geometry_.sets);
    return {p.place * geometry_.ways, static_cast<std::uint32_t>(p.quotient << 1) | (copy ? 1u : 0u)};
  }
  std::uint64_t index_of(std::uint32_t way) const;
  template <typename Look>
  auto over_ways(Look&& look) const;
  std::uint32_t find(Place) const;
  std::uint32_t copies_in_flight(std::uint32_t first_way) const;
  /// The way to evict; kNoWay if all are in flight (or, for a copy, if none would be left for home lines). `busy`: home
  /// sectors being fetched, now or, where no time passes, on average.
  std::uint32_t victim(Place, bool copy, std::uint32_t busy) const;
  /// Whether a dirty line stays although it is its turn to leave.
  bool spared(std::uint32_t way, std::uint32_t busy) const;
  /// Home sectors being fetched; also updates the mean.
  std::uint32_t busy_now();
  std::uint32_t busy_mostly() const { return std::min(busy_mean_ / kBusyUnit, most_busy_); }
  /// The least recently used wanted line of a set; kNoWay if there is none.
  template <typename Wanted>
  std::uint32_t oldest_of(std::uint32_t set, Wanted&& wanted) const;
  /// Empties the way and gives it the new tag.
  Eviction replace(std::uint32_t way, Place);
  bool room(bool copy, std::uint8_t fetch, std::uint32_t victim_way) const;
  void set_partial(std::uint32_t way, std::uint8_t sectors);
  /// The line to write back if `more` lines of the set became dirty and the limit is to hold; never the way
  /// itself.
  std::uint32_t to_clean(std::uint32_t way, std::uint32_t more, std::uint32_t limit) const;
  /// Pseudo-random bits, different at each use.
  std::uint32_t chance() const { return (clock_ * 0x9E3779B1u) ^ (clock_ >> 7) * 0x85EBCA6Bu; }
  /// Too much is dirty and DRAM takes no more: a write to this way must wait.
  bool holds_up(std::uint32_t way) const;
  /// Writes back to_clean() if too much is dirty.
  Eviction clean(std::uint32_t way, std::uint32_t limit);
  /// What is written back for a write (`again`: to a line that was dirty already) and for a read (`found`: all of it).
  /// `busy`: as in victim().
  Eviction clean_for_write(std::uint32_t way, bool again);
  Eviction clean_for_read(std::uint32_t way, bool copy, bool found, std::uint32_t busy);
  /// Writes the line back and keeps it clean; nothing if DRAM takes no more.
  Eviction write_back(std::uint32_t way);
  /// A limit in units of 1/kDirtyUnit as whole lines of this set.
  static std::uint32_t lines_of(std::uint32_t limit, std::uint32_t set);
  std::uint16_t new_miss(std::uint32_t way, bool copy);
  void clear_dirty(std::uint32_t way);
  void set_dirty(std::uint32_t way, std::uint8_t sectors);
  void write_line(std::uint32_t way, std::uint8_t sectors, bool full, std::uint8_t bytes);

  const L2Geometry& geometry_;
  HostLines<std::uint32_t> tags_;
  HostLines<Line> lines_;
  std::vector<std::uint8_t> partial_bytes_;
  std::vector<Miss> misses_;
  std::vector<std::uint16_t> free_misses_;
  std::uint32_t clock_ = 0;
  std::uint32_t in_flight_[2] = {0, 0};  ///< sectors being fetched: for home lines, for copies
  std::uint32_t write_backs_ = 0;        ///< sectors on their way to DRAM
  std::uint64_t dirty_sectors_ = 0;
  std::vector<std::uint8_t> dirty_lines_;  ///< of each set
  std::uint32_t busy_mean_ = 0;            ///< running mean of in_flight_[0] at replacements, times kBusyUnit
  std::uint32_t most_busy_ = ~0u;          ///< its limit where no time passes
  std::uint32_t others_ = 0;               ///< lines not used since this clock_ belong to earlier launches
  std::uint32_t partial_lines_ = 0;        ///< lines with partly written sectors
};

}  // namespace forewarp
