// The wiring of the memory system. The units (crossbar, slices, channels) keep state; this file moves requests between
// them as events and is the only place that knows the path:
//
//   push -> port -> [GPC write path] -> [fabric] -> slice queue -> tags -> hit: data stage -> response -> reply
//                                                                -> miss: HBM channel -> fill -> data stage -> ...
//
// A read of a line homed in the other partition, where copies are kept: near slice -> miss -> home slice -> fabric ->
// near slice, whose copy then serves later readers. Without copies the request itself crosses, both ways.
// Unloaded, a read of one sector takes request + hit + response cycles; a far one far_cycles more; a miss the
// controller's time, tRCD (+ tRP), tCL and the burst more. Fixed latencies are SM cycles; the slices' rates are per L2
// cycle and scaled by clock_ratio.
#include "timing/memory.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "timing/address_map.h"
#include "timing/crossbar.h"
#include "timing/distances.h"
#include "timing/event_queue.h"
#include "timing/hbm_channel.h"
#include "timing/l2_slice.h"
#include "timing/pool.h"
#include "timing/rate_server.h"
#include "timing/read_coalescer.h"

namespace forewarp {
namespace {

constexpr std::uint32_t kNone = ~0u;
constexpr std::uint64_t kForeignLine = std::uint64_t{1} << 34;  ///< from here on: data of no launch

enum class Step : std::uint8_t {
  GpcWrite,    // write data reaches its GPC's path
  FabricOut,   // write data reaches the fabric
  Arrive,      // a request reaches a slice
  Serve,       // a slice's tags are free again
  Dram,        // bursts reach a channel
  Channel,     // a channel's next command is due
  Fill,        // data reaches an L2 miss entry
  FabricBack,  // read data reaches the fabric
  Response,    // data reaches the GPC (from here on: above the ports)
  Reply        // it, or that a write is done, reaches the SM
};

constexpr std::uint8_t kPosted = 0x80;  ///< with a step above the ports: of a write or an atomic

/// A request on its way, or a copy's fetch from the line's home.
struct Record {
  std::uint64_t index = 0;  ///< line within its slice
  Cycle pushed = 0;
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
  bool full = true;
  bool copy = false;     ///< looks up the near copy of a far line
  bool fetch = false;    ///< a copy's fetch
  bool crosses = false;  ///< SM and slice are in different partitions
};

int count(std::uint8_t sectors) { return std::popcount(unsigned{sectors}); }

}  // namespace

struct MemorySystem::State {
  /// Requests of SMs and of the fabric wait apart: a fetch from the other partition must never wait behind a request
  /// that waits for that partition.
  struct Queue {
    std::uint32_t first = kNone, last = kNone;
    bool stalled = false;    ///< the head waits for a miss entry
    bool copy = false;       ///< ... of a copy
    std::uint8_t fetch = 0;  ///< ... with room for these sectors
  };
  struct Slice {
    Slice(const L2Geometry& g, int merged) : cache(g), coalescer(merged) {}
    L2Slice cache;
    ReadCoalescer coalescer;
    Queue queue[2];  ///< from SMs, from the fabric
    RateServer tags, data, atomics;
    std::uint64_t changed = ~std::uint64_t{0};  ///< line of the last atomic
    bool serving = false;                       ///< a Serve event is under way
    std::uint8_t turn = 0;
  };
  struct Channel {
    HbmChannel hbm;
    Cycle wake = kNever;  ///< of its Channel event
  };

  /// Where a GPC's SMs push and are answered.
  struct alignas(64) Port {
    struct Sent {
      MemoryRequest request;
      AddressMap::Home home;
      Cycle pushed = 0, leaves = 0;
    };
    std::vector<Sent> sent;  ///< since the last exchange
    EventQueue answers;
    std::vector<Event> due;           ///< of the cycle that is being handled
    std::uint64_t queued_cycles = 0;  ///< of reads' data, waiting for its turn on the way to the SM
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
  void send_to_slice(std::uint32_t id, Cycle at);
  int distance(const Record& r) const { return distances_.cycles(r.sm, r.slice, r.copy); }
  static Cycle later(Cycle at, int by) { return static_cast<Cycle>(static_cast<std::int64_t>(at) + by); }
  /// When data that would reach the SM's GPC at `at` from a slice at the mean distance does so.
  Cycle back_at(Cycle at, const Record& r) const {
    return r.kind == RequestKind::Read ? later(at, distance(r) - distance(r) / 2) : at;
  }
  void arrive(std::uint32_t id, Cycle now);
  bool merge(std::uint32_t id, Cycle now);
  void answer(std::uint32_t id, Cycle leaves, Cycle now);
  void serve(std::uint16_t slice, Cycle now);
  bool process(std::uint32_t id, Cycle now);
  bool process_write(std::uint32_t id, Cycle now);
  void fetch(Record&, const L2Slice::Access&, Cycle now);
  void evict(std::uint16_t slice, const Eviction&, Cycle at);
  Eviction write_copy(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, bool from_afar, bool full);
  std::uint32_t burst(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, std::uint16_t miss, bool write,
                      std::uint32_t after, std::uint16_t& channel);
  void finish(std::uint32_t id, Cycle now, bool forwarded);
  void fill(std::uint16_t slice, std::uint16_t miss, std::uint8_t sectors, Cycle now);
  void fabric_back(std::uint32_t id, Cycle now);
  void run_channel(std::uint16_t channel, Cycle now);
  void resume(std::uint16_t slice, Cycle now);
  std::uint16_t mirror(std::uint32_t slice) const {
    return static_cast<std::uint16_t>(slice < per_partition_ ? slice + per_partition_ : slice - per_partition_);
  }
  int partition(std::uint32_t slice) const { return slice < per_partition_ ? 0 : 1; }
  bool in_sample(std::uint32_t slice, std::uint32_t every) const { return slice % per_partition_ % every == 0; }
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
  BurstPool bursts_;
  ChannelOutput output_;
  std::vector<Slice> slices_;
  std::vector<Channel> channels_;
  std::vector<Port> ports_;            ///< by GPC
  std::vector<Answer> answered_;       ///< since the last exchange
  std::vector<std::uint16_t> posted_;  ///< writes of each SM without acknowledgement
  std::uint16_t posted_limit_ = 0;
  MemoryCounters counters_;

  std::uint32_t per_partition_ = 0;
  bool replicate_ = false;
  Cycle request_cycles_ = 0, response_cycles_ = 0, answer_cycles_ = 1, far_out_ = 0, far_back_ = 0, hit_cycles_ = 0;
  Cycle coalescer_cycles_ = 0, round_trip_ = 0;  ///< far, unloaded
  Cycle controller_out_ = 0, controller_back_ = 0;
  FineCycle tag_cost_ = 0, atomic_cost_ = 0, word_cost_ = 0, sector_cost_ = 0;
  SectorCost data_cost_{};
};

MemorySystem::State::State(const GpuModel& model, L2Start start)
    : map_(model), crossbar_(model), distances_(model), geometry_(model), timings_(model) {
  const CrossbarSpec& x = model.crossbar;
  const L2Spec& l2 = model.l2;
  per_partition_ = map_.slices_per_partition();
  replicate_ = l2.replicate_far_lines && l2.partitions == 2;
  request_cycles_ = static_cast<Cycle>(x.request_cycles);
  response_cycles_ = static_cast<Cycle>(x.response_cycles);
  answer_cycles_ = static_cast<Cycle>(
      std::max<std::int64_t>(1, static_cast<std::int64_t>(response_cycles_) + distances_.least_back()));
  far_out_ = static_cast<Cycle>(x.far_cycles / 2);
  far_back_ = static_cast<Cycle>(x.far_cycles) - far_out_;
  hit_cycles_ = static_cast<Cycle>(l2.hit_cycles);
  coalescer_cycles_ = std::min(static_cast<Cycle>(l2.coalescer_cycles), hit_cycles_);
  const auto controller = static_cast<Cycle>(std::llround(model.hbm.controller_ns * model.chip.sm_clock_mhz / 1000.0));
  controller_out_ = controller / 2;
  controller_back_ = controller - controller_out_;
  tag_cost_ = fine_cost(l2.slice_tags_per_cycle * l2.clock_ratio);
  data_cost_ = sector_cost(l2.slice_bytes_per_cycle * l2.clock_ratio);
  atomic_cost_ = fine_cost(l2.clock_ratio, l2.atomic_interval);
  sector_cost_ = fine_cost(l2.clock_ratio, 1);
  word_cost_ = fine_cost(l2.clock_ratio, l2.atomic_word_interval);
  slices_.reserve(static_cast<std::size_t>(l2.slices));
  for (int i = 0; i < l2.slices; ++i) slices_.emplace_back(geometry_, l2.coalescer_requests);
  const auto channels = static_cast<std::uint32_t>(model.hbm.channels);
  channels_.reserve(channels);
  for (std::uint32_t i = 0; i < channels; ++i) channels_.push_back({HbmChannel(timings_, bursts_, i, channels)});
  // A slice that cannot take writes holds its SMs back. An SM may have as much written data unacknowledged as keeps its
  // write path busy over twice the unloaded round trip to the far side.
  posted_.assign(static_cast<std::size_t>(model.chip.sm_count), 0);
  ports_.resize(model.chip.tpcs_per_gpc.size());
  round_trip_ = request_cycles_ + hit_cycles_ + response_cycles_ + far_out_ + far_back_;
  const Cycle lines = 2 * round_trip_ * static_cast<Cycle>(x.sm_write_bytes_per_cycle) / kLineBytes;
  posted_limit_ = static_cast<std::uint16_t>(std::clamp<Cycle>(lines, 8, 0xFFFF));
  if (start == L2Start::Empty) return;
  // What a profiler leaves in the caches it has flushed: lines that no buffer of a kernel lies in.
  std::int64_t left = l2.cold_dirty_bytes / kLineBytes;
  for (std::uint64_t line = kForeignLine; left > 0; ++line) {
    const AddressMap::Home home = map_.home(line);
    L2Slice& cache = slices_[home.slice].cache;
    if (cache.set_of(home.index) % static_cast<std::uint32_t>(l2.cold_dirty_sets) != 0) continue;
    cache.touch(home.index, false, 15, true);
    --left;
  }
  for (Slice& slice : slices_) slice.cache.spare_nothing_so_far();
}

// ---- SM to slice ----------------------------------------------------------------------------------------------------

void MemorySystem::State::push(const MemoryRequest& request, Cycle now) {
  const bool read = request.kind == RequestKind::Read;
  posted_[request.sm] = static_cast<std::uint16_t>(posted_[request.sm] + (read ? 0 : 1));
  const Cycle leaves = crossbar_.send(request.sm, read ? 0 : count(request.sectors & 15), now);
  Port& port = ports_[static_cast<std::size_t>(crossbar_.gpc(request.sm))];
  port.sent.push_back({request, map_.home(request.line), now, leaves});
}

void MemorySystem::State::take_in(const Port::Sent& sent) {
  const MemoryRequest& request = sent.request;
  const std::uint32_t id = records_.take();
  Record& r = records_[id];
  r.index = sent.home.index;
  r.pushed = sent.pushed;
  r.tag = request.tag;
  r.sm = request.sm;
  r.sectors = request.sectors & 15;
  r.kind = request.kind;
  r.rounds = request.rounds;
  r.full = request.full_sectors;
  r.bytes = request.bytes;
  r.slice = static_cast<std::uint16_t>(sent.home.slice);
  r.crosses = crossbar_.partition(request.sm) != static_cast<int>(sent.home.partition);
  if (r.kind == RequestKind::Read && r.crosses && replicate_) {
    r.copy = true;
    r.crosses = false;
    r.slice = mirror(sent.home.slice);
  }
  const auto sectors = static_cast<std::uint64_t>(count(r.sectors));
  if (r.kind == RequestKind::Read) {
    ++counters_.read_requests;
    counters_.read_sectors += sectors;
    send_to_slice(id, crossbar_.leaves_gpc(r.sm, sent.leaves));
    return;
  }
  if (r.kind == RequestKind::Write) {
    ++counters_.write_requests;
    counters_.write_sectors += sectors;
  } else {
    // Lanes that meet on one word are requests of their own to L2 (kernels/micro l2_modify, modify_lanes_*_by0).
    counters_.atomic_requests += r.rounds;
    (r.kind == RequestKind::Atomic ? counters_.atomic_sectors : counters_.reduction_sectors) += sectors * r.rounds;
  }
  schedule(sent.leaves, Step::GpcWrite, 0, id);
}

void MemorySystem::State::send_to_slice(std::uint32_t id, Cycle at) {
  const Record& r = records_[id];
  at += request_cycles_;
  if (!r.crosses) {
    if (r.kind == RequestKind::Read) at = later(at, distance(r) / 2);
    schedule(at, Step::Arrive, 0, id);
  } else if (r.kind == RequestKind::Read) {
    schedule(at + far_out_, Step::Arrive, 0, id);
  } else {
    schedule(at, Step::FabricOut, 0, id);
  }
}

void MemorySystem::State::arrive(std::uint32_t id, Cycle now) {
  Record& r = records_[id];
  Slice& slice = slices_[r.slice];
  r.next = kNone;
  if (r.kind == RequestKind::Read && !r.fetch && merge(id, now)) return;
  Queue& queue = slice.queue[r.fetch];
  if (queue.first == kNone) {
    queue.first = id;
  } else {
    records_[queue.last].next = id;
  }
  queue.last = id;
  if (!slice.serving) serve(r.slice, now);
}

/// True: the read shares the data of another of its GPC and needs no lookup.
bool MemorySystem::State::merge(std::uint32_t id, Cycle now) {
  Record& r = records_[id];
  if (r.crosses) return false;
  const auto join = slices_[r.slice].coalescer.read(r.index, r.copy, crossbar_.gpc(r.sm), r.sectors, id, now);
  if (join.outcome == ReadCoalescer::Outcome::First) return false;
  ++counters_.merged_requests;
  counters_.merged_sectors += static_cast<std::uint64_t>(count(r.sectors));
  if (join.outcome == ReadCoalescer::Outcome::Answered) {
    respond(id, Step::Response, back_at(join.response, r), now);
  } else {
    r.next = records_[join.leader].followers;
    records_[join.leader].followers = id;
  }
  return true;
}

/// Looks up requests for as long as the tags are free, the two queues in turn.
void MemorySystem::State::serve(std::uint16_t slice_id, Cycle now) {
  Slice& slice = slices_[slice_id];
  slice.serving = false;
  for (;;) {
    const bool ready[2] = {slice.queue[0].first != kNone && !slice.queue[0].stalled,
                           slice.queue[1].first != kNone && !slice.queue[1].stalled};
    if (!ready[0] && !ready[1]) return;
    if (slice.tags.free() >= to_fine(now + 1)) {
      slice.serving = true;
      schedule(fine_floor(slice.tags.free()), Step::Serve, slice_id, 0);
      return;
    }
    const std::uint8_t pick = ready[slice.turn] ? slice.turn : 1 - slice.turn;
    Queue& queue = slice.queue[pick];
    const std::uint32_t id = queue.first;
    const std::uint32_t next = records_[id].next;
    if (!process(id, now)) {
      queue.stalled = true;
      continue;
    }
    queue.first = next;
    slice.turn = 1 - pick;
    slice.tags.take(to_fine(now), tag_cost_);
  }
}

// ---- Slice ----------------------------------------------------------------------------------------------------------

/// One lookup. False: nothing was done, the request keeps its place.
bool MemorySystem::State::process(std::uint32_t id, Cycle now) {
  if (records_[id].kind == RequestKind::Write) return process_write(id, now);
  Record& r = records_[id];
  const std::uint16_t slice_id = r.slice;
  L2Slice& cache = slices_[slice_id].cache;
  const L2Slice::Access a = cache.read(r.index, r.copy, r.sectors, r.fetch);
  if (a.outcome == L2Slice::Outcome::Stall) {
    Queue& queue = slices_[slice_id].queue[r.fetch];
    queue.copy = r.copy;
    queue.fetch = a.fetch;
    return false;
  }
  const auto hits = static_cast<std::uint64_t>(count(r.sectors) - count(a.missed));
  (r.fetch ? counters_.fabric_hit_sectors : counters_.hit_sectors) += hits;
  if (r.kind != RequestKind::Read) {
    const auto sectors = static_cast<std::uint64_t>(count(r.sectors));
    counters_.hit_sectors += sectors * (r.rounds - 1u);
    if (r.crosses) counters_.fabric_hit_sectors += sectors * r.rounds;
  }
  (r.fetch ? counters_.fabric_miss_sectors : counters_.miss_sectors) += static_cast<std::uint64_t>(count(a.added));
  r.way = a.way;
  r.missing = a.missing;
  if (a.cleaned.dirty != 0) evict(slice_id, a.cleaned, now + hit_cycles_ + controller_out_);
  if (a.outcome == L2Slice::Outcome::Hit) {
    finish(id, now, false);
    return true;
  }
  L2Slice::Miss& miss = cache.entry(a.miss);
  r.next = kNone;
  (miss.first == kNone ? miss.first : records_[miss.last].next) = id;
  miss.last = id;
  if (a.evicted.dirty != 0) evict(slice_id, a.evicted, now + hit_cycles_ + controller_out_);
  if (a.fetch != 0) fetch(r, a, now);
  return true;
}

bool MemorySystem::State::process_write(std::uint32_t id, Cycle now) {
  const Record& r = records_[id];
  Slice& slice = slices_[r.slice];
  const L2Slice::Access a = slice.cache.write(r.index, r.sectors, r.full, r.bytes);
  if (a.outcome == L2Slice::Outcome::Stall) {
    slice.queue[0].fetch = 0;
    return false;
  }
  if (a.evicted.dirty != 0) evict(r.slice, a.evicted, now + hit_cycles_ + controller_out_);
  if (a.cleaned.dirty != 0) evict(r.slice, a.cleaned, now + hit_cycles_ + controller_out_);
  if (const Eviction e = write_copy(r.slice, r.index, r.sectors, r.crosses, r.full); e.dirty != 0)
    evict(mirror(r.slice), e, now + hit_cycles_ + controller_out_);
  counters_.hit_sectors += static_cast<std::uint64_t>(count(r.sectors));
  if (r.crosses) counters_.fabric_hit_sectors += static_cast<std::uint64_t>(count(r.sectors));
  const Cycle start = fine_ceil(slice.data.take(to_fine(now), data_cost_[static_cast<std::size_t>(count(r.sectors))]));
  respond(id, Step::Reply, start + hit_cycles_ + response_cycles_ + (r.crosses ? far_back_ : 0), now);
  return true;
}

/// Sends for what a lookup found missing: to DRAM, or for a copy to the line's home.
void MemorySystem::State::fetch(Record& r, const L2Slice::Access& a, Cycle now) {
  const std::uint16_t slice = r.slice;
  const std::uint64_t index = r.index;
  if (!r.copy) {
    std::uint16_t channel = 0;
    const std::uint32_t chain = burst(slice, index, a.fetch, a.miss, false, kNone, channel);
    schedule(now + hit_cycles_ + controller_out_, Step::Dram, channel, chain);
    return;
  }
  const std::uint32_t id = records_.take();  // r is not valid any more
  Record& f = records_[id];
  f.index = index;
  f.slice = mirror(slice);
  f.miss = a.miss;
  f.sectors = a.fetch;
  f.fetch = true;
  schedule(now + far_out_, Step::Arrive, 0, id);
}

void MemorySystem::State::evict(std::uint16_t slice, const Eviction& e, Cycle at) {
  std::uint16_t channel = 0;
  std::uint32_t chain = burst(slice, e.index, e.dirty, L2Slice::kNoMiss, true, kNone, channel);
  counters_.merge_sectors += static_cast<std::uint64_t>(count(e.partial));
  if (e.partial != 0) chain = burst(slice, e.index, e.partial, L2Slice::kNoMiss, false, chain, channel);
  schedule(at, Step::Dram, channel, chain);
}

/// The column accesses that move these sectors, put before `after`.
std::uint32_t MemorySystem::State::burst(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors,
                                         std::uint16_t miss, bool write, std::uint32_t after, std::uint16_t& channel) {
  const AddressMap::Dram place = map_.dram(slice, index);
  channel = static_cast<std::uint16_t>(place.channel);
  const std::uint32_t id = bursts_.take();
  Burst& b = bursts_[id];
  b.next = after;
  b.row = place.row;
  b.bank = static_cast<std::uint16_t>(place.bank);
  b.slice = slice;
  b.miss = miss;
  b.sectors = sectors;
  b.write = write;
  return id;
}

/// What a write to a line does to its copy in the other partition: what comes from there stays as one, what does not
/// ends it. Returns what gives way.
Eviction MemorySystem::State::write_copy(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, bool from_afar,
                                         bool full) {
  if (!replicate_) return {};
  L2Slice& copies = slices_[mirror(slice)].cache;
  if (from_afar) return copies.keep_copy(index, sectors, full);
  copies.invalidate_copy(index, sectors);
  return {};
}

/// The sectors of a request are all there: read or modify them and send the answer. Arriving data is forwarded without
/// reading it back: all SMs of an H200 read 40 MB, of which a third must be far hits, as fast as 4 MB (hardware.md
/// section 4), so a far hit can not take the data stage of two slices.
void MemorySystem::State::finish(std::uint32_t id, Cycle now, bool forwarded) {
  const Record& r = records_[id];
  Slice& slice = slices_[r.slice];
  // Waiting requests have been through the lookup's latency already, on their way to DRAM.
  const Cycle latency = r.missing == 0 ? hit_cycles_ : 0;
  const auto n = static_cast<std::size_t>(count(r.sectors));
  Cycle start = 0;
  if (r.kind == RequestKind::Read) {
    start = forwarded ? now : fine_ceil(slice.data.take(to_fine(now), data_cost_[n]));
  } else {
    // A sector a pass, after the first. An atomic waits for the word that one of the same line has just changed, as a
    // lane does for another's (kernels/micro l2_modify).
    const FineCycle passes = atomic_cost_ + (n - 1) * sector_cost_;
    const bool depends = r.rounds > 1 || slice.changed == r.index;
    slice.changed = r.index;
    const FineCycle busy = depends ? std::max<FineCycle>(passes, r.rounds * word_cost_) : passes;
    // The answer follows the last pass; that of a single one is part of hit_cycles.
    const FineCycle taken = slice.atomics.take(to_fine(now), busy);
    start = fine_ceil(taken + busy - std::min(busy, atomic_cost_));
    // What arrives in the time of an unloaded round trip waits at the slice, the rest on the way to it, where nothing
    // gets past.
    crossbar_.hold(r.sm, fine_floor(taken) - std::min(fine_floor(taken), round_trip_));
    const Eviction cleaned = slice.cache.modify(r.way, r.sectors);
    if (cleaned.dirty != 0) evict(r.slice, cleaned, now + hit_cycles_ + controller_out_);
    write_copy(r.slice, r.index, r.sectors, false, false);
  }
  start += latency;
  if (r.kind == RequestKind::Reduction) {
    respond(id, Step::Reply, start + response_cycles_ + (r.crosses ? far_back_ : 0), now);
  } else if (r.fetch || (r.crosses && r.kind != RequestKind::Read)) {
    schedule(start, Step::FabricBack, 0, id);
  } else {
    answer(id, start, now);
  }
}

/// A read's data (or an atomic's, near) leaves the slice for the SM and those whose reads were merged into its own.
/// Others could join until some time after the data was found.
void MemorySystem::State::answer(std::uint32_t id, Cycle leaves, Cycle now) {
  const auto send = [&](std::uint32_t one) {
    if (records_[one].crosses) {
      schedule(leaves, Step::FabricBack, 0, one);
    } else {
      respond(one, Step::Response, back_at(leaves + response_cycles_, records_[one]), now);
    }
  };
  const Record& r = records_[id];
  if (r.kind == RequestKind::Read && !r.crosses)
    slices_[r.slice].coalescer.answer(r.index, r.copy, crossbar_.gpc(r.sm), id,
                                      leaves - hit_cycles_ + coalescer_cycles_, leaves + response_cycles_);
  for (std::uint32_t one = r.followers; one != kNone;) {
    const std::uint32_t next = records_[one].next;
    send(one);
    one = next;
  }
  send(id);
}

void MemorySystem::State::fill(std::uint16_t slice_id, std::uint16_t miss_id, std::uint8_t sectors, Cycle now) {
  L2Slice& cache = slices_[slice_id].cache;
  L2Slice::Miss& miss = cache.arrive(miss_id, sectors);
  bool forwarded = false;  // to the first that waits
  std::uint32_t before = kNone;
  for (std::uint32_t id = miss.first; id != kNone;) {
    Record& r = records_[id];
    const std::uint32_t next = r.next;
    if ((r.missing & ~miss.pending & 15) == r.missing) {
      (before == kNone ? miss.first : records_[before].next) = next;
      if (miss.last == id) miss.last = before;
      finish(id, now, !forwarded);
      forwarded = true;
    } else {
      before = id;
    }
    id = next;
  }
  cache.release(miss_id);
  resume(slice_id, now);
}

/// Entries have become free: queues that stopped for want of one may go on.
void MemorySystem::State::resume(std::uint16_t slice_id, Cycle now) {
  Slice& slice = slices_[slice_id];
  bool go = false;
  for (Queue& queue : slice.queue) {
    if (!queue.stalled || !slice.cache.may_fetch(queue.copy, queue.fetch)) continue;
    queue.stalled = false;
    go = true;
  }
  if (go && !slice.serving) serve(slice_id, now);
}

// ---- Slice to SM ----------------------------------------------------------------------------------------------------

void MemorySystem::State::fabric_back(std::uint32_t id, Cycle now) {
  const Record& r = records_[id];
  const int n = count(r.sectors);
  const Cycle at = crossbar_.cross(partition(r.slice), n, now) + far_back_;
  counters_.fabric_sectors += static_cast<std::uint64_t>(n);
  if (r.fetch) {
    schedule(at, Step::Fill, mirror(r.slice), r.miss, r.sectors);
    records_.give(id);
  } else {
    respond(id, Step::Response, at + response_cycles_, now);
  }
}

/// The request is done with below the ports.
void MemorySystem::State::respond(std::uint32_t id, Step step, Cycle at, Cycle now) {
  const Record& r = records_[id];
  at = std::max(at, now + answer_cycles_);
  if (r.kind == RequestKind::Read) {
    ++counters_.read_replies;
    counters_.read_latency_cycles += at - r.pushed;
  }
  const auto type =
      static_cast<std::uint8_t>(static_cast<unsigned>(step) | (r.kind == RequestKind::Read ? 0 : kPosted));
  answered_.push_back({at, crossbar_.gpc(r.sm), {r.tag, r.sm, type, r.sectors}});
  records_.give(id);
}

// ---- DRAM -----------------------------------------------------------------------------------------------------------

void MemorySystem::State::run_channel(std::uint16_t channel_id, Cycle now) {
  Channel& channel = channels_[channel_id];
  channel.hbm.advance(now, counters_, output_);
  for (const ChannelOutput::Done& d : output_.done) {
    const Cycle at = ((d.at + (Tick{1} << kTickBits) - 1) >> kTickBits) + controller_back_;
    schedule(at, Step::Fill, d.slice, d.miss, d.sectors);
  }
  output_.done.clear();
  for (const ChannelOutput::Taken& t : output_.taken) {
    slices_[t.slice].cache.written_back(count(t.sectors));
    resume(t.slice, now);
  }
  output_.taken.clear();
  const Cycle wake = channel.hbm.wake_cycle();
  if (wake != channel.wake && wake != kNever) schedule(std::max(wake, now + 1), Step::Channel, channel_id, 0);
  channel.wake = wake;
}

// ---- Events ---------------------------------------------------------------------------------------------------------

/// Requests, channels and sets are spread over more memory than the host's nearest caches hold: what the events of a
/// cycle will look at is fetched before the first of them is handled, what has to be looked at to know where it is
/// first.
void MemorySystem::State::prefetch_due() const {
  for (const Event& e : due_) {
    switch (static_cast<Step>(e.type)) {
      case Step::Serve:
        for (const Queue& queue : slices_[e.unit].queue)
          if (queue.first != kNone) records_.prefetch(queue.first);
        break;
      case Step::Dram:
        bursts_.prefetch(e.subject);
        [[fallthrough]];
      case Step::Channel:
        channels_[e.unit].hbm.prefetch();
        break;
      case Step::Fill:
        slices_[e.unit].cache.prefetch_miss(static_cast<std::uint16_t>(e.subject));
        break;
      default:
        records_.prefetch(e.subject);
    }
  }
  for (const Event& e : due_) {
    switch (static_cast<Step>(e.type)) {
      case Step::Arrive:
        prefetch_lookup(e.subject);
        break;
      case Step::Serve:
        for (const Queue& queue : slices_[e.unit].queue)
          if (queue.first != kNone) prefetch_lookup(queue.first);
        break;
      case Step::Dram:
      case Step::Channel:
        channels_[e.unit].hbm.prefetch_candidate();
        break;
      case Step::Fill: {
        const L2Slice& cache = slices_[e.unit].cache;
        const L2Slice::Miss& miss = cache.entry(static_cast<std::uint16_t>(e.subject));
        cache.prefetch_way(miss.way);
        if (miss.first != kNone) records_.prefetch(miss.first);
        break;
      }
      default:
        break;
    }
  }
}

void MemorySystem::State::prefetch_lookup(std::uint32_t id) const {
  const Record& r = records_[id];
  const Slice& slice = slices_[r.slice];
  slice.cache.prefetch(r.index, r.copy);
  if (r.kind == RequestKind::Read) {
    slice.coalescer.prefetch(r.index, r.copy, crossbar_.gpc(r.sm));
  } else if (replicate_) {
    slices_[mirror(r.slice)].cache.prefetch(r.index, true);
  }
}

void MemorySystem::State::handle(const Event& e, Cycle now) {
  switch (static_cast<Step>(e.type)) {
    case Step::GpcWrite: {
      const Record& r = records_[e.subject];
      const int n = count(r.sectors);
      const int bytes = r.full ? n * static_cast<int>(kSectorBytes) : r.bytes;
      const int flits =
          r.kind == RequestKind::Write ? Crossbar::write_flits(n, r.full) : Crossbar::atomic_flits(n, bytes);
      send_to_slice(e.subject, crossbar_.gather(r.sm, flits, now));
      break;
    }
    case Step::FabricOut: {
      const Record& r = records_[e.subject];
      const int n = count(r.sectors);
      counters_.fabric_sectors += static_cast<std::uint64_t>(n);
      schedule(crossbar_.cross(crossbar_.partition(r.sm), n, now) + far_out_, Step::Arrive, 0, e.subject);
      break;
    }
    case Step::Arrive:
      arrive(e.subject, now);
      break;
    case Step::Serve:
      serve(e.unit, now);
      break;
    case Step::Dram:
      channels_[e.unit].hbm.push(e.subject, now, output_);
      run_channel(e.unit, now);
      break;
    case Step::Channel:
      // The plan may have changed since this was scheduled; then another event carries it.
      if (channels_[e.unit].wake <= now) run_channel(e.unit, now);
      break;
    case Step::Fill:
      fill(e.unit, static_cast<std::uint16_t>(e.subject), e.sectors, now);
      break;
    case Step::FabricBack:
      fabric_back(e.subject, now);
      break;
    case Step::Response:
    case Step::Reply:
      break;  // above the ports: take_answers()
  }
}

// ---- Interface ------------------------------------------------------------------------------------------------------

MemorySystem::MemorySystem(const GpuModel& model, L2Start start) : state_(std::make_unique<State>(model, start)) {}
MemorySystem::~MemorySystem() = default;

bool MemorySystem::accepts(std::uint16_t sm, Cycle now) const {
  return state_->posted_[sm] < state_->posted_limit_ && state_->crossbar_.accepts(sm, now);
}

Cycle MemorySystem::accepts_again(std::uint16_t sm, Cycle now) const {
  return state_->posted_[sm] < state_->posted_limit_ ? state_->crossbar_.accepts_again(sm, now) : kNever;
}

void MemorySystem::push(const MemoryRequest& request, Cycle now) {
  FW_CHECK(accepts(request.sm, now), "a memory request was pushed into a full port");
  FW_CHECK((request.sectors & 15) != 0, "a memory request without sectors");
  state_->push(request, now);
}

int MemorySystem::gpcs() const { return static_cast<int>(state_->ports_.size()); }
int MemorySystem::gpc(std::uint16_t sm) const { return state_->crossbar_.gpc(sm); }
Cycle MemorySystem::answer_cycles() const { return state_->answer_cycles_; }

void MemorySystem::exchange() {
  State& s = *state_;
  Cycle first = kNever;
  for (const State::Port& port : s.ports_)
    if (!port.sent.empty())
      first = std::min(first, port.sent.front().pushed);  // the first of each port is its earliest
  if (first != kNever) s.events_.advance(std::min(first, s.events_.next()));
  for (State::Port& port : s.ports_) {
    for (const State::Port::Sent& sent : port.sent) s.take_in(sent);
    port.sent.clear();
  }
  for (const State::Answer& answer : s.answered_)
    s.ports_[static_cast<std::size_t>(answer.gpc)].answers.push(answer.at, answer.event);
  s.answered_.clear();
}

Cycle MemorySystem::next_below() const { return state_->events_.next(); }

void MemorySystem::run_below(Cycle limit) {
  State& s = *state_;
  Cycle at = 0;
  while (s.events_.take(limit - 1, s.due_, at)) {
    s.prefetch_due();
    for (const Event& event : s.due_) s.handle(event, at);
  }
}

Cycle MemorySystem::next_answer(int gpc) const { return state_->ports_[static_cast<std::size_t>(gpc)].answers.next(); }

void MemorySystem::take_answers(int gpc, Cycle now, std::vector<MemoryReply>& replies) {
  State& s = *state_;
  State::Port& port = s.ports_[static_cast<std::size_t>(gpc)];
  Cycle at = 0;
  while (port.answers.take(now, port.due, at)) {
    for (const Event& e : port.due) {
      const bool posted = (e.type & kPosted) != 0;
      if (static_cast<Step>(e.type & ~kPosted) == Step::Response) {
        const Cycle there = s.crossbar_.deliver(e.unit, count(e.sectors), at);
        if (!posted) port.queued_cycles += there - at;
        if (there > at) {
          const auto type = static_cast<std::uint8_t>(static_cast<unsigned>(Step::Reply) | (e.type & kPosted));
          port.answers.push(there, {e.subject, e.unit, type, e.sectors});
          continue;
        }
      }
      if (posted) --s.posted_[e.unit];
      replies.push_back({e.subject, e.unit, e.sectors});
    }
  }
}

Cycle MemorySystem::next_event() {
  exchange();
  Cycle next = next_below();
  for (int g = 0; g < gpcs(); ++g) next = std::min(next, next_answer(g));
  return next;
}

void MemorySystem::run_until(Cycle now, std::vector<MemoryReply>& replies) {
  for (Cycle at = next_event(); at <= now; at = next_event()) {
    run_below(at + 1);
    for (int g = 0; g < gpcs(); ++g) take_answers(g, at, replies);
  }
}

MemoryCounters MemorySystem::counters() const {
  MemoryCounters sum = state_->counters_;
  for (const State::Port& port : state_->ports_) sum.read_latency_cycles += port.queued_cycles;
  return sum;
}

std::uint8_t MemorySystem::partition(std::uint16_t sm) const {
  return static_cast<std::uint8_t>(state_->crossbar_.partition(sm));
}

L2Traffic MemorySystem::touch(std::uint64_t line, std::uint8_t sectors, RequestKind kind, std::uint16_t sm, bool full,
                              std::uint8_t bytes) {
  State& s = *state_;
  const AddressMap::Home home = s.map_.home(line);
  const bool crosses = s.crossbar_.partition(sm) != static_cast<int>(home.partition);
  L2Traffic t;
  const auto number = [](std::uint8_t mask) { return static_cast<std::uint64_t>(count(mask)); };
  const auto account = [&](const L2Slice::Access& a) {
    t.written += number(s.geometry_.whole_bursts(a.evicted.dirty)) + number(s.geometry_.whole_bursts(a.cleaned.dirty));
    t.read += number(s.geometry_.whole_bursts(a.evicted.partial)) + number(s.geometry_.whole_bursts(a.cleaned.partial));
  };
  const bool write = kind == RequestKind::Write, modify = kind == RequestKind::Atomic || kind == RequestKind::Reduction;
  bool for_copy = false;
  if (crosses && s.replicate_ && kind == RequestKind::Read) {
    const auto a = s.slices_[s.mirror(home.slice)].cache.touch(home.index, true, sectors, false, true, 0);
    account(a);
    for_copy = a.outcome != L2Slice::Outcome::Stall;
    if (for_copy) {
      t.missed = number(a.missed);
      t.fetched = number(a.added);
      sectors = a.fetch;
    }
  }
  if (sectors == 0) return t;
  L2Slice& cache = s.slices_[home.slice].cache;
  const auto a = cache.touch(home.index, false, sectors, write, full, bytes, for_copy);
  account(a);
  t.read += number(a.fetch);
  if (!for_copy) {
    t.missed = number(a.missed);
    t.fetched = number(a.added);
  }
  if (for_copy || (write && crosses)) {
    t.fabric_hits = number(sectors) - number(a.missed);
    t.fabric_misses = number(a.added);
  }
  L2Slice::Access more;
  if (modify && a.way != L2Slice::kNoWay) {
    more.cleaned = cache.modify(a.way, sectors);
    cache.written_back(count(more.cleaned.dirty));
  }
  if (write || modify) {
    more.evicted = s.write_copy(home.slice, home.index, sectors, write && crosses, full);
    // Where there is one partition, there is no mirror and nothing gives way.
    if (more.evicted.dirty != 0) s.slices_[s.mirror(home.slice)].cache.written_back(count(more.evicted.dirty));
  }
  account(more);
  return t;
}

void MemorySystem::prefetch(std::uint64_t line, bool write, std::uint16_t sm) const {
  const State& s = *state_;
  const AddressMap::Home home = s.map_.home(line);
  const bool copy = s.replicate_ && s.crossbar_.partition(sm) != static_cast<int>(home.partition);
  if (copy || (write && s.replicate_)) s.slices_[s.mirror(home.slice)].cache.prefetch(home.index, true);
  s.slices_[home.slice].cache.prefetch(home.index, false);
}

std::vector<FineCycle> MemorySystem::atomic_backlog(Cycle now) const {
  std::vector<FineCycle> backlog;
  for (const State::Slice& slice : state_->slices_)
    backlog.push_back(slice.atomics.free() - std::min(slice.atomics.free(), to_fine(now)));
  return backlog;
}

void MemorySystem::add_atomic_backlog(std::span<const FineCycle> by_slice) {
  for (std::size_t i = 0; i < by_slice.size(); ++i) state_->slices_[i].atomics.delay(by_slice[i]);
}

void MemorySystem::copy_lines(const MemorySystem& other) {
  for (std::size_t i = 0; i < state_->slices_.size(); ++i)
    state_->slices_[i].cache.copy_lines(other.state_->slices_[i].cache);
}

bool MemorySystem::in_sample(std::uint64_t line, std::uint32_t every) const {
  return every == 1 || state_->in_sample(state_->map_.home(line).slice, every);
}

std::uint64_t MemorySystem::dirty_bytes(std::uint32_t every) const {
  std::uint64_t sectors = 0;
  for (std::uint32_t i = 0; i < state_->slices_.size(); ++i)
    if (state_->in_sample(i, every)) sectors += state_->slices_[i].cache.dirty_sectors();
  return sectors * kSectorBytes;
}

}  // namespace forewarp
