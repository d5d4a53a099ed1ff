// The paths of requests below the ports. No other file knows them:
//
//   port -> [CPC write path] -> [fabric] -> [slice port] -> slice queue -> tags -> hit: data stage -> response
//                                                                       -> miss: HBM channel -> fill -> data stage ->
//                                                                       ...
//
// A read of a line homed in the other partition, where copies are kept: near slice -> miss -> home slice -> fabric ->
// near slice, whose copy then serves later readers. Without copies the request itself crosses, both ways.
// Unloaded, a read of one sector takes request + hit + response cycles; a far one far_cycles more; a miss the
// controller's time, tRCD (+ tRP), tCL and the burst more. Fixed latencies are SM cycles; the slices' rates are per L2
// cycle and scaled by clock_ratio.
#include <algorithm>

#include "timing/memory/memory_state.h"

namespace forewarp {

// ---- SM to slice ----------------------------------------------------------------------------------------------------

void MemorySystem::State::append(Line& line, std::uint32_t id) {
  records_[id].next = kNone;
  (line.first == kNone ? line.first : records_[line.last].next) = id;
  line.last = id;
}

/// Takes the first one out; kNone: there is none.
std::uint32_t MemorySystem::State::next_of(Line& line) {
  const std::uint32_t id = line.first;
  if (id != kNone) line.first = records_[id].next;
  return id;
}

/// Whether this write waits because as many writes of its CPC are in line already.
bool MemorySystem::State::waits(Turn& turn, int in_line, std::uint32_t id) {
  if (turn.in_line < in_line) return false;
  append(turn, id);
  return true;
}

/// A write leaves by its CPC's path, in order: not while one before it waits for room at the fabric.
void MemorySystem::State::leave_cpc(std::uint32_t id, Cycle now) {
  const Record& r = records_[id];
  HeldUp& held = held_up(r);
  if (held.first != kNone || turn_at_fabric(r).first != kNone) {
    append(held, id);
  } else {
    send_to_slice(id, crossbar_.gather(r.sm, r.flits, now));
  }
}

/// There is room at the fabric, or the CPC's path is free again.
void MemorySystem::State::go_on(HeldUp& held, Cycle now) {
  held.going_on = false;
  while (held.first != kNone && turn_at_fabric(records_[held.first]).first == kNone) {
    const std::uint32_t id = next_of(held);
    const Record& r = records_[id];
    const Cycle at = crossbar_.gather(r.sm, r.flits, now);
    send_to_slice(id, at);
    if (at > now && held.first != kNone) {
      held.going_on = true;
      schedule(at, Step::CpcGoesOn, 0, held.first);
      return;
    }
  }
}

/// A read goes to its slice when its CPC has room for another below its port.
void MemorySystem::State::send_read(std::uint32_t id) {
  const Record& r = records_[id];
  Reads& reads = reads_[crossbar_.cpc(r.sm)];
  if (reads.below == cpc_reads_) {
    append(reads, id);
  } else {
    ++reads.below;
    send_to_slice(id, r.leaves);
  }
}

void MemorySystem::State::answered(const Record& r, Cycle now) {
  Reads& reads = reads_[crossbar_.cpc(r.sm)];
  if (const std::uint32_t id = next_of(reads); id != kNone) {
    send_to_slice(id, std::max(now, records_[id].leaves));
  } else {
    --reads.below;
  }
}

void MemorySystem::State::send_to_slice(std::uint32_t id, Cycle at) {
  const Record& r = records_[id];
  if (!r.crosses) {
    at += request_cycles_;
    if (r.kind == RequestKind::Read) at = later(at, distance(r) / 2);
    schedule(at, Step::Arrive, 0, id);
  } else if (r.kind == RequestKind::Read) {
    schedule(at + request_cycles_ + far_out_, Step::Arrive, 0, id);
  } else {
    schedule(at, Step::FabricOut, 0, id);
  }
}

/// Write data queues for the fabric.
void MemorySystem::State::cross(std::uint32_t id, Cycle now) {
  while (id != kNone) {
    const Record& r = records_[id];
    Turn& turn = turn_at_fabric(r);
    const int n = count(r.sectors);
    counters_.fabric_sectors += static_cast<std::uint64_t>(n);
    const Cycle at = crossbar_.cross(crossbar_.partition(r.sm), n, now);
    if (at > now + 1) {  // several sectors go in a cycle
      ++turn.in_line;
      schedule(at, Step::Cross, 0, id);
      return;
    }
    schedule(at + request_cycles_ + far_out_, Step::Arrive, 0, id);
    id = next_of(turn);
  }
}

/// Write data queues for its slice, which takes it in flit by flit. An atomic on the line of the last one comes in with
/// it (kernels/micro l2_modify; FINDINGS.md, L2).
void MemorySystem::State::enter(std::uint32_t id, Cycle now) {
  while (id != kNone) {
    const Record& r = records_[id];
    Slice& slice = slices_[r.slice];
    Turn& turn = turn_at_slice(r);
    const bool follows = r.kind != RequestKind::Write && slice.entered == r.index;
    slice.entered = r.kind == RequestKind::Write ? kNoLine : r.index;
    const Cycle at = follows ? std::max(now, fine_ceil(slice.port.free()))
                             : fine_ceil(slice.port.take(to_fine(now), r.flits * slice_flit_));
    if (at > now) {
      ++turn.in_line;
      schedule(at, Step::Enter, 0, id);
      return;
    }
    const std::uint32_t next = next_of(turn);
    arrive(id, now);
    id = next;
  }
}

void MemorySystem::State::arrive(std::uint32_t id, Cycle now) {
  const Record& r = records_[id];
  const std::uint16_t slice_id = r.slice;
  Slice& slice = slices_[slice_id];
  if (r.fetch) {
    append(slice.queue[1], id);
  } else {
    append(slice.arrived, id);
    let_in(slice_id, now);
  }
  if (!slice.serving) serve(slice_id, now);
}

/// The coalescer takes requests until one needs a lookup.
void MemorySystem::State::let_in(std::uint16_t slice_id, Cycle now) {
  Slice& slice = slices_[slice_id];
  while (slice.queue[0].first == kNone && slice.arrived.first != kNone) {
    const std::uint32_t id = next_of(slice.arrived);
    if (records_[id].kind == RequestKind::Read && merge(id, now)) continue;
    append(slice.queue[0], id);
  }
}

/// Whether the read shares the data of another of its GPC and needs no lookup.
bool MemorySystem::State::merge(std::uint32_t id, Cycle now) {
  Record& r = records_[id];
  if (r.crosses) return false;
  const auto join = slices_[r.slice].coalescer.read(r.index, r.copy, crossbar_.gpc(r.sm), r.sm, r.sectors, id, now);
  if (join.outcome == ReadCoalescer::Outcome::First) return false;
  r.merged = join.shares_packet;
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

/// Looks up requests while the tags are free and no more than a line waits for the data stage; what comes from SMs and
/// what comes from the fabric take turns.
void MemorySystem::State::serve(std::uint16_t slice_id, Cycle now) {
  Slice& slice = slices_[slice_id];
  slice.serving = false;
  for (;;) {
    const bool ready[2] = {slice.queue[0].first != kNone && !slice.queue[0].stalled,
                           slice.queue[1].first != kNone && !slice.queue[1].stalled};
    if (!ready[0] && !ready[1]) return;
    const FineCycle free = std::max(slice.tags.free() + data_cost_[4], slice.data.free()) - data_cost_[4];
    if (free >= to_fine(now + 1)) {
      slice.serving = true;
      schedule(fine_floor(free), Step::Serve, slice_id, 0);
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
    if (pick == 0) let_in(slice_id, now);
  }
}

// ---- Slice ----------------------------------------------------------------------------------------------------------

/// One lookup. False if nothing was done; the request keeps its place.
bool MemorySystem::State::process(std::uint32_t id, Cycle now) {
  if (records_[id].kind == RequestKind::Write) return process_write(id, now);
  Record& r = records_[id];
  const std::uint16_t slice_id = r.slice;
  L2Slice& cache = slices_[slice_id].cache;
  const L2Slice::Access a = cache.read(r.index, r.copy, r.sectors, r.at_once);
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
  if (a.cleaned.dirty != 0) evict(slice_id, a.cleaned, now);
  if (a.outcome == L2Slice::Outcome::Hit) {
    finish(id, now, false);
    return true;
  }
  L2Slice::Miss& miss = cache.entry(a.miss);
  r.next = kNone;
  (miss.first == kNone ? miss.first : records_[miss.last].next) = id;
  miss.last = id;
  if (a.evicted.dirty != 0) evict(slice_id, a.evicted, now);
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
  if (a.evicted.dirty != 0) evict(r.slice, a.evicted, now);
  if (a.cleaned.dirty != 0) evict(r.slice, a.cleaned, now);
  if (const Eviction e = write_copy(r.slice, r.index, r.sectors, r.crosses, r.full); e.dirty != 0)
    evict(mirror(r.slice), e, now);
  counters_.hit_sectors += static_cast<std::uint64_t>(count(r.sectors));
  if (r.crosses) counters_.fabric_hit_sectors += static_cast<std::uint64_t>(count(r.sectors));
  const Cycle start = fine_ceil(slice.data.take(to_fine(now), data_cost_[static_cast<std::size_t>(count(r.sectors))]));
  respond(id, Step::Reply, start + hit_cycles_ + response_cycles_ + (r.crosses ? far_back_ : 0), now);
  return true;
}

/// Fetches what a lookup found missing, from DRAM or, for a copy, from the line's home.
void MemorySystem::State::fetch(Record& r, const L2Slice::Access& a, Cycle now) {
  const std::uint16_t slice = r.slice;
  const std::uint64_t index = r.index;
  if (!r.copy) {
    send_to_channel(slice, index, a.fetch, a.miss, false, now);
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

void MemorySystem::State::evict(std::uint16_t slice, const Eviction& e, Cycle now) {
  counters_.merge_sectors += static_cast<std::uint64_t>(count(e.partial));
  if (e.partial != 0) send_to_channel(slice, e.index, e.partial, L2Slice::kNoMiss, false, now);
  send_to_channel(slice, e.index, e.dirty, L2Slice::kNoMiss, true, now);
}

/// The column accesses that move these sectors.
void MemorySystem::State::send_to_channel(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors,
                                          std::uint16_t miss, bool write, Cycle now) {
  const AddressMap::Dram place = map_.dram(slice, index);
  Burst b;
  b.row = place.row;
  b.bank = static_cast<std::uint16_t>(place.bank);
  b.slice = slice;
  b.miss = miss;
  b.sectors = sectors;
  b.write = write;
  Channel& channel = channels_[place.channel];
  if (channel.sent.empty()) sent_to_.push_back(static_cast<std::uint16_t>(place.channel));
  channel.sent_at.push_back(now + hit_cycles_ + controller_out_);
  channel.sent.push_back(b);
}

/// What a write to a line does to its copy in the other partition: data from there stays as a copy, other data
/// invalidates it. Returns what was evicted.
Eviction MemorySystem::State::write_copy(std::uint16_t slice, std::uint64_t index, std::uint8_t sectors, bool from_afar,
                                         bool full) {
  if (!replicate_) return {};
  L2Slice& copies = slices_[mirror(slice)].cache;
  if (from_afar) return copies.keep_copy(index, sectors, full);
  copies.invalidate_copy(index, sectors);
  return {};
}

/// All sectors of a request are present: read or modify them and send the reply. Arriving data is forwarded without
/// reading it back: all SMs of an H200 read 40 MB, of which a third must be far hits, as fast as 4 MB, so a far hit
/// cannot take the data stage of two slices.
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
    // One sector a pass, after the first. An atomic waits for the one before it on the same line, as a lane waits for
    // another on the same word (kernels/micro l2_modify).
    const FineCycle passes = atomic_cost_ + (n - 1) * sector_cost_;
    const bool depends = r.rounds > 1 || slice.changed == r.index;
    slice.changed = r.index;
    const FineCycle busy = depends ? std::max<FineCycle>(passes, r.rounds * word_cost_) : passes;
    // The reply follows the last pass; a single pass is part of hit_cycles.
    const FineCycle taken = slice.atomics.take(to_fine(now), busy);
    start = fine_ceil(taken + busy - std::min(busy, atomic_cost_));
    // What arrives within an unloaded round trip waits at the slice, the rest on its way, where it blocks what is
    // behind it.
    crossbar_.hold(r.sm, fine_floor(taken) - std::min(fine_floor(taken), round_trip_));
    const Eviction cleaned = slice.cache.modify(r.way, r.sectors);
    if (cleaned.dirty != 0) evict(r.slice, cleaned, now);
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

/// A read's data (or a near atomic's) leaves the slice for the SM and for those whose reads were merged into it. Others
/// could join until some time after the data was found.
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

/// Miss entries are free again: queues that stalled for want of one continue.
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

/// The request is finished below the ports. A model whose SMs are nearer to their slices than response_cycles allows
/// for gets its reply after one cycle.
void MemorySystem::State::respond(std::uint32_t id, Step step, Cycle at, Cycle now) {
  const Record& r = records_[id];
  at = std::max(at, now + answer_cycles_);
  if (r.kind == RequestKind::Read) {
    answered(r, now);
    ++counters_.read_replies;
    counters_.read_latency_cycles += at - r.pushed;
  }
  const auto type = static_cast<std::uint8_t>(static_cast<unsigned>(step) |
                                              (r.kind == RequestKind::Read ? 0 : kPosted) | (r.merged ? kMerged : 0));
  const auto sectors = static_cast<std::uint8_t>(r.sectors | r.flits << kFlits);
  answered_.push_back({at, crossbar_.gpc(r.sm), {r.tag, r.sm, type, sectors}});
  records_.give(id);
}

// ---- DRAM -----------------------------------------------------------------------------------------------------------

/// Collects what the channels did since the last exchange; it is on its way to the slices.
void MemorySystem::State::hear_of_channels() {
  for (ChannelGroup& group : groups_) {
    for (const std::uint16_t id : group.active) {
      ChannelOutput& output = channels_[id].output;
      for (const ChannelOutput::Done& d : output.done) {
        const Cycle at = ((d.at + (Tick{1} << kTickBits) - 1) >> kTickBits) + controller_back_;
        schedule(at, Step::Fill, d.slice, d.miss, d.sectors);
      }
      output.done.clear();
      for (const ChannelOutput::Taken& t : output.taken)
        schedule((t.at >> kTickBits) + controller_back_, Step::Taken, t.slice, 0, t.sectors);
      output.taken.clear();
    }
    group.active.clear();
  }
}

/// The earliest that a slice can hear of a channel: of what that has done, or has still to do.
Cycle MemorySystem::State::next_from_channels() const {
  Cycle done = kNever;
  for (const ChannelGroup& group : groups_) {
    done = std::min(done, group.first_next);
    for (const std::uint16_t id : group.active) {
      for (const ChannelOutput::Done& d : channels_[id].output.done) done = std::min(done, d.at >> kTickBits);
      for (const ChannelOutput::Taken& t : channels_[id].output.taken) done = std::min(done, t.at >> kTickBits);
    }
  }
  for (const std::uint16_t id : sent_to_) done = std::min(done, channels_[id].sent_at.front());
  return done == kNever ? kNever : done + controller_back_;
}

/// Hands the channels what slices have sent since the last exchange.
void MemorySystem::State::tell_channels() {
  for (const std::uint16_t id : sent_to_) {
    Channel& channel = channels_[id];
    const auto arrived = static_cast<std::ptrdiff_t>(channel.arrived);
    channel.arrives_at.erase(channel.arrives_at.begin(), channel.arrives_at.begin() + arrived);
    channel.arriving.erase(channel.arriving.begin(), channel.arriving.begin() + arrived);
    channel.arrived = 0;
    channel.arrives_at.insert(channel.arrives_at.end(), channel.sent_at.begin(), channel.sent_at.end());
    channel.arriving.insert(channel.arriving.end(), channel.sent.begin(), channel.sent.end());
    ChannelGroup& group = groups_[id / kChannelGroup];
    Cycle& next = group.next[id % kChannelGroup];
    next = std::min(next, channel.sent_at.front());
    group.first_next = std::min(group.first_next, next);
    channel.sent_at.clear();
    channel.sent.clear();
  }
  sent_to_.clear();
}

void MemorySystem::State::run_channels(ChannelGroup& group, Cycle limit) {
  if (group.first_next >= limit) return;
  group.first_next = kNever;
  for (std::size_t i = 0; i < group.next.size(); ++i) {
    Cycle& next = group.next[i];
    if (next < limit) {
      Channel& channel = channels_[group.first + i];
      group.active.push_back(static_cast<std::uint16_t>(group.first + i));
      do {
        const std::size_t begin = channel.arrived;
        while (channel.next_arrival() == next) ++channel.arrived;
        if (channel.arrived > begin)
          channel.hbm.push(std::span(channel.arriving).subspan(begin, channel.arrived - begin), next, channel.output);
        channel.hbm.advance(next, group.counters, channel.output);
        next = std::min(channel.hbm.wake_cycle(), channel.next_arrival());
      } while (next < limit);
    }
    group.first_next = std::min(group.first_next, next);
  }
}

}  // namespace forewarp
