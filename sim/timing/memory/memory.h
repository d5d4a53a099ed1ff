// Everything below an SM's L1: crossbar, L2 slices in two partitions, HBM channels. It sees lines and sectors, never
// instructions. Driven by events: an idle memory system costs nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "timing/engine/rate_server.h"
#include "timing/memory/l2_traffic.h"
#include "trace/events.h"

namespace forewarp {

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

/// A row of counters.def each.
struct MemoryCounters {
#define FW_MEMORY_COUNTER(name, ...) std::uint64_t name = 0;
#include "timing/counters.def"

  MemoryCounters& operator+=(const MemoryCounters&);
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
  /// What slices send to channels arrives this much later at the soonest.
  Cycle sent_cycles() const;
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
  /// Where those of the lines live that are in one of every so many slices, a power of two. Slices know nothing of each
  /// other but for the one that keeps copies of the other's lines, which is in the sample with it: some of them show
  /// what all do. The result lies in `buffer`.
  std::span<const LinePlace> pick(std::span<const std::uint64_t> lines, std::uint32_t every,
                                  std::vector<LinePlace>& buffer) const;
  static bool in_sample(std::uint32_t pair, std::uint32_t every) { return (pair & (every - 1)) == 0; }
  /// Of slices, see pick(). Lines of different pairs may be touched by different threads at a time.
  std::uint32_t slice_pairs() const;
  /// Work that the atomic unit of each slice has before it, in 1/1024 cycles, and more of it: blocks that do not wait
  /// for their reductions can end faster than L2 works them off, so skipping blocks has to leave what would have piled
  /// up.
  std::vector<FineCycle> atomic_backlog(Cycle now) const;
  void add_atomic_backlog(std::span<const FineCycle> by_slice);
  /// L2 holds what another's does, in which nothing is in flight.
  void copy_lines(const MemorySystem& other);
  /// End of kernel: what ncu counts as DRAM writes of dirty data still in L2 is not written; this only reports it, of
  /// the slices of a sample.
  std::uint64_t dirty_bytes(std::uint32_t every = 1) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forewarp
