// Inside the memory system: requests in flight, queues and units, and the steps that move requests between them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "timing/engine/event_queue.h"
#include "timing/engine/pool.h"
#include "timing/engine/rate_server.h"
#include "timing/memory/address_map.h"
#include "timing/memory/crossbar.h"
#include "timing/memory/distances.h"
#include "timing/memory/hbm_channel.h"
#include "timing/memory/l2_slice.h"
#include "timing/memory/memory.h"
#include "timing/memory/read_coalescer.h"

namespace forewarp {

inline constexpr std::uint32_t kNone = ~0u;
inline constexpr std::uint64_t kNoLine = ~std::uint64_t{0};
inline constexpr std::size_t kChannelGroup = 24;  ///< channels a thread takes at a time

enum class Step : std::uint8_t {
  CpcWrite,    // write data reaches its CPC's path
  CpcGoesOn,   // writes blocked behind one without room at the fabric continue
  FabricOut,   // write data reaches the fabric
  Cross,       // it enters the fabric
  Arrive,      // a request reaches a slice
  Enter,       // write data has passed the slice's port
  Serve,       // a slice's tags are free again
  Taken,       // a channel has taken over a slice's writes
  Fill,        // data reaches an L2 miss entry
  FabricBack,  // read data reaches the fabric
  Response,    // data reaches the GPC (from here on above the ports)
  Reply        // data, or a write's acknowledgement, reaches the SM
};

inline constexpr std::uint8_t kPosted = 0x80;  ///< with a step above the ports: of a write or an atomic
inline constexpr std::uint8_t kMerged =
    0x40;                              ///< with Step::Response: the data crosses into the GPC with another read's
inline constexpr unsigned kFlits = 4;  ///< shift of the flit count, which shares a byte with the sectors

/// A request in flight, or the fetch of a copy from the line's home.
struct Record {
  std::uint64_t index = 0;  ///< line within its slice
  Cycle pushed = 0, leaves = 0;
  std::uint32_t tag = 0;
  std::uint32_t next = kNone;  ///< in the slice's queue, then at a miss entry
  std::uint32_t way = 0;
  std::uint16_t sm = 0;
  std::uint16_t slice = 0;          ///< where it is going
  std::uint32_t followers = kNone;  ///< reads merged into this one: a chain through `next`
  std::uint16_t miss = 0;           ///< copy fetches: entry in the mirror slice that waits
  std::uint8_t sectors = 0;
  std::uint8_t missing = 0;  ///< what it waits for
  RequestKind kind = RequestKind::Read;
  std::uint8_t rounds = 0;
  std::uint8_t bytes = 0;
  std::uint8_t flits = 0;    ///< of what is written
  std::uint8_t at_once = 0;  ///< reads: LineSectors::fetch
  bool full = true;
  bool copy = false;     ///< looks up the near copy of a far line
  bool fetch = false;    ///< a copy's fetch
  bool crosses = false;  ///< SM and slice are in different partitions
  bool merged = false;   ///< crosses into its GPC with the data of another read
};

inline int count(std::uint8_t sectors) { return std::popcount(unsigned{sectors}); }
inline int operand_bytes(const MemoryRequest& r) {
  return r.bytes != 0 ? r.bytes : count(r.sectors & 15) * kSectorBytes;
}
inline int flits(const Crossbar& crossbar, const MemoryRequest& r) {
  const int n = count(r.sectors & 15);
  if (r.kind == RequestKind::Read) return 0;
  if (r.kind == RequestKind::Write || r.value_bytes == kSectorBytes) return crossbar.write_flits(n, r.full_sectors);
  return crossbar.atomic_flits(n, operand_bytes(r), r.value_bytes);
}
/// What a request takes of its SM's port.
inline int port_sectors(const MemoryRequest& r) {
  if (r.kind == RequestKind::Read) return 0;
  const int n = count(r.sectors & 15);
  if (r.kind == RequestKind::Write || r.value_bytes == kSectorBytes) return n + (r.masked ? 1 : 0);
  return Crossbar::atomic_sectors(n, operand_bytes(r), r.value_bytes);
}

struct MemorySystem::State {
  /// Requests in order of arrival.
  struct Line {
    std::uint32_t first = kNone, last = kNone;
  };
  /// Requests from SMs and from the fabric queue separately: a fetch from the other partition must never wait behind
  /// a request that waits for that partition.
  struct Queue : Line {
    bool stalled = false;    ///< the first waits for a miss entry
    bool copy = false;       ///< ... of a copy
    std::uint8_t fetch = 0;  ///< ... with room for these sectors
  };
  struct Slice {
    Slice(const L2Geometry& g, int merged) : cache(g), coalescer(merged) {}
    L2Slice cache;
    ReadCoalescer coalescer;
    Line arrived;    ///< from SMs: the coalescer has not seen them yet
    Queue queue[2];  ///< from SMs, one that it has seen; from the fabric
    RateServer port, tags, data, atomics;
    std::uint64_t entered = kNoLine, changed = kNoLine;  ///< line of the last atomic that entered, that was executed
    bool serving = false;                                ///< a Serve event is scheduled
    std::uint8_t turn = 0;
  };
  /// A channel runs in its own time: what slices send arrives hit_cycles and half the controller latency later, and
  /// its results reach them after the other half.
  struct Channel {
    Channel(const HbmTimings& timings, std::uint32_t index, std::uint32_t count) : hbm(timings, index, count) {}
    HbmChannel hbm;
    std::vector<Cycle> sent_at, arrives_at;  ///< since the last exchange, and before it
    std::vector<Burst> sent, arriving;       ///< the same
    std::size_t arrived = 0;                 ///< of `arriving`
    ChannelOutput output;                    ///< since the last exchange
    Cycle next_arrival() const { return arrived < arriving.size() ? arrives_at[arrived] : kNever; }
  };
  struct alignas(64) ChannelGroup {
    std::size_t first = 0;
    std::vector<Cycle> next;            ///< of each channel
    Cycle first_next = kNever;          ///< the earliest of these
    std::vector<std::uint16_t> active;  ///< channels that have done something since the last exchange
    MemoryCounters counters;
  };

  /// A CPC has one write in line for a slice's port and a few for the fabric; its other writes wait here until one of
  /// those is served.
  struct Turn : Line {
    int in_line = 0;
  };
  /// Reads of a CPC below its port, and those that wait until one of these is answered.
  struct Reads : Line {
    int below = 0;
  };
  /// Head-of-line blocking: writes of a CPC behind one that finds no room at the fabric, for whichever slice.
  struct HeldUp : Line {
    bool going_on = false;
  };

  /// A GPC's port: where its SMs push requests and get replies.
  struct alignas(64) Port {
    struct Sent {
      MemoryRequest request;
      AddressMap::Home home;
      Cycle pushed = 0, leaves = 0;
    };
    std::vector<Sent> sent;  ///< since the last exchange
    EventQueue answers;
    std::vector<Event> due;           ///< of the current cycle
    std::uint64_t queued_cycles = 0;  ///< read data, waiting on its way to the SM
  };
  struct Answer {
    Cycle at = 0;
    int gpc = 0;
    Event event;
  };

  State(const GpuModel&, L2Start);

  void push(const MemoryRequest&, Cycle now);
  void take_in(const Port::Sent&);
  void respond(std::uint32_t id, Step step, Cycle at, Cycle now);
  void handle(const Event&, Cycle now);
  void prefetch_due() const;
  void prefetch_lookup(std::uint32_t id) const;
  Turn& turn_at_fabric(const Record& r) {
    return at_fabric_[static_cast<std::size_t>(crossbar_.partition(r.sm)) * cpcs_ + crossbar_.cpc(r.sm)];
  }
  HeldUp& held_up(const Record& r) { return held_up_[crossbar_.cpc(r.sm)]; }
  Turn& turn_at_slice(const Record& r) { return at_slices_[r.slice * cpcs_ + crossbar_.cpc(r.sm)]; }
  void append(Line&, std::uint32_t id);
  std::uint32_t next_of(Line&);
  bool waits(Turn&, int in_line, std::uint32_t id);
  void leave_cpc(std::uint32_t id, Cycle now);
  void go_on(HeldUp&, Cycle now);
  void cross(std::uint32_t id, Cycle now);
  void send_to_slice(std::uint32_t id, Cycle at);
  void send_read(std::uint32_t id);
  void answered(const Record&, Cycle now);
  int distance(const Record& r) const { return distances_.cycles(r.sm, r.slice, r.copy); }
  static Cycle later(Cycle at, int by) { return static_cast<Cycle>(static_cast<std::int64_t>(at) + by); }
  /// When data reaches the SM's GPC that would arrive at `at` from a slice at mean distance.
  Cycle back_at(Cycle at, const Record& r) const {
    return r.kind == RequestKind::Read ? later(at, distance(r) - distance(r) / 2) : at;
  }
  void enter(std::uint32_t id, Cycle now);
  void arrive(std::uint32_t id, Cycle now);
  void let_in(std::uint16_t slice, Cycle now);
  bool merge(std::uint32_t id, Cycle now);
  void answer(std::uint32_t id, Cycle leaves, Cycle now);
  void serve(std::uint16_t slice, Cycle now);
  bool process(std::uint32_t id, Cycle now);
  bool process_write(std::uint32_t id, Cycle now);
  void fetch(Record&, const L2Slice::Access&, Cycle now);
  void evict(std::uint16_t slice, const Eviction&, Cycle now);
  Eviction write_copy(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, bool from_afar, bool full);
  void send_to_channel(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, std::uint16_t miss, bool write,
                       Cycle now);
  void finish(std::uint32_t id, Cycle now, bool forwarded);
  void fill(std::uint16_t slice, std::uint16_t miss, std::uint8_t sectors, Cycle now);
  void fabric_back(std::uint32_t id, Cycle now);
  void hear_of_channels();
  Cycle next_from_channels() const;
  void tell_channels();
  void run_channels(ChannelGroup&, Cycle limit);
  void resume(std::uint16_t slice, Cycle now);
  std::uint16_t mirror(std::uint32_t slice) const {
    return static_cast<std::uint16_t>(slice < per_partition_ ? slice + per_partition_ : slice - per_partition_);
  }
  int partition(std::uint32_t slice) const { return slice < per_partition_ ? 0 : 1; }
  std::uint16_t pair(std::uint32_t slice) const {
    return static_cast<std::uint16_t>(slice < per_partition_ ? slice : slice - per_partition_);
  }
  LinePlace place(const AddressMap::Home& home, std::uint32_t which = 0) const {
    return {home.index, static_cast<std::uint16_t>(home.slice), pair(home.slice), which};
  }
  void schedule(Cycle at, Step step, std::uint32_t unit, std::uint32_t subject, std::uint8_t sectors = 0) {
    events_.push(at, {subject, static_cast<std::uint16_t>(unit), static_cast<std::uint8_t>(step), sectors});
  }

  AddressMap map_;
  Crossbar crossbar_;
  Distances distances_;
  L2Geometry geometry_;
  HbmTimings timings_;
  EventQueue events_;
  std::vector<Event> due_;  ///< of the cycle that is being handled
  Pool<Record> records_;
  std::vector<Slice> slices_;
  std::vector<Channel> channels_;
  std::vector<ChannelGroup> groups_;
  std::vector<std::uint16_t> sent_to_;  ///< channels with new requests since the last exchange
  std::vector<Port> ports_;             ///< by GPC
  std::size_t cpcs_ = 0;
  std::vector<Turn> at_fabric_, at_slices_;  ///< by partition or slice, and CPC
  std::vector<HeldUp> held_up_;              ///< by CPC
  std::vector<Reads> reads_;                 ///< by CPC
  std::vector<Answer> answered_;             ///< since the last exchange
  std::vector<int> posted_;                  ///< unacknowledged write flits, by SM
  int sm_write_flits_ = 0;                   ///< their limit
  int cpc_fabric_writes_ = 0;
  int cpc_reads_ = 0;
  MemoryCounters counters_;

  std::uint32_t per_partition_ = 0;
  bool replicate_ = false;
  Cycle request_cycles_ = 0, response_cycles_ = 0, answer_cycles_ = 1, far_out_ = 0, far_back_ = 0, hit_cycles_ = 0;
  Cycle coalescer_cycles_ = 0, round_trip_ = 0;  ///< far, unloaded
  Cycle controller_out_ = 0, controller_back_ = 0;
  FineCycle slice_flit_ = 0, tag_cost_ = 0, atomic_cost_ = 0, word_cost_ = 0, sector_cost_ = 0;
  SectorCost data_cost_{};
};

}  // namespace forewarp
