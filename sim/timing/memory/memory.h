// Everything below an SM's L1: crossbar, L2 slices in two partitions, HBM channels. It sees lines and sectors, never
// instructions. Driven by events: an idle memory system costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "program/instruction.h"
#include "timing/engine/rate_server.h"
#include "timing/memory/l2_traffic.h"

namespace forewarp {

enum class RequestKind : std::uint8_t { Read, Write, Atomic /* returns a value */, Reduction /* does not */ };

/// What an instruction of a kind asks for.
inline RequestKind request_kind(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Store:
      return RequestKind::Write;
    case MemoryKind::Atomic:
      return RequestKind::Atomic;
    case MemoryKind::Reduction:
      return RequestKind::Reduction;
    default:
      return RequestKind::Read;
  }
}

/// One line's worth of sectors, from one SM.
struct MemoryRequest {
  std::uint64_t line = 0;  ///< address / 128
  std::uint32_t tag = 0;   ///< returned with the reply; the SM's own
  std::uint16_t sm = 0;
  std::uint8_t sectors = 0;  ///< mask of the line's four sectors
  RequestKind kind = RequestKind::Read;
  std::uint8_t rounds = 1;   ///< atomics: lanes that meet on one word and follow each other
  bool full_sectors = true;  ///< writes: every byte of each sector is written (else L2 keeps them apart until complete)
  std::uint8_t bytes = 0;    ///< writes of part of a sector: bytes written in all sectors together, 0 if unknown
};

struct MemoryReply {
  std::uint32_t tag = 0;
  std::uint16_t sm = 0;
  std::uint8_t sectors = 0;
};

/// Where a line lives.
struct LinePlace {
  std::uint64_t index = 0;  ///< in its slice
  std::uint16_t slice = 0;
  std::uint16_t pair = 0;   ///< of the slice and the one that keeps copies of its lines
  std::uint32_t which = 0;  ///< of the lines that were asked about
};

struct MemoryCounters {
  std::uint64_t read_requests = 0, write_requests = 0, atomic_requests = 0;  ///< L1 to L2, lines
  std::uint64_t read_sectors = 0, write_sectors = 0, atomic_sectors = 0,
                reduction_sectors = 0;  ///< lts__t_sectors_srcunit_tex_op_*
  /// Of those, found at the first lookup; writes always hit; a sector that is on its way already is a hit. Misses are
  /// what was asked of DRAM or of the other partition: whole pieces, so more than was missed.
  std::uint64_t hit_sectors = 0, miss_sectors = 0;
  /// Second lookups, at the home of a line, for the other partition: for its copies, and of its writes
  /// (srcunit_ltcfabric).
  std::uint64_t fabric_hit_sectors = 0, fabric_miss_sectors = 0;
  /// Reads that the coalescer merged into another: no lookup of their own.
  std::uint64_t merged_requests = 0, merged_sectors = 0;
  std::uint64_t merge_sectors = 0;   ///< written in part and read to be merged; lookups that miss
  std::uint64_t fabric_sectors = 0;  ///< moved between the partitions
  std::uint64_t dram_read_bytes = 0, dram_write_bytes = 0;
  std::uint64_t row_hits = 0, row_misses = 0, row_conflicts = 0, turnarounds = 0;
  std::uint64_t read_latency_cycles = 0, read_replies = 0;  ///< push to reply, summed
};

class MemorySystem {
 public:
  enum class L2Start : std::uint8_t { Flushed /* as a profiler leaves it */, Empty };
  explicit MemorySystem(const GpuModel&, L2Start = L2Start::Flushed);
  ~MemorySystem();

  /// Is there room in the SM's request port at `now`? Ask before push; push into a full port is an InternalError.
  bool accepts(std::uint16_t sm, Cycle now) const;
  /// First cycle at which accepts() can become true again for this SM (kNever: unknown, wait for an answer).
  Cycle accepts_again(std::uint16_t sm, Cycle now) const;
  void push(const MemoryRequest&, Cycle now);

  // GPCs meet the rest at their ports. What is below the ports and each GPC's own side of them may be run side by side:
  // an answer to what happens below at some time reaches a GPC `answer_cycles()` later at the soonest.
  int gpcs() const;
  int gpc(std::uint16_t sm) const;
  Cycle answer_cycles() const;
  /// What SMs have pushed is taken in, and what has been answered handed to the GPCs.
  void exchange();
  /// First event between the ports and DRAM's channels, kNever if there is none. What was pushed counts from exchange()
  /// on.
  Cycle next_below() const;
  /// Handles those events that come before `limit`; nothing may be pushed for before it from then on.
  void run_below(Cycle limit);
  // DRAM's channels may be run beside them, too: what they do is heard of after channel_cycles() at the soonest, by way
  // of exchange(), and what is sent to them takes longer than any two of these steps.
  std::size_t channel_groups() const;
  Cycle channel_cycles() const;
  Cycle next_of_channels() const;
  void run_channels(std::size_t group, Cycle limit);
  /// First time at which something reaches the GPC or one of its SMs.
  Cycle next_answer(int gpc) const;
  /// What reaches the GPC's SMs up to and including `now`, in a fixed order. Writes and reductions are acknowledged too
  /// (a reply with their tag), since EXIT and MEMBAR wait for them.
  void take_answers(int gpc, Cycle now, std::vector<MemoryReply>& replies);

  // All in one.
  /// Cycle of the next event, kNever if idle.
  Cycle next_event();
  /// Handles all events up to and including `now`; replies that reach their SM are appended.
  void run_until(Cycle now, std::vector<MemoryReply>& replies);

  MemoryCounters counters() const;

  /// L2 partition that is near the SM.
  std::uint8_t partition(std::uint16_t sm) const;

  /// Functional effects without time, for fast-forwarding and for warm runs: as if the sectors had been read,
  /// written or, at their home, changed. `full` and `bytes` as in a request.
  L2Traffic touch(std::uint64_t line, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full = true,
                  std::uint8_t bytes = 0);
  L2Traffic touch(const LinePlace&, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full,
                  std::uint8_t bytes);
  /// What is touched from now on stands for a time in which so many sectors are being fetched from DRAM on average, if
  /// fewer than lately: blocks that start together read all at once, those that follow one another do not.
  void expect_fetches(double sectors);
  /// Brings near the host's processor what touch() of the line will look at.
  void prefetch(const LinePlace&, bool write, std::uint16_t sm) const;
  /// Where lines live. The result lies in `buffer`.
  std::span<const LinePlace> places(std::span<const std::uint64_t> lines, std::vector<LinePlace>& buffer) const;
  /// Slices know nothing of each other but for the one that keeps copies of the other's lines. Lines of different pairs may be touched by different threads at a time.
  std::uint32_t slice_pairs() const;
  /// Work that the atomic unit of each slice has before it, in 1/1024 cycles, and more of it: blocks that do not wait
  /// for their reductions can end faster than L2 works them off, so skipping blocks has to leave what would have piled
  /// up.
  std::vector<FineCycle> atomic_backlog(Cycle now) const;
  void add_atomic_backlog(std::span<const FineCycle> by_slice);
  /// L2 holds what another's does, in which nothing is in flight.
  void copy_lines(const MemorySystem& other);
  /// End of kernel: what ncu counts as DRAM writes of dirty data still in L2 is not written; this only reports it.
  std::uint64_t dirty_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forewarp
