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
  std::uint8_t rounds = 1;       ///< atomics: lanes on one word, executed one after another
  bool full_sectors = true;      ///< writes: every byte of each sector is written (else L2 keeps them as partial)
  bool masked = false;           ///< writes: some of them were stored in part, so that a mask goes along
  std::uint8_t bytes = 0;        ///< written or added to in all sectors together, 0 if unknown
  std::uint8_t value_bytes = 4;  ///< atomics: of a lane's value; a whole sector if a box brings them
  std::uint8_t fetch = 0;        ///< reads: LineSectors::fetch
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
  std::uint16_t pair = 0;   ///< pair of slices: the home and the one with its copies
  std::uint32_t which = 0;  ///< index among the lines asked about
};

/// A row of counters.def each.
struct MemoryCounters {
#define FW_MEMORY_COUNTER(name, ...) std::uint64_t name = 0;
#include "timing/counters.def"

  MemoryCounters& operator+=(const MemoryCounters&);

  /// Sectors that L2's slices serve to SMs: reads that were merged leave a slice once.
  std::uint64_t slice_sectors() const {
    return read_sectors - merged_sectors + write_sectors + atomic_sectors + reduction_sectors;
  }
};

class MemorySystem {
 public:
  enum class L2Start : std::uint8_t { Flushed /* as a profiler leaves it */, Empty };
  explicit MemorySystem(const GpuModel&, L2Start = L2Start::Flushed);
  ~MemorySystem();

  /// Whether the SM's request port has room at `now`. Ask before push(): pushing into a full port is an InternalError.
  bool accepts(std::uint16_t sm, Cycle now) const;
  /// First cycle in which accepts() can be true again for this SM (kNever: unknown, wait for a reply).
  Cycle accepts_again(std::uint16_t sm, Cycle now) const;
  void push(const MemoryRequest&, Cycle now);

  // GPCs meet the memory system at their ports. The two sides may run in parallel: the reply to an event below a port
  // reaches its GPC at least `answer_cycles()` later.
  int gpcs() const;
  int gpc(std::uint16_t sm) const;
  Cycle answer_cycles() const;
  /// Takes in what SMs have pushed, and hands replies to the GPCs.
  void exchange();
  /// First event between the ports and the DRAM channels, kNever if there is none. Pushed requests count from
  /// exchange() on.
  Cycle next_below() const;
  /// Handles the events before `limit`; nothing may be pushed for earlier cycles afterwards.
  void run_below(Cycle limit);
  // DRAM channels may run in parallel as well: exchange() passes on their results, at least channel_cycles() later, and
  // what is sent to them takes longer than two of these steps.
  std::size_t channel_groups() const;
  Cycle channel_cycles() const;
  /// What slices send to channels arrives this much later at the soonest.
  Cycle sent_cycles() const;
  Cycle next_of_channels() const;
  void run_channels(std::size_t group, Cycle limit);
  /// First cycle in which something reaches the GPC or one of its SMs.
  Cycle next_answer(int gpc) const;
  /// Replies that reach the GPC's SMs up to and including `now`, in a fixed order. Writes and reductions are
  /// acknowledged too, by a reply with their tag, since EXIT and MEMBAR wait for them.
  void take_answers(int gpc, Cycle now, std::vector<MemoryReply>& replies);
  /// Replies on their way that may reach the GPC's SMs before `limit`, to prefetch what they will touch.
  void answers_before(int gpc, Cycle limit, std::vector<MemoryReply>& replies) const;

  /// Sectors that have reached an SM of the GPC go to another one as well; the cycle in which it has the last of them.
  Cycle deliver_also(std::uint16_t sm, int sectors, Cycle now);

  // The same on a single thread, all at once.
  /// Cycle of the next event, kNever if idle.
  Cycle next_event();
  /// Handles all events up to and including `now`; replies that reach their SM are appended.
  void run_until(Cycle now, std::vector<MemoryReply>& replies);

  MemoryCounters counters() const;

  /// The L2 partition near the SM.
  std::uint8_t partition(std::uint16_t sm) const;

  /// Functional warming, without time: updates L2 as if the sectors had been read, written or modified. `full`,
  /// `bytes` and `fetch` as in a request.
  L2Traffic touch(std::uint64_t line, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full = true,
                  std::uint8_t bytes = 0, std::uint8_t fetch = 0);
  L2Traffic touch(const LinePlace&, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full,
                  std::uint8_t bytes, std::uint8_t fetch = 0);
  /// What is touched from now on stands for a time in which so many sectors are in flight from DRAM on average, if
  /// fewer than lately: blocks that start together read all at once, later ones do not.
  void expect_fetches(double sectors);
  /// Prefetches what touch() of the line will look at.
  void prefetch(const LinePlace&, bool write, std::uint16_t sm) const;
  /// The places of those lines that lie in one of every so many slices, a power of two. Slices are independent except
  /// for the pair that keeps copies of each other's lines, which is sampled together, so a few represent all. The
  /// result is in `buffer`.
  std::span<const LinePlace> pick(std::span<const std::uint64_t> lines, std::uint32_t every,
                                  std::vector<LinePlace>& buffer) const;
  static bool in_sample(std::uint32_t pair, std::uint32_t every) { return (pair & (every - 1)) == 0; }
  /// Pairs of slices, see pick(). Different threads may touch lines of different pairs.
  std::uint32_t slice_pairs() const;
  /// What the atomic unit has before it that has the most: blocks that do not wait for their reductions can end faster
  /// than L2 serves them.
  Cycle atomic_backlog(Cycle now) const;
  /// Takes over the contents of another memory system's L2. What is on its way there has arrived here.
  void copy_lines(const MemorySystem& other);
  /// End of kernel: what ncu counts as DRAM writes of dirty data still in L2 is not written; this only reports it, of
  /// the slices of a sample.
  std::uint64_t dirty_bytes(std::uint32_t every = 1) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace forewarp
