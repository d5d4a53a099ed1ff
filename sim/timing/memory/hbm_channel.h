// One HBM pseudo-channel and its controller: banks with open rows, FR-FCFS over a bounded window, batches of reads and
// writes with turnaround, refresh bank by bank or all together. Row and column commands have separate buses, as in
// HBM. Time inside is in ticks of 1/64 SM cycle, so that nanosecond timings keep their ratios; the caller wakes the
// channel at wake_cycle().
//
// Left out: power-down, read/write of the same row in one visit, ECC traffic.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "timing/engine/pool.h"
#include "timing/memory/memory.h"

namespace forewarp {

using Tick = std::uint64_t;
inline constexpr int kTickBits = 6;
inline constexpr Tick kNoTick = ~Tick{0};
inline constexpr Tick to_ticks(Cycle c) { return c << kTickBits; }

/// HbmSpec in ticks.
struct HbmTimings {
  explicit HbmTimings(const GpuModel&);
  Tick cl, rcd, rp, ras, wr, rtp, cwl, ccd_l, rrd, faw, wtr, rtw, rfc;
  Tick refi;                    ///< from one refresh to the next, of the next banks
  std::uint32_t refresh_banks;  ///< refreshed together
  std::uint32_t refresh_step;   ///< from these to the banks that are next
  double refresh_spread;        ///< of the channels' first refreshes, as a share of a round
  /// The first of the banks refreshed after `bank`.
  std::uint32_t refreshed_after(std::uint32_t bank) const {
    const std::uint32_t next = bank + refresh_step;
    return next < banks ? next : (next - banks + refresh_banks) % refresh_step;
  }
  /// Time until the same banks are refreshed again.
  Tick round() const { return refi * (banks / refresh_banks); }
  Tick burst;   ///< data bus time of one access
  Tick column;  ///< between column commands: the longer of burst and tCCD_S
  std::uint32_t bank_groups, banks, row_accesses, access_bytes, queue_entries, read_requests;
  std::uint32_t write_high, write_low;
  Tick write_idle;
  /// Writes that start a batch even while reads leave the bus free.
  std::uint32_t write_gathered() const { return (write_high + write_low) / 2; }

  /// Column accesses that move these sectors of a line.
  std::uint32_t accesses(std::uint8_t sectors) const {
    if (access_bytes == kLineBytes) return sectors != 0;
    if (access_bytes == kSectorBytes) return static_cast<std::uint32_t>(std::popcount(unsigned{sectors}));
    return ((sectors & 3) != 0) + ((sectors & 12) != 0);
  }
  /// The sectors that the first of them moves.
  std::uint8_t first_access(std::uint8_t sectors) const {
    if (access_bytes == kLineBytes) return sectors;
    if (access_bytes == kSectorBytes) return static_cast<std::uint8_t>(sectors & -sectors);
    return static_cast<std::uint8_t>((sectors & 3) != 0 ? sectors & 3 : sectors);
  }
};

/// Column accesses to one line, in sequence. Lives in its channel's pool; `next` chains it wherever it waits.
struct Burst {
  std::uint32_t next = ~0u;
  std::uint32_t row = 0;
  std::uint32_t order = 0;  ///< arrival order of the first access; the others follow it
  std::uint16_t slice = 0;
  std::uint16_t miss = 0xFFFF;  ///< reads: L2 miss entry to fill; 0xFFFF if nobody waits for the data
  std::uint16_t bank = 0;
  std::uint8_t sectors = 0;  ///< sectors of the line still to be moved; writes: dirty ones
  bool write = false;
};

/// What a channel tells its owner; cleared by the owner.
struct ChannelOutput {
  struct Done {
    Tick at;  ///< last data of a read on the bus
    std::uint16_t slice, miss;
    std::uint8_t sectors;
  };
  struct Taken {  ///< a write that the slice need not keep any longer
    Tick at;
    std::uint16_t slice;
    std::uint8_t sectors;
  };
  std::vector<Done> done;
  std::vector<Taken> taken;
};

class HbmChannel {
 public:
  /// Channel `index` of `count`; their refreshes are spread over part of tREFI.
  HbmChannel(const HbmTimings&, std::uint32_t index, std::uint32_t count);

  /// Bursts arrive at cycle `now`.
  void push(std::span<const Burst>, Cycle now, ChannelOutput&);
  /// Issues every command due in cycles up to and including `now`.
  void advance(Cycle now, MemoryCounters&, ChannelOutput&);
  /// Cycle of the next command, kNever if nothing waits.
  Cycle wake_cycle() const { return next_ == kNoTick ? kNever : next_ >> kTickBits; }

 private:
  enum class Opened : std::uint8_t { Used, FromClosed, FromConflict };  ///< how the next access to the row is counted
  static constexpr std::uint32_t kNone = ~0u;
  static constexpr std::uint32_t kClosed = ~0u;
  struct Queue {
    std::uint32_t first = kNone, last = kNone, candidate = kNone, before = kNone;  ///< `before` the candidate
    std::array<std::uint16_t, 16> rows{};  ///< requests by part_of(row), a filter for rows that are not queued
  };
  static std::size_t part_of(std::uint32_t row) { return row * 0x9E3779B1u >> 28; }
  struct Bank {
    Opened opened = Opened::Used;
    bool conflict = false;     ///< closed to make room for another row
    std::uint32_t passed = 0;  ///< row hits served while an older request of the bank waited
    Queue queue[2];            ///< reads, writes
  };
  static constexpr std::size_t kMostBanks = 64;
  /// What the search for the next command reads of every bank, side by side: most of a channel's host time.
  struct Ready {
    std::array<Tick, kMostBanks> column_ok{}, activate_ok{}, precharge_ok{};
    std::array<std::uint32_t, kMostBanks> row{};
    std::array<std::uint32_t, kMostBanks> order[2] = {};  ///< of the candidates
    std::uint64_t hit[2] = {0, 0};                        ///< banks whose candidate is for the open row
    std::uint64_t open = 0;                               ///< banks with an open row
  };
  enum class Command : std::uint8_t { None, Column, Activate, Precharge };

  void admit(std::uint32_t id, ChannelOutput&);
  std::uint32_t split(std::uint32_t id, std::uint32_t accesses);
  bool join_last(const Burst&, ChannelOutput&);
  void announce(const Burst&, ChannelOutput&) const;
  void refill(int mode, ChannelOutput&);
  void choose_candidate(std::uint32_t bank, int mode);
  void set_candidate(std::uint32_t bank, int mode, std::uint32_t id, std::uint32_t before, bool hit);
  void append(Queue&, std::uint32_t id);
  void choose_mode();
  void plan();
  void find_command();
  void catch_up();
  void refresh();
  void refresh(std::uint32_t first, std::uint32_t end, Tick due);
  bool refresh_owed(std::uint32_t bank);
  bool hits(std::uint32_t bank) const { return ((busy_[mode_] & ready_.hit[mode_]) >> bank & 1) != 0; }
  void column(MemoryCounters&, ChannelOutput&);
  void activate();
  void close(std::uint32_t bank, bool conflict);

  const HbmTimings& t_;
  Pool<Burst> pool_;
  std::vector<Bank> banks_;
  Ready ready_;
  bool changed_[2] = {false, false};         ///< candidates of reads, of writes have changed since the last plan
  std::array<Tick, kMostBanks> group_ok_{};  ///< tCCD_L: next column command of a bank group
  Tick column_ok_[2] = {0, 0};               ///< next read, next write
  Tick activate_ok_ = 0;
  Tick recent_activates_[4] = {0, 0, 0, 0};  ///< plus tFAW
  std::uint32_t activates_ = 0;
  Tick idle_since_ = 0;  ///< the last arrival or column command
  Tick now_ = 0, next_ = kNoTick, next_refresh_ = kNoTick;
  std::uint32_t refreshed_ = 0;  ///< first bank of the next refresh
  std::uint64_t owed_ = 0;       ///< banks whose refresh waits for accesses to their open row
  Command command_ = Command::None;
  std::uint32_t command_bank_ = 0;
  std::uint64_t busy_[2] = {0, 0};     ///< banks with a read, a write waiting
  std::uint32_t waiting_[2] = {0, 0};  ///< in the window
  std::uint32_t reads_ = 0;            ///< that the accesses to read belong to
  Queue overflow_[2];                  ///< before the window
  std::uint32_t order_ = 0;
  int mode_ = 0;                    ///< 0 reads, 1 writes
  int last_mode_ = -1;              ///< of the last column command
  bool draining_ = false;           ///< writing because the high mark was reached
  std::uint32_t batch_ = ~0u >> 1;  ///< column commands since the bus turned around; starts as after a long batch
};

}  // namespace forewarp
