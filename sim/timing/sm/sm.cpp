#include "timing/sm/sm.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace forewarp {
namespace {
constexpr std::size_t kConstantLines = 4096;
}  // namespace

Sm::Sm(const LaunchContext& context, std::uint16_t id)
    : context_(context),
      id_(id),
      warps_(static_cast<std::size_t>(context.blocks_per_sm * context.warps_per_block)),
      blocks_(static_cast<std::size_t>(context.blocks_per_sm)),
      subs_(static_cast<std::size_t>(context.gpu.issue.sub_partitions)),
      fetch_(context.gpu.icache, context.gpu.issue.sub_partitions, context.program.code_lines()),
      pipe_(context.gpu, id, context.l1_bytes, context.patterns, context.pattern_timing),
      copies_(warps_.size(), context.program.copies(), context.gpu.latency.copy_release),
      stored_boxes_(warps_.size(), context.program.stores_boxes(), context.gpu.async.box_complete_cycles),
      release_times_(warps_.size(), context.program.counted_scoreboards()),
      constant_arrival_(kConstantLines, kNever) {
  for (SubPartition& sub : subs_) sub.ready.fill(kNever);
  // A line holds the same word of the lanes of a warp.
  local_lines_ = (context.trace.kernel->local_bytes + 3) / 4 * static_cast<std::uint64_t>(context.warps_per_block);
}

void Sm::start_block(std::uint32_t linear, Cycle now, const ClusterSeat& seat, const BlockState* from) {
  std::size_t slot = 0;
  while (blocks_[slot].used) ++slot;
  Block& block = blocks_[slot];
  const KernelTrace& trace = context_.trace;
  const std::uint32_t class_index = context_.classes.class_of(linear);
  const BlockClass& cls = trace.classes[class_index];
  block.used = true;
  block.linear = linear;
  block.start = now;
  block.barriers = {};
  block.phases.clear();
  if (from != nullptr) {
    block.barriers = from->barriers;
    block.phases = from->phases;
  }
  block.met.assign(cls.warps.size() / kGroupWarps + 1, 0);
  block.last_arrival = 0;
  block.live_warps = static_cast<int>(cls.warps.size());
  block.warps.clear();
  block.shifts.resize(trace.slopes.size());
  const BlockDistance distance = trace.distance(cls.representative, trace.block_index(linear));
  for (std::size_t s = 0; s < trace.slopes.size(); ++s) block.shifts[s] = trace.slopes[s].over(distance) / kLineBytes;
  block.seat = seat;
  if (seat.blocks > 0)
    block.cluster = network_->start(seat.cluster, seat.rank, {id_, static_cast<std::uint16_t>(slot), linear, true},
                                    seat.blocks, cls.warps.size());
  if (resident_++ == 0) active_since_ = now;
  block.recorded =
      context_.recorder == nullptr ? std::uint16_t{0} : context_.recorder->start_block(linear, seat.rank, id_, now);

  const LaunchSpec& launch = context_.gpu.launch;
  // Consecutive warps go to consecutive sub-partitions, of the next block too; where that would begin every block with
  // the same one, one further (kernels/micro turnover, the hardware warps of blocks of 1 to 32 warps).
  const std::size_t first = next_sub_;
  const std::size_t uneven = cls.warps.size() % subs_.size();
  next_sub_ = (next_sub_ + (uneven != 0 ? uneven : 1)) % subs_.size();
  for (std::size_t w = 0; w < cls.warps.size(); ++w) {
    // Where warps of other blocks have left unevenly, the next may be full while the SM has room.
    std::size_t place = (first + w) % subs_.size();
    for (std::size_t full = 0; full < subs_.size() && std::countr_one(subs_[place].live_mask) >= kWarpSlots; ++full)
      place = (place + 1) % subs_.size();
    SubPartition& sub = subs_[place];
    const auto free_slot = static_cast<std::size_t>(std::countr_one(sub.live_mask));
    FW_CHECK(free_slot < kWarpSlots, "a sub-partition has more warps than slots");
    const auto warp_index = static_cast<std::uint16_t>(slot * static_cast<std::size_t>(context_.warps_per_block) + w);
    Warp& warp = warps_[warp_index];
    const WarpPath& path = cls.paths[cls.warps[w].path];
    const auto generation = static_cast<std::uint16_t>(warp.generation + 1);
    warp = Warp{};
    warp.generation = generation;
    copies_.start(warp_index);
    stored_boxes_.start(warp_index);
    release_times_.start(warp_index);
    warp.cls = class_index;
    warp.path = cls.warps[w].path;
    warp.cursor = WarpCursor(path, cls.warps[w]);
    if (from != nullptr) warp.cursor.advance(from->behind[w], context_.program.events());
    warp.placed = std::max(now, warp_start_free_);
    warp_start_free_ = warp.placed + static_cast<Cycle>(launch.warp_start_interval);
    warp.started = warp.placed + static_cast<Cycle>(launch.block_start_cycles);
    warp.issued = warp.fixed_at = warp.started;
    warp.held_before = sub.held;
    warp.fetched_at = 0;
    warp.needs_fetch = true;
    ++sub.starting;
    warp.sub_partition = static_cast<std::uint8_t>(place);
    warp.slot = static_cast<std::uint8_t>(free_slot);
    warp.block_slot = static_cast<std::uint16_t>(slot);
    warp.age = next_age_;
    sub.order[free_slot] = issue_order(warp.age, 0);
    warp.alive = true;
    if (block.recorded != 0) warp.recorded = context_.recorder->start_warp(block.recorded, w, place, warp.started);
    block.warps.push_back(warp_index);
    sub.warp[free_slot] = warp_index;
    sub.live_mask |= 1u << free_slot;
    if (sub.live++ == 0) sub.active_since = now;
    wake(warp, warp.started);
  }
  ++next_age_;
}

void Sm::wake(Warp& warp, Cycle at) {
  SubPartition& sub = subs_[warp.sub_partition];
  sub.ready[warp.slot] = at;
  sub.next = std::min(sub.next, at);
}

/// Recomputes when a warp may issue; kNever while the end of something it waits for is not known. Whatever may bring
/// that end nearer calls this.
void Sm::evaluate(Warp& warp, Cycle now) {
  if (!warp.alive) return;
  const TimedInstruction& in = context_.program[warp.pc()];
  SubPartition& sub = subs_[warp.sub_partition];
  sub.wants_memory = (sub.wants_memory & ~(1u << warp.slot)) | std::uint32_t{in.memory_queue} << warp.slot;
  if (in.path == Path::Depbar && in.count > 0) {
    const auto index = index_of(warp);
    const std::uint8_t s = in.depbar_scoreboard;
    warp.counted_at = release_times_.reaches(index, s, in.count, warp.pending[s], now);
  }
  Cycle at = now;
  for_each_wait(sub, warp, in, [&](Cycle until, Stall, std::uint8_t) { at = std::max(at, until); });
  if (at == kNever)
    sub.ready[warp.slot] = kNever;
  else
    wake(warp, at);
}

/// A count of the scoreboard ends at `at`.
void Sm::release_scoreboard(Warp& warp, std::uint16_t index, std::uint8_t s, Cycle at, Cycle now) {
  if (s == kNoScoreboard) return;
  if (warp.pending[s]-- == context_.gpu.issue.scoreboard_limit) warp.countable = std::max(now, at);
  warp.scoreboard_at[s] = std::max(warp.scoreboard_at[s], at);
  if (release_times_.watches(s)) release_times_.add(index, s, at);
  const bool counts = context_.program[warp.pc()].path == Path::Depbar;
  if (!warp.draining && (counts || subs_[warp.sub_partition].ready[warp.slot] == kNever)) evaluate(warp, now);
}

void Sm::apply_releases(Cycle now) {
  for (const Release& release : releases_) {
    Warp& warp = warps_[release.warp];
    switch (release.kind) {
      case Release::Kind::QueueSlot: {
        SubPartition& sub = subs_[warp.sub_partition];
        --sub.queued_memory;
        sub.queued_global -= release.global ? 1 : 0;
        if (sub.waits_for_queue) sub.next = std::min(sub.next, now + 1);
        --warp.queued;
        if (warp.draining) retire(warp, now);
        break;
      }
      case Release::Kind::StoreAcknowledged:
        ++stores_acknowledged_;
        if (((warp.generation ^ release.generation) & 0x7fff) == 0 && warp.stores_in_flight > 0 &&
            --warp.stores_in_flight == 0)
          end_fence(warp, now, now);
        if (fences_waiting_ > 0 && stores_acknowledged_ >= fence_needs_) end_fences(now, now);
        break;
      case Release::Kind::Read:
      case Release::Kind::Write:
        release_scoreboard(warp, release.warp, release.scoreboard, release.at, now);
        if (warp.draining) retire(warp, now);
        break;
      case Release::Kind::Boxed:
        end_box(release, now);
        break;
      case Release::Kind::Remote:
        finish_remote(release, now);
        break;
      case Release::Kind::BoxStored:
        if (release.box.recorded != 0) context_.recorder->copied(release.box.recorded, release.at);
        stored_boxes_.done(release.warp, release.box.group, release.at, [&](std::uint8_t scoreboard, Cycle at) {
          release_scoreboard(warp, release.warp, scoreboard, at, now);
        });
        if (warp.draining) retire(warp, now);
        break;
      case Release::Kind::Copied:
        copies_.done(release.warp, release.group, release.at, [&](std::uint8_t scoreboard, Cycle at) {
          release_scoreboard(warp, release.warp, scoreboard, at, now);
        });
        if (warp.draining) retire(warp, now);
        break;
    }
  }
  releases_.clear();
}

Cycle Sm::drain(Cycle now, MemorySystem& memory) {
  releases_.clear();
  if (pipe_next_ <= now) pipe_next_ = pipe_.tick(now, memory, releases_);
  return pipe_next_;
}

/// A copy to several blocks goes to their SMs as it comes to this one.
void Sm::reply(const MemoryReply& reply, Cycle now, MemorySystem& memory) {
  const MemoryPipe::FansOut to = pipe_.fans_out(reply);
  for (unsigned m = to.blocks; m != 0; m &= m - 1) {
    const ClusterNetwork::Place& other = network_->place(to.cluster, static_cast<std::size_t>(std::countr_zero(m)));
    if (other.here && other.sm != id_)
      pipe_.fanned(to.load, memory.deliver_also(other.sm, std::popcount(unsigned{reply.sectors}), now));
  }
  pipe_.reply(reply, now, releases_);
  pipe_next_ = now;
}

Cycle Sm::tick(Cycle now, MemorySystem& memory, SharedInstructionCache& gpc, std::vector<StallCycles>& stalls,
               std::vector<FinishedBlock>& finished) {
  finished_ = &finished;
  instruction_stalls_ = &stalls;
  // 1. The memory pipe: data that came back, then the next instructions of its queue.
  if (pipe_next_ <= now) {
    pipe_next_ = pipe_.tick(now, memory, releases_);
    apply_releases(now);
  }
  retire_drained(now);
  // 2. Each sub-partition issues at most one instruction.
  for (std::size_t i = 0; i < subs_.size(); ++i)
    if (subs_[i].next <= now) tick_sub_partition(subs_[i], static_cast<int>(i), now, gpc);
  retire_drained(now);
  // A barrier's last arrival may have woken a sub-partition that has had its turn.
  Cycle next = pipe_next_;
  for (const SubPartition& sub : subs_) next = std::min(next, sub.next);
  return next;
}

/// Of a warp that comes in parts only the last one counts, since one stream stands for all of them.
void Sm::arrive_at_barrier(Warp& warp, const BarrierArrival& arrival, Cycle now, bool waits) {
  if (!arrival.complete) return;
  Block& block = blocks_[warp.block_slot];
  BlockBarrier& barrier = block.barriers[arrival.id];
  ++barrier.arrived;
  barrier.warps = static_cast<std::uint16_t>((arrival.threads + kWarpLanes - 1) / kWarpLanes);
  // The ADU of the SM takes one warp after another: two blocks that meet side by side share it.
  block.last_arrival = std::max(adu_free_, now);
  adu_free_ = block.last_arrival + static_cast<Cycle>(context_.gpu.issue.barrier_per_warp_cycles);
  if (waits) {
    warp.barrier = arrival.id;
    warp.released_reason = Stall::Barrier;
    warp.released = kNever;
  }
  release_barrier_if_full(block, arrival.id, now);
}

void Sm::release_barrier_if_full(Block& block, int id, Cycle now) {
  BlockBarrier& barrier = block.barriers[static_cast<std::size_t>(id)];
  if (!barrier.full(block.live_warps)) return;
  barrier = {};
  const Cycle at = std::max(now, block.last_arrival) + static_cast<Cycle>(context_.gpu.issue.barrier_release_cycles);
  for (const std::uint16_t index : block.warps) {
    Warp& other = warps_[index];
    if (!other.alive || other.barrier != id) continue;
    other.barrier = kNoBarrier;
    other.released_reason = Stall::Barrier;
    other.released = at;
    if (subs_[other.sub_partition].ready[other.slot] == kNever) evaluate(other, now);
  }
}

/// The warps of a warpgroup go on together.
void Sm::meet_group(Warp& warp, Cycle now) {
  Block& block = blocks_[warp.block_slot];
  const std::size_t place =
      static_cast<std::size_t>(std::find(block.warps.begin(), block.warps.end(), index_of(warp)) - block.warps.begin());
  const std::size_t first = place / kGroupWarps * kGroupWarps;
  warp.released = kNever;
  warp.released_reason = Stall::Gmma;
  std::uint8_t live = 0;
  const std::size_t end = std::min(first + kGroupWarps, block.warps.size());
  for (std::size_t w = first; w < end; ++w)
    live = static_cast<std::uint8_t>(live + (warps_[block.warps[w]].alive ? 1 : 0));
  if (++block.met[place / kGroupWarps] < live) return;
  block.met[place / kGroupWarps] = 0;
  const Cycle at = now + static_cast<Cycle>(context_.gpu.async.group_release_cycles);
  for (std::size_t w = first; w < end; ++w) {
    Warp& other = warps_[block.warps[w]];
    if (!other.alive || other.released_reason != Stall::Gmma || other.released != kNever) continue;
    other.released = at;
    if (&other != &warp && subs_[other.sub_partition].ready[other.slot] == kNever) evaluate(other, now);
  }
}

void Sm::wake_waiter(const PhaseBarriers::Waiter& waiter, Cycle at, Cycle now) {
  if (const std::uint16_t row = warps_[waiter.warp].recorded; row != 0)
    context_.recorder->goes_on(row, waiter.barrier, at);
  release_scoreboard(warps_[waiter.warp], waiter.warp, waiter.scoreboard, at, now);
  if (warps_[waiter.warp].draining) drained_.push_back(waiter.warp);
}

void Sm::retire_drained(Cycle now) {
  for (const std::uint16_t index : drained_)
    if (warps_[index].alive && warps_[index].draining) retire(warps_[index], now);
  drained_.clear();
}

/// What reaches a barrier from beside the warps at `at`.
void Sm::change_phase(Block& block, const PhaseRecord& record, Cycle at, Cycle now) {
  const AsyncSpec& spec = context_.gpu.async;
  const Cycle after = static_cast<Cycle>(record.arrivals > 0 ? spec.phase_complete_cycles : spec.box_complete_cycles);
  const std::uint32_t before = block.recorded != 0 ? block.phases.completed(record.barrier) : 0;
  block.phases.change(record, at,
                      [&](const PhaseBarriers::Waiter& waiter, Cycle over) { wake_waiter(waiter, over + after, now); });
  if (block.recorded != 0) record_phase(block, record.barrier, before, at);
}

void Sm::end_box(const Release& release, Cycle now) {
  const Cycle at = complete_box(release, now);
  if (release.box.recorded != 0) context_.recorder->copied(release.box.recorded, at);
  boxes_.come(release.box.number);
  if (fences_waiting_ > 0) end_fences(std::max(at, now), now);
}

/// Returns when it is complete.
Cycle Sm::complete_box(const Release& release, Cycle now) {
  PhaseRecord record;
  const BoxOwner& box = release.box;
  record.barrier = box.barrier;
  record.bytes = -static_cast<std::int32_t>(box.bytes);
  if (box.blocks == 0) {
    Block& block = blocks_[box.slot];
    if (block.used && block.linear == box.block) change_phase(block, record, release.at, now);
    return release.at;
  }
  Cycle at = std::max(release.at, release.fanned_at);
  if (std::popcount(unsigned{box.blocks}) > 1) at += static_cast<Cycle>(context_.gpu.cluster.multicast_cycles);
  if (!network_->has(box.cluster, box.block)) return at;  // all of them have left
  for (unsigned m = box.blocks; m != 0; m &= m - 1)
    network_->complete(box.cluster, static_cast<std::size_t>(std::countr_zero(m)), record, std::max(at, now + 1));
  return at;
}

void Sm::receive(const ClusterNetwork::Message& message, Cycle now) {
  Block& block = blocks_[message.to.slot];
  if (!block.used || block.linear != message.to.block) return;
  if (message.kind == ClusterNetwork::Message::Kind::Phase) {
    change_phase(block, message.record, message.at, now);
    return;
  }
  const std::uint32_t over = network_->phases(block.cluster);
  for (const std::uint16_t index : block.warps) {
    Warp& warp = warps_[index];
    if (!warp.alive || !warp.waits_cluster || warp.cluster_arrivals > over) continue;
    warp.waits_cluster = false;
    warp.released = message.at;
    evaluate(warp, now);
  }
}

/// The cluster's barrier: an arrival counts when it is issued, of a warp that comes in parts the last one's.
void Sm::meet_cluster(Warp& warp, const TimedInstruction& in, const Access& record, Cycle now) {
  const Block& block = blocks_[warp.block_slot];
  if (block.seat.blocks == 0 || !BarrierArrival::of(record).complete) return;
  if (in.path == Path::ClusterArrive) {
    ++warp.cluster_arrivals;
    network_->arrive(block.cluster, now);
    return;
  }
  warp.released_reason = Stall::Barrier;
  if (network_->phases(block.cluster) >= warp.cluster_arrivals) {
    warp.released = network_->phase_over_at(block.cluster);
    return;
  }
  warp.waits_cluster = true;
  warp.released = kNever;
}

/// Notes what an access moves between this SM and those of other blocks of the cluster, if it does.
void Sm::open_remote(const Warp& warp, const TimedInstruction& in, MemoryOperation& operation) {
  const bool completing = in.event.kind == EventKind::RemoteStore;
  if (in.space != MemorySpace::Generic && !completing) return;
  const Block& block = blocks_[warp.block_slot];
  const Access& access = *warp.cursor.records();
  const AccessPattern& pattern = context_.trace.patterns[access.pattern];
  if (block.seat.blocks == 0 || pattern.space != MemorySpace::Shared) return;
  RemoteAccess remote;
  std::array<std::uint64_t, kWarpLanes> addresses;
  std::size_t count = 0;
  for (LaneMask m = pattern.lanes; m != 0; m &= m - 1) {
    const std::int64_t offset = pattern.offsets[static_cast<std::size_t>(std::countr_zero(m))];
    const std::uint64_t address = access.base + static_cast<std::uint64_t>(offset);
    const int rank = remote_rank(address);
    if (rank >= 0 && rank < static_cast<int>(block.seat.blocks)) addresses[count++] = address;
  }
  const bool completes = completing && context_.trace.patterns[warp.cursor.records()[1].pattern].lanes != 0;
  if (count == 0 && !completes) return;
  // Between SMs data go by whole sectors, whatever the lanes need of them. Atomics on one word go one after another.
  const bool atomic = in.memory == MemoryKind::Atomic;
  std::sort(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(count));
  int on_word = 0, most_on_word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto rank = static_cast<std::size_t>(remote_rank(addresses[i]));
    remote.bytes[rank] = static_cast<std::uint16_t>(remote.bytes[rank] + pattern.bytes);
    if (i == 0 || addresses[i] / kSectorBytes != addresses[i - 1] / kSectorBytes) most_on_word = 0;
    on_word = i > 0 && atomic && addresses[i] == addresses[i - 1] ? on_word + 1 : 1;
    if (on_word > most_on_word) {
      most_on_word = on_word;
      ++remote.sectors[rank];
    }
  }
  operation.own_wavefronts = own_part(pattern, access.base).wavefronts;
  remote.cluster = block.cluster;
  remote.answers = in.memory == MemoryKind::Load || in.memory == MemoryKind::Atomic;
  remote.sends = in.memory != MemoryKind::Load;
  if (completes) {
    const Access& record = warp.cursor.records()[1];
    remote.completes = PhaseRecord::of(record.base);
    const BlockMask blocks = block.seat.among(blocks_of(context_.trace.patterns[record.pattern]));
    remote.completes.blocks = blocks != 0 ? blocks : static_cast<BlockMask>(1u << block.seat.rank);
  }
  if (free_remotes_.empty()) {
    remotes_.push_back(remote);
    operation.remote = static_cast<std::uint16_t>(remotes_.size());
    return;
  }
  operation.remote = free_remotes_.back();
  free_remotes_.pop_back();
  remotes_[operation.remote - 1u] = remote;
}

/// The access leaves its SM at release.at, for every block that it reaches.
void Sm::finish_remote(const Release& release, Cycle now) {
  const RemoteAccess remote = remotes_[release.remote - 1u];
  free_remotes_.push_back(release.remote);
  Cycle there = release.at, back = release.at, free = release.at;
  for (std::size_t rank = 0; rank < remote.sectors.size(); ++rank) {
    const ClusterNetwork::Place& other = network_->place(remote.cluster, rank);
    if (remote.sectors[rank] == 0 || !other.here) continue;
    const std::uint32_t bytes = remote.sectors[rank] * static_cast<std::uint32_t>(kSectorBytes);
    const auto pass = [&](const ClusterNetwork::Carried& carried, Cycle& last) {
      last = std::max(last, carried.there);
      free = std::max(free, carried.free);
    };
    if (remote.sends && remote.answers)
      pass(network_->atomic(id_, other.sm, remote.sectors[rank], remote.bytes[rank], release.at), back);
    else if (remote.sends)
      pass(network_->store(id_, other.sm, bytes, release.at), there);
    else
      pass(network_->load(id_, other.sm, bytes, release.at), back);
  }
  pipe_.hold_remote(free - (release.at - now));
  for (unsigned m = remote.completes.blocks; m != 0; m &= m - 1)
    network_->complete(remote.cluster, static_cast<std::size_t>(std::countr_zero(m)), remote.completes,
                       std::max(there, now + 1));
  Warp& warp = warps_[release.warp];
  if (warp.generation != release.generation) return;
  if (remote.sends) warp.remote_at = std::max(warp.remote_at, remote.answers ? back : there);
  if (release.scoreboard == kNoScoreboard) return;
  // Its way through its own SM and the other's, as of a load there.
  const Cycle at = std::max(there, back + static_cast<Cycle>(context_.gpu.latency.shared_load) - pipe_.lead_cycles());
  release_scoreboard(warp, release.warp, release.scoreboard, at, now);
  if (warp.draining) retire(warp, now);
}

/// SYNCS: what it changes counts when it is issued, what it waits for comes later.
void Sm::operate_on_phase(Warp& warp, std::uint16_t warp_index, const TimedInstruction& in, Cycle now) {
  const AsyncSpec& spec = context_.gpu.async;
  const Access& access = *warp.cursor.records();
  const PhaseRecord record = PhaseRecord::of(access.base);
  const Cycle start = std::max(now, phase_free_);
  const Cycle checked = start + static_cast<Cycle>(spec.phase_check_cycles);
  phase_free_ = start + static_cast<Cycle>(spec.phase_interval);
  Block& owner = blocks_[warp.block_slot];
  PhaseBarriers& phases = owner.phases;
  const std::uint32_t before = owner.recorded != 0 ? phases.completed(record.barrier) : 0;
  switch (record.action) {
    case PhaseRecord::Action::Init:
      phases.init(record.barrier, record.arrivals);
      break;
    case PhaseRecord::Action::Arrive:
      if (const Block& block = blocks_[warp.block_slot]; blocks_of(context_.trace.patterns[access.pattern]) != 0) {
        for (unsigned m = block.seat.among(blocks_of(context_.trace.patterns[access.pattern])); m != 0; m &= m - 1) {
          const auto rank = static_cast<std::uint32_t>(std::countr_zero(m));
          if (rank == block.seat.rank)
            change_phase(blocks_[warp.block_slot], record, start, now);
          else
            network_->send(block.cluster, rank, record, start);
        }
        break;
      }
      phases.change(record, start + static_cast<Cycle>(spec.phase_complete_cycles),
                    [&](const PhaseBarriers::Waiter& waiter, Cycle at) { wake_waiter(waiter, at, now); });
      if (owner.recorded != 0)
        record_phase(owner, record.barrier, before, start + static_cast<Cycle>(spec.phase_complete_cycles));
      break;
    case PhaseRecord::Action::Await: {
      const std::uint8_t s = in.write_barrier;
      if (s == kNoScoreboard) break;
      if (phases.over(record.barrier, record.phase)) {
        const Cycle over = phases.await({warp_index, s, record.barrier, record.phase});
        set_scoreboards(warp, in, std::max(checked, over), checked);
        if (warp.recorded != 0)
          context_.recorder->asks(warp.recorded, s, {0, warp.pc(), record.barrier, record.phase, now, over});
        return;
      }
      if (warp.recorded != 0)
        context_.recorder->asks(warp.recorded, s,
                                {0, warp.pc(), record.barrier, record.phase, now, BlockRecord::kOpen});
      ++warp.pending[s];
      warp.scoreboard_at[s] = std::max(warp.scoreboard_at[s], checked);
      mark_scoreboard(warp, in, s);
      phases.await({warp_index, s, record.barrier, record.phase});
      return;
    }
    case PhaseRecord::Action::None:
    case PhaseRecord::Action::Check:
    case PhaseRecord::Action::Invalidate:
      break;
  }
  set_scoreboards(warp, in, checked, checked);
}

/// Whether the copy at hand is one from the block's shared memory to the cluster's: nothing of it is in global memory.
bool Sm::sends_to_blocks(const Warp& warp, const Access& access) const {
  return blocks_[warp.block_slot].seat.blocks > 0 && context_.trace.patterns[access.pattern].lanes == 0 &&
         BoxTarget::of((&access)[1]).bytes > 0 &&
         context_.trace.kernel->instructions[warp.pc()].opcode == Opcode::UBLKCP;
}

void Sm::copy_box(Warp& warp, std::uint16_t warp_index, const TimedInstruction& in, Cycle now) {
  const Access& access = *warp.cursor.records();
  const Block& block = blocks_[warp.block_slot];
  const BoxTarget target = BoxTarget::of(warp.cursor.records()[1]);
  MemoryPipe::Box box;
  box.pattern = access.pattern;
  box.line_base = access.base / kLineBytes + static_cast<std::uint64_t>(block.shifts[access.slope]);
  box.request = context_.patterns.effect(access.pattern).request;
  box.counts = box.request == RequestKind::Read && !in.prefetch;
  box.owner = {.slot = warp.block_slot,
               .warp = warp_index,
               .group = 0,
               .block = block.linear,
               .barrier = target.barrier,
               .bytes = target.bytes,
               .blocks = block.seat.among(blocks_of(context_.trace.patterns[warp.cursor.records()[1].pattern])),
               .cluster = block.cluster,
               .recorded = 0,
               .number = 0};
  if (warp.recorded != 0 && target.bytes > 0) box.owner.recorded = record_copy(warp, box, in, now);
  box.arrival = now + static_cast<Cycle>(context_.gpu.async.box_start_cycles);
  if (sends_to_blocks(warp, access)) {
    PhaseRecord record;
    record.barrier = target.barrier;
    record.bytes = -static_cast<std::int32_t>(target.bytes);
    const unsigned blocks = box.owner.blocks != 0 ? box.owner.blocks : 1u << block.seat.rank;
    for (unsigned m = blocks; m != 0; m &= m - 1) {
      const auto rank = static_cast<std::size_t>(std::countr_zero(m));
      const Cycle there =
          network_->store(id_, network_->place(block.cluster, rank).sm, target.bytes, box.arrival).there;
      network_->complete(block.cluster, rank, record, std::max(there, now + 1));
      if (box.owner.recorded != 0) context_.recorder->copied(box.owner.recorded, there);
    }
  } else if (target.bytes > 0) {
    if (box.request != RequestKind::Read) box.owner.group = stored_boxes_.begin(warp_index);
    if (box.counts) box.owner.number = boxes_.ask();
    pipe_.push_box(box);
    pipe_next_ = std::min(pipe_next_, box.arrival);
  }
  set_scoreboards(warp, in, now + in.latency, now + static_cast<Cycle>(context_.gpu.latency.global_read_release));
}

/// UTMACMDFLUSH: the scoreboard that it names counts the warp's groups of boxes on their way out of shared memory.
void Sm::commit_boxes(Warp& warp, std::uint16_t warp_index, const TimedInstruction& in, Cycle now) {
  const std::uint8_t s = in.read_barrier != kNoScoreboard ? in.read_barrier : in.write_barrier;
  if (s != kNoScoreboard) {
    // A scoreboard counts no more: what was sent counts with the next group.
    if (warp.pending[s] + 2u >= CopyGroups::kMostGroups) return;
    ++warp.pending[s];
    warp.long_mask = static_cast<std::uint8_t>(warp.long_mask | 1u << s);
  }
  const std::uint8_t group = stored_boxes_.begin(warp_index);
  stored_boxes_.commit(warp_index, s);
  stored_boxes_.done(warp_index, group, now, [&](std::uint8_t scoreboard, Cycle at) {
    release_scoreboard(warp, warp_index, scoreboard, at, now);
  });
}

/// Goes to the tensor pipe behind what its sub-partition has given it; the warp goes on. Returns when its sums are
/// there if nothing holds it up.
Cycle Sm::multiply_group(SubPartition& sub, Warp& warp, const TimedInstruction& in, Cycle now) {
  const GroupProducts::Number number = sub.products.push(in.slabs, now);
  const Cycle done = sub.products.done(number);
  sub.pipe_free[static_cast<std::size_t>(in.pipe)] = done;
  sub.pipe_cycles[static_cast<std::size_t>(in.pipe)] += in.interval;
  if (in.commits) warp.groups[warp.group_count++ % warp.groups.size()] = number;
  if (warp.recorded != 0) context_.recorder->product(warp.recorded, warp.pc(), number, in.commits, now);
  return done + static_cast<Cycle>(context_.gpu.async.product_result_cycles);
}

/// A fence that waits for nothing more. The SM's fences follow one another; those of all kinds of accesses take their
/// time beside each other.
void Sm::pass_fence(Warp& warp, Cycle at) {
  const IssueSpec& issue = context_.gpu.issue;
  const bool stores = warp.fences_stores;
  warp.fixed_at = std::max(at, warp.remote_at);
  if (stores || !warp.fences_all) {
    const Cycle start = std::max(membar_free_, warp.fixed_at);
    membar_free_ = start + static_cast<Cycle>(stores ? issue.membar_gpu_interval : issue.membar_cta_interval);
    warp.fixed_at = start + static_cast<Cycle>(stores ? issue.membar_gpu_cycles : issue.membar_cta_cycles);
  }
  if (warp.fences_all)
    warp.fixed_at = std::max(warp.fixed_at, warp.issued + static_cast<Cycle>(context_.gpu.cluster.fence_cycles));
  warp.fixed_reason = Stall::Membar;
  warp.held_before = subs_[warp.sub_partition].held;
}

/// What a fence may wait for comes at `at`.
void Sm::end_fence(Warp& warp, Cycle at, Cycle now) {
  if (!warp.wants_fence || fence_waits(warp)) return;
  warp.wants_fence = false;
  --fences_waiting_;
  pipe_.fence(-1);
  pass_fence(warp, at);
  evaluate(warp, now);
}

void Sm::end_fences(Cycle at, Cycle now) {
  fence_needs_ = ~std::uint64_t{0};
  for (Warp& warp : warps_) {
    end_fence(warp, at, now);
    if (warp.wants_fence && stores_acknowledged_ < warp.stores_before)
      fence_needs_ = std::min(fence_needs_, warp.stores_before);
  }
}

/// A warp goes once the memory pipe has taken its instructions, and what is on its way to its registers has come.
void Sm::retire(Warp& warp, Cycle now) {
  const auto index = index_of(warp);
  if (warp.queued > 0 || warp.awaits_data() || !copies_.idle(index) || !stored_boxes_.idle(index)) {
    warp.draining = true;
    warp.fixed_at = kNever;
    subs_[warp.sub_partition].ready[warp.slot] = kNever;
    return;
  }
  Block& block = blocks_[warp.block_slot];
  SubPartition& sub = subs_[warp.sub_partition];
  const IssueSpec& issue = context_.gpu.issue;
  const Cycle end = now + static_cast<Cycle>(issue.exit_cycles);
  warp.alive = false;
  sub.ready[warp.slot] = kNever;
  sub.live_mask &= ~(1u << warp.slot);
  if (--sub.live == 0) sub.active_cycles += end - sub.active_since;
  if (sub.last == warp.slot) sub.last = -1;
  sub.turns.leave(warp.slot);
  sub.feed.leave(warp.slot);
  warp_cycles_ += end - warp.placed;
  // As after any branch, the way on is found first; only then the warp drains (kernels/micro launch: of the warps of an
  // empty block 6 cycles wait, 8 branch_resolving, 16 drain).
  const Cycle waited = std::min<Cycle>(end - (warp.issued + 1), context_.program[warp.pc()].stall);
  const Cycle resolved = std::min<Cycle>(end - (warp.issued + 1) - waited, static_cast<Cycle>(issue.branch_cycles));
  stalls_[static_cast<std::size_t>(Stall::Wait)] += waited;
  stalls_[static_cast<std::size_t>(Stall::BranchResolving)] += resolved;
  stalls_[static_cast<std::size_t>(Stall::Drain)] += end - (warp.issued + 1) - waited - resolved;
  if (warp.recorded != 0) record_end(warp, waited, resolved, end);
  if (block.seat.blocks > 0) {
    network_->exit(block.cluster, warp.cluster_arrivals > network_->phases(block.cluster), now);
    if (block.live_warps == 1) network_->end(block.cluster, block.seat.rank);
  }
  if (--block.live_warps > 0) {
    for (int id = 0; id < static_cast<int>(block.barriers.size()); ++id)
      if (block.barriers[static_cast<std::size_t>(id)].arrived > 0) release_barrier_if_full(block, id, now);
    return;
  }
  block.used = false;
  if (--resident_ == 0) active_cycles_ += end - active_since_;
  if (block.recorded != 0) context_.recorder->end_block(block.recorded, end);
  finished_->push_back({block.linear, block.start, end});
}

void Sm::collect(Cycle now, TimingCounters& out) const {
  out.instructions_issued += issued_;
  out.sm_active_cycles += active_cycles_ + (resident_ > 0 ? now - active_since_ : 0);
  out.warp_cycles += warp_cycles_;
  for (const Warp& warp : warps_)
    if (warp.alive && now > warp.placed) out.warp_cycles += now - warp.placed;
  for (std::size_t r = 0; r < kStallReasons; ++r) out.stalls[r] += stalls_[r];
  for (const SubPartition& sub : subs_) {
    out.issue_active_cycles += sub.issue_cycles;
    out.smsp_active_cycles += sub.active_cycles + (sub.live > 0 ? now - sub.active_since : 0);
    for (std::size_t p = 0; p < sub.pipe_cycles.size(); ++p) out.pipe_cycles[p] += sub.pipe_cycles[p];
  }
  const MemoryPipeCounters& pipe = pipe_.counters();
  out.l1_load_sectors += pipe.load_sectors;
  out.l1_load_hit_sectors += pipe.load_hit_sectors;
  out.l1_store_sectors += pipe.store_sectors;
  out.l1_store_hit_sectors += pipe.store_hit_sectors;
  out.l1_tag_lookups += pipe.tag_lookups;
  out.l1_data_wavefronts += pipe.data_wavefronts;
  out.shared_wavefronts += pipe.shared_wavefronts;
  out.l1_data_cycles += pipe.data_cycles;
  out.icache_l0_misses += icache_.l0_misses;
  out.icache_l1_misses += icache_.l1_misses;
  out.icache_l2_misses += icache_.l2_misses;
}

int Sm::live_warps() const {
  int live = 0;
  for (const SubPartition& sub : subs_) live += sub.live;
  return live;
}

ResidentBlock Sm::resident_in(std::uint16_t slot) const {
  const Block& block = blocks_[slot];
  return {block.linear, slot, block.warps, block.shifts, block.seat.blocks > 0 ? block.seat.cluster : block.linear};
}

std::string Sm::describe_wait(Cycle now) const {
  std::string text;
  for (std::size_t w = 0; w < warps_.size(); ++w) {
    const Warp& warp = warps_[w];
    if (!warp.alive) continue;
    text +=
        "  SM " + std::to_string(id_) + " warp " + std::to_string(w) + " at instruction " + std::to_string(warp.pc());
    if (warp.barrier != kNoBarrier)
      text += ": barrier " + std::to_string(warp.barrier);
    else if (warp.waits_cluster)
      text += ": the cluster's barrier";
    else if (warp.draining)
      text += ": its memory instructions, after EXIT";
    else if (warp.wants_fence)
      text += ": its stores, at a fence";
    else if (subs_[warp.sub_partition].ready[warp.slot] == kNever)
      text += ": a scoreboard";
    else
      text +=
          ": ready at " + std::to_string(subs_[warp.sub_partition].ready[warp.slot]) + ", now " + std::to_string(now);
    text += "\n";
  }
  return text;
}

}  // namespace forewarp
