// One L2 slice: sectored set-associative tags and the table of misses in flight. It decides what happens to a line and
// keeps no time; memory.cpp moves requests through it and owns its rates.
//
// Policies, all documented choices:
// - Write-back, allocate on write without fetching. A sector written in part is dirty but not valid: reading it fetches
//   and merges; evicting it costs a DRAM read besides the write (HBM with ECC has no masked write). When the partial
//   writes to a line add up to all its partial sectors, these count as complete (no byte mask is kept).
// - A fetch brings whole pieces of fetch_bytes (64 B: both sectors), from DRAM and from the other partition alike;
//   these are the "promoted" sectors that lts__t_sectors_lookup_miss counts. A copy's hits do not keep its home line
//   young.
// - A way may hold a copy of a line homed in the other partition. Copies are clean and age as home lines do: on an H200
//   34.6 MB read again by the same SMs all hit, of 43.3 MB a fifth misses and of 51.9 MB nearly all, for half of the
//   lines have a copy; when other SMs read them, misses begin at 34.6 MB (kernels/micro l2_policy, l2_reread).
// - A line that is written from the far side stays there as a copy: on an H200 17.3 MB written and 34.6 MB read need
//   more room than there is when they are used again, as 51.9 MB that are read do (l2_write_2_read_4, warm); 26 MB that
//   are read and 21.6 MB that are written, word by word, too (l2_read_12_write_10_words). Sectors that are written in
//   part are not in the copy.
// - No more than partial_share of the lines are written in part: the set's oldest one is read, merged and written back.
//   On an H200 6.2 to 6.9 MB of such lines are left unread however many are written (l2_write_parts).
// - No more than dirty_share of a set's lines are dirty (of some sets one more than of others): a write beyond that has
//   the least recently used of them written back, which stays as a clean one. On an H200 29 MB of lines are left dirty
//   however much is written and however little of each, and no time passing writes anything back (l2_write,
//   l2_write_sectors, l2_write_wait).
// - Where more than dirty_share_read of a set's lines are dirty, a lookup of one of its home lines that makes no other
//   line dirty, a read or a write to a line that is dirty already, has the oldest dirty one written back, too. On an
//   H200 24.6 MB are left where what was written is read afterwards, 25.5 where any quarter of it is, once or 16 times
//   (l2_write_refind); 25.4 where 8.7 MB are read again and again in between (l2_write_hot); of 26 MB that are written
//   eight times 8 MB are written back, of those written once 1 (l2_rewrite).
// - The line that leaves is one of the set's victim_choices oldest: of 43 and 52 MB read in turn, a little more than
//   the slices hold, some are found again, of 61 MB none (l2_reread).
// - Where the line that would leave is dirty and DRAM is behind, it is spared and the oldest clean one leaves: as
//   often as spare_dirty says where as many reads are under way as a slice can have, the more rarely the fewer there
//   are. On an H200 of 17 MB written 7, 9 and 16 MB leave while 35 MB, 43 MB and 69 MB are read by 1024 threads an SM,
//   9, 14 and nearly all by 256, 10 and 16 and all by 64, whose reads hardly load DRAM (l2_write_read); by age alone
//   all would be gone after 43. Streams at half of DRAM's rate leave what age alone would, 1/3 of L2 where they copy;
//   those at three quarters and more a tenth to a half more (l2_copy, dram_copy, dram_add).
// - Where a read misses nothing and its set is full, the set's oldest line, which would be the next to leave, is
//   written back if it is dirty, unless it would be spared. On an H200 17 MB written and 35 MB read write 6.6 MB, 12.0
//   where the 35 are read three times more, of which but 7.5 MB come from memory (l2_write_read); 17 MB written, 26 MB
//   read, then the 17 found again write 9.8 MB, of which but 1.1 MB had left (l2_write_find). Where sets are not full,
//   nothing is written, not even where others read what is dirty, so that copies are made of dirty lines
//   (l2_write_refind).
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
  std::uint32_t dirty_limit = 0;     ///< lines of a set, times kDirtyUnit
  std::uint32_t dirty_read = 0;      ///< ... where a lookup makes no other line dirty
  std::uint32_t partial_limit = 0;   ///< lines of a slice
  std::uint32_t victim_choices = 1;  ///< 1: the oldest line leaves; 2: it or the next
  std::uint32_t spare_of_256 = 0;    ///< times out of 256 that a dirty line is spared where DRAM is most behind

  static constexpr std::uint32_t kDirtyUnit = 256;  ///< a limit that is no whole number holds on average over sets

  /// All sectors of the bursts that the given sectors lie in.
  std::uint8_t whole_bursts(std::uint8_t sectors) const { return whole(sectors, burst_sectors); }
  /// All sectors that are fetched when the given ones are missed.
  std::uint8_t whole_fetches(std::uint8_t sectors) const { return whole(sectors, fetch_sectors); }

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
    std::uint8_t added = 0;        ///< of that, what was neither present nor on its way
    std::uint16_t miss = kNoMiss;  ///< entry to wait at
    std::uint32_t way = kNoWay;
    Eviction evicted;
    Eviction cleaned;  ///< written back, but still here
  };

  /// Waiters of a line with sectors in flight: a chain through the owner's records.
  struct Miss {
    std::uint32_t first = ~0u, last = ~0u;
    std::uint32_t way = 0;
    std::uint8_t pending = 0;
    bool copy = false;
  };

  explicit L2Slice(const L2Geometry&);

  /// Brings the line's set near the host's processor; the tags of a GPU's L2 are larger than the host's caches.
  void prefetch(std::uint64_t index, bool copy) const {
    const std::size_t first = place(index, copy).first_way;
    __builtin_prefetch(tags_.data() + first);
    __builtin_prefetch(lines_.data() + first);
    __builtin_prefetch(lines_.data() + first + geometry_.ways / 2);
  }
  void prefetch_miss(std::uint16_t miss) const { __builtin_prefetch(misses_.data() + miss); }
  void prefetch_way(std::uint32_t way) const { __builtin_prefetch(lines_.data() + way); }

  /// Looks sectors up for reading (or for an atomic). Wait: Access::miss is the entry. Stall: no room for another miss,
  /// nothing has changed.
  Access read(std::uint64_t index, bool copy, std::uint8_t sectors);
  /// Writes sectors of a home line. `bytes`: of partly written sectors together, 0 if unknown.
  Access write(std::uint64_t index, std::uint8_t sectors, bool full, std::uint8_t bytes);
  /// An atomic has been executed on sectors that are present. Returns what is written back for it.
  Eviction modify(std::uint32_t way, std::uint8_t sectors);
  /// Sectors of an entry arrive. The entry lives on until release().
  Miss& arrive(std::uint16_t miss, std::uint8_t sectors);
  Miss& entry(std::uint16_t miss) { return misses_[miss]; }
  const Miss& entry(std::uint16_t miss) const { return misses_[miss]; }
  /// Gives the entry back if nothing of it is pending.
  void release(std::uint16_t miss);
  /// Written-back sectors have been taken by the DRAM channel.
  void written_back(int sectors) { write_backs_ -= static_cast<std::uint32_t>(sectors); }
  /// The line's home has been written: a copy here loses these sectors.
  void invalidate_copy(std::uint64_t index, std::uint8_t sectors);
  /// The line's home has been written through here: it stays as a copy, of sectors that were written whole. Returns
  /// what gives way.
  Eviction keep_copy(std::uint64_t index, std::uint8_t sectors, bool full);

  /// read() or write() whose data arrives at once. No miss entry is used; Hit unless sectors missed.
  Access touch(std::uint64_t index, bool copy, std::uint8_t sectors, bool write, bool full = true,
               std::uint8_t bytes = 0);
  /// What touch() stands for comes more slowly than what was read lately: no more than so many sectors are fetched at a
  /// time.
  void fetch_at_most(std::uint32_t sectors) { most_busy_ = sectors; }
  /// What is dirty now is of others than the launch: it is not spared.
  void spare_nothing_so_far() { others_ = clock_; }

  /// Lines as in another slice of the same shape in which nothing is in flight.
  void copy_lines(const L2Slice& other);

  std::uint64_t dirty_sectors() const { return dirty_sectors_; }
  std::uint32_t set_of(std::uint64_t index) const { return place(index, false).first_way / geometry_.ways; }
  /// Is there room for so many more sectors in flight? A stalled request need not be looked up again before.
  bool may_fetch(bool copy, std::uint8_t fetch) const {
    return in_flight_[copy] + static_cast<std::uint32_t>(std::popcount(unsigned{fetch})) <= geometry_.miss_entries;
  }
  std::uint32_t in_flight(bool copy) const { return in_flight_[copy]; }
  /// Sectors readable now; for tests and for comparing states.
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
  static constexpr std::uint32_t kBusyUnit = 64;  ///< of busy_mean_, which follows in as many steps

  Place place(std::uint64_t index, bool copy) const {
    const Placement p = place_rotated(index, geometry_.sets);
    return {p.place * geometry_.ways, static_cast<std::uint32_t>(p.quotient << 1) | (copy ? 1u : 0u)};
  }
  std::uint64_t index_of(std::uint32_t way) const;
  template <typename Look>
  auto over_ways(Look&& look) const;
  std::uint32_t find(Place) const;
  std::uint32_t copies_in_flight(std::uint32_t first_way) const;
  /// Best way to give up, kNoWay if all are in flight (or, for a copy, if none would be left for home lines). `busy`:
  /// home sectors being fetched, now or, where no time passes, mostly.
  std::uint32_t victim(Place, bool copy, std::uint32_t busy) const;
  /// A dirty line stays although it is its turn to leave.
  bool spared(std::uint32_t way, std::uint32_t busy) const;
  /// Home sectors being fetched; also remembers them.
  std::uint32_t busy_now();
  std::uint32_t busy_mostly() const { return std::min(busy_mean_ / kBusyUnit, most_busy_); }
  /// The least recently used line of the set of those wanted, kNoWay if there is none.
  template <typename Wanted>
  std::uint32_t oldest_of(std::uint32_t set, Wanted&& wanted) const;
  /// Empties the way and gives it the new tag.
  Eviction replace(std::uint32_t way, Place);
  bool room(bool copy, std::uint8_t fetch, std::uint32_t victim_way) const;
  void set_partial(std::uint32_t way, std::uint8_t sectors);
  /// What has to be written back if so many more lines were dirty than are and the limit of a set holds; never the way
  /// itself.
  std::uint32_t to_clean(std::uint32_t way, std::uint32_t more, std::uint32_t limit) const;
  /// Evenly spread bits that differ from use to use.
  std::uint32_t chance() const { return (clock_ * 0x9E3779B1u) ^ (clock_ >> 7) * 0x85EBCA6Bu; }
  /// Too much is dirty already, and DRAM takes no more: a write to this way has to wait.
  bool holds_up(std::uint32_t way) const;
  /// Where too much is dirty: to_clean becomes clean.
  Eviction clean(std::uint32_t way, std::uint32_t limit);
  /// What is written back for a write, to a line that was dirty already or not, and for a read that found all or not.
  /// `busy`: as in victim().
  Eviction clean_for_write(std::uint32_t way, bool again);
  Eviction clean_for_read(std::uint32_t way, bool copy, bool found, std::uint32_t busy);
  /// Writes the line back and keeps it, clean; nothing if DRAM takes no more.
  Eviction write_back(std::uint32_t way);
  /// A limit in kDirtyUnit as whole lines of the set.
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
  std::uint32_t write_backs_ = 0;        ///< sectors on the way to DRAM
  std::uint64_t dirty_sectors_ = 0;
  std::vector<std::uint8_t> dirty_lines_;  ///< of each set
  std::uint32_t busy_mean_ = 0;            ///< of in_flight_[0] when lines were replaced lately, times kBusyUnit
  std::uint32_t most_busy_ = ~0u;          ///< ... where no time passes
  std::uint32_t others_ = 0;               ///< lines not used since are of others
  std::uint32_t partial_lines_ = 0;        ///< lines with sectors that are written in part
};

}  // namespace forewarp
