#include "timing/sm/memory_pipe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace forewarp {

MemoryPipe::MemoryPipe(const GpuModel& gpu, std::uint16_t sm, std::uint32_t l1_bytes, const CoalescedPatterns& patterns,
                       std::span<const PatternTiming> timing)
    : gpu_(gpu),
      patterns_(patterns),
      timing_(timing),
      l1_(l1_bytes, gpu.l1.ways),
      sm_(sm),
      lead_(static_cast<Cycle>(gpu.memory_pipe.lead_cycles)),
      requests_per_cycle_(static_cast<std::uint32_t>(std::max(1, gpu.crossbar.sm_requests_per_cycle_x16 / 16))) {
  // What a sub-partition can have queued, and no more: a ring is walked through all the time.
  const std::uint32_t places = std::bit_ceil(static_cast<std::uint32_t>(gpu.memory_pipe.queue_entries + 1));
  queue_mask_ = places - 1;
  queues_.resize(static_cast<std::size_t>(gpu.issue.sub_partitions));
  for (Queue& queue : queues_) queue.entries.resize(places);
  const std::uint32_t shared = std::bit_ceil(static_cast<std::uint32_t>(gpu.memory_pipe.shared_queue_entries));
  taken_.resize(shared);
  taken_mask_ = shared - 1;
  out_.resize(std::bit_ceil(static_cast<std::uint32_t>(gpu.l1.out_requests)));
  for (std::size_t s = 0; s < queues_.size(); ++s) turns_.push_back(static_cast<std::uint8_t>(s));
  // Without banks the lines of all are held together.
  const bool banked = !gpu.l1.tag_bank_masks.empty();
  held_places_.resize(std::size_t{1} << gpu.l1.tag_bank_masks.size());
  places_of_bank_ = static_cast<std::uint32_t>(gpu.l1.store_bank_lines * (banked ? 1 : gpu.l1.tags_per_cycle));
  held_.resize(std::bit_ceil(std::max<std::size_t>(1, places_of_bank_ * held_places_.size())));
  held_mask_ = static_cast<std::uint32_t>(held_.size()) - 1;
}

void MemoryPipe::line_up(const MemoryRequest& request) {
  const auto places = static_cast<std::uint32_t>(out_.size());
  if (out_tail_ - out_head_ == places) {  // reads that wait at their misses can be many, and seldom are
    std::vector<MemoryRequest> wider(std::size_t{2} * places);
    for (std::uint32_t at = out_head_; at != out_tail_; ++at) wider[at & (2 * places - 1)] = out_[at & (places - 1)];
    out_ = std::move(wider);
  }
  out_[out_tail_++ & (out_.size() - 1)] = request;
}

void MemoryPipe::release_registers(const MemoryOperation& operation, Cycle now, std::vector<Release>& releases) {
  const TimedInstruction& in = *operation.instruction;
  if (in.read_barrier == kNoScoreboard) return;
  const int sources =
      in.space == MemorySpace::Shared ? gpu_.latency.shared_store_read : gpu_.latency.global_read_release;
  const Cycle after = static_cast<Cycle>(sources) > lead_ ? static_cast<Cycle>(sources) - lead_ : 1;
  releases.push_back({Release::Kind::Read, operation.warp, in.read_barrier, now + after});
}

void MemoryPipe::serve_shuffle(const MemoryOperation& operation, Cycle now, std::vector<Release>& releases) {
  serve_free_ = now + static_cast<Cycle>(gpu_.memory_pipe.shuffle_interval);
  if (operation.instruction->write_barrier != kNoScoreboard)
    releases.push_back({Release::Kind::Write, operation.warp, operation.instruction->write_barrier,
                        now + static_cast<Cycle>(gpu_.latency.shuffle) - lead_});
}

/// Wavefronts of a warp's store or atomic follow each other at some distance; other warps' go in between.
Cycle MemoryPipe::turn_at_banks(const MemoryOperation& operation, int wavefronts, Cycle now) {
  const Cycle start = std::max(data_free_, now);
  if (wavefronts <= 1) return start;
  if (operation.warp >= warp_banks_free_.size()) warp_banks_free_.resize(operation.warp + 1u);
  Cycle& free = warp_banks_free_[operation.warp];
  const Cycle turn = std::max(start, free);
  free = turn + static_cast<Cycle>(wavefronts) * static_cast<Cycle>(gpu_.memory_pipe.warp_wavefront_cycles);
  return turn;
}

void MemoryPipe::serve_shared(const MemoryOperation& operation, Cycle now, std::vector<Release>& releases) {
  const TimedInstruction& in = *operation.instruction;
  const int wavefronts =
      (operation.remote != 0 ? operation.own_wavefronts : timing_[operation.pattern].wavefronts) * in.wavefront_factor;
  const Cycle busy = static_cast<Cycle>(wavefronts) * static_cast<Cycle>(gpu_.memory_pipe.shared_wavefront_cycles);
  const Cycle start = turn_at_banks(operation, in.memory == MemoryKind::Load ? 1 : wavefronts, now);
  data_free_ = start + busy;
  serve_free_ = now + static_cast<Cycle>(gpu_.memory_pipe.lsu_interval);
  counters_.shared_wavefronts += static_cast<std::uint64_t>(wavefronts);
  counters_.data_cycles += busy;
  if (operation.remote != 0) {
    Release release;
    release.kind = Release::Kind::Remote;
    release.warp = operation.warp;
    release.scoreboard = in.write_barrier;
    release.at = start + busy;
    release.generation = operation.generation;
    release.remote = operation.remote;
    releases.push_back(release);
    return;
  }
  if (in.memory != MemoryKind::Load && in.memory != MemoryKind::Atomic) return;
  Cycle& port = queues_[operation.sub_partition].port_free;
  const Cycle returns = std::max(start, port);
  port = returns + static_cast<Cycle>(wavefronts) * static_cast<Cycle>(gpu_.memory_pipe.port_wavefront_cycles);
  if (in.write_barrier == kNoScoreboard) return;
  const int base = in.memory == MemoryKind::Load ? gpu_.latency.shared_load : gpu_.latency.shared_atomic;
  const Cycle extra = further_latency(wavefronts, in.wide);
  releases.push_back(
      {Release::Kind::Write, operation.warp, in.write_barrier, returns + static_cast<Cycle>(base) - lead_ + extra});
}

/// What a load takes longer than one of a single wavefront. Wide ones take longer only where they need more wavefronts
/// (kernels/micro shared: LDS.128 of one place 3 cycles more than LDS.32, of 512 bytes 9).
Cycle MemoryPipe::further_latency(int wavefronts, int wide) const {
  const MemoryPipeSpec& spec = gpu_.memory_pipe;
  const int further = std::max(0, wavefronts - 1);
  return static_cast<Cycle>(further * spec.shared_conflict_latency + std::min(further, wide) * spec.wide_latency);
}

void MemoryPipe::request_sectors(const MemoryOperation& operation, std::uint64_t line, std::uint8_t sectors,
                                 L1Cache::Line* cached, const LineSectors& part) {
  std::uint32_t index;
  if (cached != nullptr && cached->miss != L1Cache::kNoMiss) {
    index = cached->miss;
  } else {
    index = misses_.take();
    ++miss_lines_;
    misses_[index].line = line;
    misses_[index].fills = cached != nullptr;
    if (cached != nullptr) cached->miss = static_cast<std::uint16_t>(index);
  }
  Miss& miss = misses_[index];
  const auto fresh = static_cast<std::uint8_t>(sectors & ~miss.pending);
  if (fresh != 0) {
    miss.pending = static_cast<std::uint8_t>(miss.pending | fresh);
    MemoryRequest request;
    request.line = line;
    request.tag = index;
    request.sm = sm_;
    request.sectors = fresh;
    request.kind = operation.effect.request;
    request.bytes = part.bytes;
    request.fetch = part.fetch;
    request.rounds = timing_[operation.pattern].rounds;
    request.value_bytes = timing_[operation.pattern].value_bytes;
    line_up(request);
  }
  const std::uint32_t waiter = waiters_.take();
  waiters_[waiter] = {current_load_, miss.waiters, sectors};
  miss.waiters = waiter;
  ++loads_[current_load_].waiting;
}

bool MemoryPipe::load_line(const MemoryOperation& operation, std::uint64_t line, const LineSectors& part) {
  const std::uint8_t sectors = part.sectors;
  const bool bypass = operation.instruction->bypass_l1;
  L1Cache::Line* cached = bypass ? nullptr : l1_.find(line);
  const std::uint8_t present = cached != nullptr ? cached->present : 0;
  const auto missing = static_cast<std::uint8_t>(sectors & ~present);
  if (missing != 0) {
    const bool starts_miss = cached == nullptr || cached->miss == L1Cache::kNoMiss;
    if (starts_miss && lines_full()) return false;
    if (cached == nullptr && !bypass) cached = l1_.allocate(line);
    request_sectors(operation, line, missing, cached, part);
  }
  ++counters_.tag_lookups;
  counters_.load_sectors += static_cast<unsigned>(std::popcount(sectors));
  counters_.load_hit_sectors += static_cast<unsigned>(std::popcount(static_cast<std::uint8_t>(sectors & present)));
  return true;
}

/// Its wavefronts come one by one; those of sub-partitions that store at the same time come in between. Its tags take a
/// pass a cycle.
void MemoryPipe::begin_store(const MemoryOperation& store, Cycle now) {
  const Cycle wavefronts = std::max<Cycle>(timing_[store.pattern].wavefronts, 1);
  const auto passes = static_cast<Cycle>(
      std::count_if(order_.begin(), order_.end(), [](std::uint8_t place) { return (place & kLastOfPass) != 0; }));
  store_began_ = now;
  stores_idle_ += now - std::min(now, stores_until_);
  const Cycle after_first = (wavefronts - 1) * static_cast<Cycle>(gpu_.l1.store_wavefront_cycles);
  stores_until_ = std::max(stores_until_, now + std::max(1 + after_first, passes));
}

/// Adds a store to one of the same line that has not left yet.
bool MemoryPipe::merge_store(const MemoryRequest& store) {
  for (std::uint32_t i = held_tail_; i-- != held_head_;) {
    HeldStore& entry = held_[i & held_mask_];
    MemoryRequest& held = entry.request;
    if (held.line != store.line) continue;
    entry.idle = stores_idle_;
    held.sectors = static_cast<std::uint8_t>(held.sectors | store.sectors);
    const int whole = kSectorBytes * std::popcount(unsigned{held.sectors});
    held.bytes = static_cast<std::uint8_t>(std::min(held.bytes + store.bytes, whole));
    held.full_sectors = held.bytes == whole;
    held.masked = held.masked || store.masked;
    return true;
  }
  return false;
}

/// False: no room, nothing was done.
bool MemoryPipe::store_line(const MemoryOperation& operation, std::uint64_t line, const LineSectors& part, Cycle now,
                            std::vector<Release>& releases) {
  const bool reduction = operation.effect.request == RequestKind::Reduction;
  const std::uint8_t sectors = part.sectors;
  MemoryRequest request;
  request.line = line;
  request.tag = kStoreTag | (std::uint32_t{operation.generation} & 0x7fffu) << 16 | operation.warp;
  request.sm = sm_;
  request.sectors = sectors;
  request.kind = operation.effect.request;
  request.rounds = timing_[operation.pattern].rounds;
  request.value_bytes = timing_[operation.pattern].value_bytes;
  request.full_sectors = part.whole_sectors();
  request.masked = !request.full_sectors;
  request.bytes = part.bytes;
  const bool holds = !reduction && places_of_bank_ > 0;
  const bool merged = holds && merge_store(request);
  const std::size_t bank = store_bank(line);
  const std::uint32_t places = places_of(request);
  if (holds && !merged && !has_room(bank, places)) {
    places_wanted_ = places;
    bank_wanted_ = bank;
    return false;
  }
  L1Cache::Line* cached = l1_.find(line);
  ++counters_.tag_lookups;
  if (reduction) {
    if (cached != nullptr) cached->present = static_cast<std::uint8_t>(cached->present & ~sectors);
  } else {
    counters_.store_sectors += static_cast<unsigned>(std::popcount(sectors));
    if (cached != nullptr) counters_.store_hit_sectors += static_cast<unsigned>(std::popcount(sectors));
    if (cached == nullptr) cached = l1_.allocate(line);
    if (cached != nullptr && request.full_sectors)
      cached->present = static_cast<std::uint8_t>(cached->present | sectors);
  }
  if (merged) {
    releases.push_back({Release::Kind::StoreAcknowledged, operation.warp, kNoScoreboard, now + 1,
                        static_cast<std::uint16_t>(operation.generation & 0x7fffu)});
    return true;
  }
  ++stores_in_flight_;
  if (holds) {
    held_[held_tail_++ & held_mask_] = {request, bank, stores_idle_};
    held_places_[bank] += places;
  } else {
    line_up(request);
  }
  return true;
}

bool MemoryPipe::atomic_line(const MemoryOperation& operation, std::uint64_t line, const LineSectors& part) {
  if (lines_full()) return false;
  if (L1Cache::Line* cached = l1_.find(line); cached != nullptr)
    cached->present = static_cast<std::uint8_t>(cached->present & ~part.sectors);
  ++counters_.tag_lookups;
  request_sectors(operation, line, part.sectors, nullptr, part);
  return true;
}

void MemoryPipe::touch(std::uint64_t line, std::uint8_t sectors, RequestKind kind, bool whole) {
  L1Cache::Line* cached = l1_.find(line);
  if (kind == RequestKind::Atomic || kind == RequestKind::Reduction) {
    if (cached != nullptr) cached->present = static_cast<std::uint8_t>(cached->present & ~sectors);
    return;
  }
  if (cached == nullptr) cached = l1_.allocate(line);
  if (cached != nullptr && (kind == RequestKind::Read || whole))
    cached->present = static_cast<std::uint8_t>(cached->present | sectors);
}

/// Bank of L1's tags in which the i-th line of an access is looked up.
std::size_t MemoryPipe::tag_bank(std::uint64_t line, std::size_t i) const {
  if (gpu_.l1.tag_bank_masks.empty()) return i % static_cast<std::size_t>(gpu_.l1.tags_per_cycle);
  std::size_t bank = 0;
  for (std::size_t k = 0; k < gpu_.l1.tag_bank_masks.size(); ++k) {
    const auto mask = static_cast<std::uint64_t>(gpu_.l1.tag_bank_masks[k]);
    bank |= static_cast<std::size_t>(std::popcount(line * kLineBytes & mask) & 1) << k;
  }
  return bank;
}

/// Bank of the store buffer that holds a line.
std::size_t MemoryPipe::store_bank(std::uint64_t line) const {
  return gpu_.l1.tag_bank_masks.empty() ? 0 : tag_bank(line, 0);
}

/// Lines of a store are looked up in their order: a pass ends where the next one's bank is taken.
void MemoryPipe::order_stores(std::span<const LineSectors> lines, std::uint64_t base) {
  order_.clear();
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint64_t line = base + static_cast<std::uint64_t>(std::int64_t{lines[i].line});
    const std::uint64_t bank = std::uint64_t{1} << tag_bank(line, i);
    if ((used & bank) != 0) {
      order_.back() |= kLastOfPass;
      used = 0;
    }
    used |= bank;
    order_.push_back(static_cast<std::uint8_t>(i));
  }
  if (!order_.empty()) order_.back() |= kLastOfPass;
}

/// The passes of the tag stage: each takes at most one line of each bank.
void MemoryPipe::order_lines(std::span<const LineSectors> lines, std::uint64_t base) {
  constexpr std::size_t kMostLines = 64;
  constexpr std::size_t kMostBanks = 64;
  FW_CHECK(lines.size() <= kMostLines, "an access of more lines than lanes can make");
  order_.clear();
  std::uint8_t pass_of[kMostLines];
  std::uint8_t used[kMostBanks] = {};
  std::uint8_t passes = 0;
  bool twice = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // A copy may ask twice for a line that it looks up once (coalesce.cpp, ask_by_pairs).
    twice = i > 0 && !twice && lines[i].line == lines[i - 1].line;
    if (twice) {
      pass_of[i] = pass_of[i - 1];
      continue;
    }
    const std::uint64_t line = base + static_cast<std::uint64_t>(std::int64_t{lines[i].line});
    const std::size_t bank = tag_bank(line, i);
    l1_.prefetch(line);
    pass_of[i] = used[bank]++;
    passes = std::max(passes, used[bank]);
  }
  for (std::uint8_t pass = 0; pass < passes; ++pass) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (pass_of[i] == pass) order_.push_back(static_cast<std::uint8_t>(i));
    }
    order_.back() |= kLastOfPass;
  }
}

void MemoryPipe::open_load(const MemoryOperation& operation) {
  const TimedInstruction& in = *operation.instruction;
  current_load_ = loads_.take();
  ++live_loads_;
  Load& load = loads_[current_load_];
  load.warp = operation.warp;
  load.open = true;
  if (in.path == Path::Copy) {
    // Data that come by way of L1 pass the banks once more than they are written, also when zeros are written instead
    // (kernels/micro copy_async: 2.6 cycles a copy of 4 bytes a lane, 3.7 of 8, 5.2 of 16, past L1 4.3).
    load.owner = Owner::Copy;
    load.group = operation.group;
    load.past_l1 = in.bypass_l1;
    load.wavefronts = in.bypass_l1 ? 0 : 1;
    load.written = timing_[operation.target].wavefronts;
    return;
  }
  load.scoreboard = in.write_barrier;
  load.wavefronts = timing_[operation.pattern].wavefronts;
  load.wide = in.wide;
}

/// Looks up a pass of the head operation's lines; true once all are done.
bool MemoryPipe::serve_lines(const MemoryOperation& operation, Cycle now, std::vector<Release>& releases) {
  const auto lines = patterns_.lines(operation.pattern);
  const RequestKind request = operation.effect.request;
  const bool returns = operation.effect.returns_data();
  if (returns && current_load_ == kNone) {
    if (loads_full()) return false;
    open_load(operation);
  }
  if (next_line_ == 0) {
    if (request == RequestKind::Write)
      order_stores(lines, operation.line_base);
    else
      order_lines(lines, operation.line_base);
  }
  const std::uint32_t sent = out_tail_;
  for (bool last = false; next_line_ < order_.size() && !last; ++next_line_) {
    if (out_full(request)) return false;
    const LineSectors& part = lines[order_[next_line_] & ~kLastOfPass];
    last = (order_[next_line_] & kLastOfPass) != 0;
    const std::uint64_t line = operation.line_base + static_cast<std::uint64_t>(std::int64_t{part.line});
    if (request == RequestKind::Read) {
      if (!load_line(operation, line, part)) return false;
      last = last || out_tail_ - sent >= requests_per_cycle_;
    } else if (request == RequestKind::Atomic) {
      if (!atomic_line(operation, line, part)) return false;
    } else {
      if (next_line_ == 0) begin_store(operation, now);
      if (!store_line(operation, line, part, now, releases)) return false;
    }
  }
  if (next_line_ < lines.size()) return false;
  if (returns) {
    loads_[current_load_].open = false;
    if (loads_[current_load_].waiting == 0) finish(current_load_, now, releases);
    current_load_ = kNone;
  } else {
    const std::uint16_t wavefronts = timing_[operation.pattern].wavefronts;
    const bool stores = operation.effect.request == RequestKind::Write;
    data_free_ = turn_at_banks(operation, stores ? wavefronts : 1, now) + wavefronts;
    counters_.data_wavefronts += wavefronts;
    counters_.data_cycles += wavefronts;
  }
  next_line_ = 0;
  return true;
}

bool MemoryPipe::serve(const MemoryOperation& operation, Cycle now, std::vector<Release>& releases) {
  if (operation.instruction->path == Path::Shuffle) {
    serve_shuffle(operation, now, releases);
    return true;
  }
  if (operation.instruction->path == Path::CopyCommit) {
    serve_free_ = now + static_cast<Cycle>(gpu_.memory_pipe.lsu_interval);
    releases.push_back({Release::Kind::Copied, operation.warp, kNoScoreboard, now, 0, false, operation.group});
    return true;
  }
  if (!operation.effect.to_lines()) {
    serve_shared(operation, now, releases);
    return true;
  }
  if (!serve_lines(operation, now, releases)) return false;
  serve_free_ = now + static_cast<Cycle>(gpu_.memory_pipe.lsu_interval);
  if (operation.effect.request == RequestKind::Write)
    serve_free_ = std::max(serve_free_, store_began_ + static_cast<Cycle>(gpu_.l1.store_wavefront_cycles));
  return true;
}

/// All sectors of a load are here: through the banks and into the registers.
void MemoryPipe::finish(std::uint32_t index, Cycle now, std::vector<Release>& releases) {
  Load& load = loads_[index];
  if (load.owner >= Owner::Box) {
    Release release;
    release.kind = load.owner == Owner::Box ? Release::Kind::Boxed : Release::Kind::BoxStored;
    release.warp = load.box.warp;
    release.at = now;
    release.box = load.box;
    release.fanned_at = load.fanned_at;
    if (load.owner != Owner::Prefetch) releases.push_back(release);
    loads_.give(index);
    --live_boxes_;
    return;
  }
  // A copy past L1 writes what L2 sends beside what others read; one that L1 holds reads it and stores it.
  const int write = load.past_l1 ? gpu_.memory_pipe.fill_wavefront_cycles : gpu_.memory_pipe.shared_wavefront_cycles;
  const Cycle busy = load.wavefronts + static_cast<Cycle>(load.written) * static_cast<Cycle>(write);
  const Cycle start = busy > 0 ? std::max(data_free_, now) : now;
  if (busy > 0) data_free_ = start + busy;
  counters_.data_wavefronts += load.wavefronts;
  counters_.shared_wavefronts += load.written;
  counters_.data_cycles += busy;
  const Cycle extra = further_latency(load.wavefronts, load.wide);
  if (load.owner == Owner::Copy)
    releases.push_back({Release::Kind::Copied, load.warp, kNoScoreboard, start + std::max<Cycle>(busy, load.written), 0,
                        false, load.group});
  else if (load.scoreboard != kNoScoreboard)
    releases.push_back({Release::Kind::Write, load.warp, load.scoreboard,
                        start + static_cast<Cycle>(gpu_.l1.hit_cycles) - lead_ + extra});
  loads_.give(index);
  --live_loads_;
}

void MemoryPipe::request_of_box(const Box& box, std::uint64_t line, const LineSectors& part) {
  const std::uint8_t sectors = part.sectors;
  const std::uint32_t index = misses_.take();
  Miss& miss = misses_[index];
  miss.line = line;
  miss.boxed = true;
  miss.sends = box.request != RequestKind::Read;
  stores_in_flight_ += miss.sends ? 1 : 0;
  miss.pending = sectors;
  MemoryRequest request;
  request.line = line;
  request.tag = index;
  request.sm = sm_;
  request.sectors = sectors;
  request.kind = box.request;
  request.value_bytes = kSectorBytes;
  request.full_sectors = part.whole_sectors();
  request.masked = !request.full_sectors;
  request.bytes = part.bytes;
  line_up(request);
  const std::uint32_t waiter = waiters_.take();
  waiters_[waiter] = {box.load, kNone, sectors};
  misses_[index].waiters = waiter;
  ++loads_[box.load].waiting;
}

void MemoryPipe::open_box(Box& box) {
  box.load = loads_.take();
  ++live_boxes_;
  Load& load = loads_[box.load];
  load.owner = box.request != RequestKind::Read ? Owner::StoredBox : box.counts ? Owner::Box : Owner::Prefetch;
  load.open = true;
  load.box = box.owner;
}

/// One line after another, one box after another. A line that leaves shared memory passes the banks.
Cycle MemoryPipe::serve_boxes(Cycle now, std::vector<Release>& releases) {
  while (boxes_head_ < boxes_.size()) {
    Box& box = boxes_[boxes_head_];
    if (box.arrival > now) return box.arrival;
    if (box.load == kNone) open_box(box);
    const auto lines = patterns_.lines(box.pattern);
    for (; box.next < lines.size(); ++box.next) {
      if (box_free_x16_ >= (now + 1) * 16) return box_free_x16_ / 16;
      if (out_full(RequestKind::Write)) return kNever;  // send() says when there is room
      const LineSectors& part = lines[box.next];
      request_of_box(box, box.line_base + static_cast<std::uint64_t>(std::int64_t{part.line}), part);
      if (box.request != RequestKind::Read) {
        data_free_ = std::max(data_free_, now) + static_cast<Cycle>(gpu_.memory_pipe.shared_wavefront_cycles);
        counters_.data_cycles += static_cast<std::uint64_t>(gpu_.memory_pipe.shared_wavefront_cycles);
      }
      box_free_x16_ = std::max(box_free_x16_, now * 16) + static_cast<Cycle>(gpu_.async.box_line_x16);
    }
    Load& load = loads_[box.load];
    load.open = false;
    if (load.waiting == 0) finish(box.load, now, releases);
    if (++boxes_head_ == boxes_.size()) {
      boxes_.clear();
      boxes_head_ = 0;
    }
  }
  return kNever;
}

void MemoryPipe::reply(const MemoryReply& reply, Cycle now, std::vector<Release>& releases) {
  if ((reply.tag & kStoreTag) != 0) {
    --stores_in_flight_;
    releases.push_back({Release::Kind::StoreAcknowledged, static_cast<std::uint16_t>(reply.tag & 0xffff), kNoScoreboard,
                        now, static_cast<std::uint16_t>(reply.tag >> 16 & 0x7fff)});
    return;
  }
  Miss& miss = misses_[reply.tag];
  const auto arrived = static_cast<std::uint8_t>(reply.sectors & miss.pending);
  miss.pending = static_cast<std::uint8_t>(miss.pending & ~arrived);
  L1Cache::Line* cached = miss.fills ? l1_.find(miss.line) : nullptr;
  if (cached != nullptr) cached->present = static_cast<std::uint8_t>(cached->present | arrived);
  for (std::uint32_t* link = &miss.waiters; *link != kNone;) {
    Waiter& waiter = waiters_[*link];
    waiter.sectors = static_cast<std::uint8_t>(waiter.sectors & ~arrived);
    if (waiter.sectors != 0) {
      link = &waiter.next;
      continue;
    }
    const std::uint32_t done = *link;
    *link = waiter.next;
    waiters_.give(done);
    Load& load = loads_[waiter.load];
    if (--load.waiting == 0 && !load.open) finish(waiter.load, now, releases);
  }
  if (miss.pending != 0) return;
  FW_CHECK(miss.waiters == kNone, "a load waits for sectors that nobody requested");
  if (cached != nullptr) cached->miss = L1Cache::kNoMiss;
  misses_.give(reply.tag);
  miss_lines_ -= miss.boxed ? 0 : 1;
  stores_in_flight_ -= miss.sends ? 1 : 0;
}

/// A line of a box has left shared memory. Who waits for that does not wait for L2 (kernels/micro box_store: to be read
/// and to be written take equally long, 85 cycles for 8 lines, less than the way to L2 and back).
void MemoryPipe::line_left(Miss& miss, Cycle now, std::vector<Release>& releases) {
  Waiter& waiter = waiters_[miss.waiters];
  waiters_.give(miss.waiters);
  miss.waiters = kNone;
  Load& load = loads_[waiter.load];
  if (--load.waiting == 0 && !load.open) finish(waiter.load, now, releases);
}

Cycle MemoryPipe::send(Cycle now, MemorySystem& memory, std::vector<Release>& releases) {
  const auto due = [&] {
    if (places_wanted_ > 0 || fences_ > 0) return Cycle{0};
    const Cycle idle = held_[held_head_ & held_mask_].idle + static_cast<Cycle>(gpu_.l1.store_wait_cycles);
    return stores_until_ + idle - std::min(idle, stores_idle_);
  };
  // Loads and stores that are both ready take turns.
  while (true) {
    const bool store = held_head_ != held_tail_ && due() <= now, other = out_head_ != out_tail_;
    if (!store && !other) return held_head_ == held_tail_ ? kNever : due();
    if (!memory.accepts(sm_, now)) return retry(now, memory);
    store_was_last_ = store && (!other || !store_was_last_);
    if (!store_was_last_) {
      const MemoryRequest& request = out_[out_head_++ & (out_.size() - 1)];
      memory.push(request, now);
      if ((request.tag & kStoreTag) == 0 && misses_[request.tag].sends) line_left(misses_[request.tag], now, releases);
      continue;
    }
    const HeldStore& oldest = held_[held_head_++ & held_mask_];
    memory.push(oldest.request, now);
    held_places_[oldest.bank] -= places_of(oldest.request);
    if (has_room(bank_wanted_, places_wanted_)) places_wanted_ = 0;
  }
}

/// When to offer the next request again; kNever: after a reply, with which this pipe is looked at in any case.
Cycle MemoryPipe::retry(Cycle now, const MemorySystem& memory) const {
  return std::max(now + 1, memory.accepts_again(sm_, now));
}

Cycle MemoryPipe::tick(Cycle now, MemorySystem& memory, std::vector<Release>& releases) {
  // 1. A memory instruction is taken, and the one taken first is served; it holds the pipe until all its lines are
  // looked up.
  Cycle next = take_next(now, releases);
  next = std::min(next, serve_next(now, releases));
  // 2. Requests leave for the crossbar, which makes room for new misses and stores.
  const bool waited = places_wanted_ > 0;
  next = std::min(next, serve_boxes(now, releases));
  const bool held = boxes_head_ < boxes_.size() && out_full(RequestKind::Write);
  next = std::min(next, send(now, memory, releases));
  if (held && !out_full(RequestKind::Write)) next = now + 1;
  return waited && places_wanted_ == 0 ? now + 1 : next;
}

Cycle MemoryPipe::first_arrival() const {
  Cycle first = kNever;
  for (const Queue& queue : queues_)
    if (queue.head != queue.tail) first = std::min(first, queue.entries[queue.head & queue_mask_].arrival);
  return first;
}

/// Of the sub-partitions whose next instruction has arrived, the one that was served longest ago is next (kernels/micro
/// barrier, release: of loads that three sub-partitions send at once and the fourth 2 cycles later, it is served before
/// the third if that was served after it the last time, and each order is the next one's start).
MemoryPipe::Queue* MemoryPipe::choose_queue(Cycle now) {
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    const std::uint8_t s = turns_[i];
    Queue& queue = queues_[s];
    if (queue.head == queue.tail || queue.entries[queue.head & queue_mask_].arrival > now) continue;
    for (; i + 1 < turns_.size(); ++i) turns_[i] = turns_[i + 1];
    turns_.back() = s;
    return &queue;
  }
  return nullptr;
}

/// Takes an instruction from a sub-partition's queue into the one that they share.
Cycle MemoryPipe::take_next(Cycle now, std::vector<Release>& releases) {
  if (waiting_ == 0 || taken_full()) return kNever;
  if (take_free_ > now) return std::max(take_free_, first_arrival());
  Queue* queue = choose_queue(now);
  if (queue == nullptr) return first_arrival();
  const MemoryOperation& operation = taken_[taken_tail_++ & taken_mask_] = queue->entries[queue->head++ & queue_mask_];
  --waiting_;
  const TimedInstruction& in = *operation.instruction;
  releases.push_back({Release::Kind::QueueSlot, operation.warp, kNoScoreboard, now, 0, in.long_wait});
  if (in.path != Path::Copy) release_registers(operation, now, releases);
  take_free_ = now + static_cast<Cycle>(gpu_.memory_pipe.lsu_interval);
  return waiting_ == 0 ? kNever : std::max(take_free_, first_arrival());
}

/// Serves the instruction that was taken first.
Cycle MemoryPipe::serve_next(Cycle now, std::vector<Release>& releases) {
  if (taken_head_ == taken_tail_) return kNever;
  const MemoryOperation& operation = taken_[taken_head_ & taken_mask_];
  const bool below = operation.effect.to_lines();
  const Cycle ahead = below ? static_cast<Cycle>(gpu_.memory_pipe.tags_ahead_cycles) : 0;
  Cycle free = std::max(serve_free_, data_free_ > ahead ? data_free_ - ahead : 0);
  if (operation.remote != 0) free = std::max(free, remote_free_);
  if (free > now) return free;
  if (below && out_full(operation.effect.request)) return kNever;  // send() says when there is room
  if (serve(operation, now, releases)) {
    // A copy keeps its addresses until it is served (validation/FINDINGS.md, Where warps of products by mma.sync wait).
    if (operation.instruction->path == Path::Copy) release_registers(operation, now, releases);
    const bool room = !taken_full();
    ++taken_head_;
    if (!room && waiting_ != 0) return now + 1;
    return taken_head_ == taken_tail_ ? kNever : std::max(serve_free_, now + 1);
  }
  // More lines of the same instruction, unless too much is in flight: then a reply wakes the pipe; or, of a store,
  // unless too much is held: tick() goes on when a line has left.
  const bool waits =
      operation.effect.returns_data() ? lines_full() || (current_load_ == kNone && loads_full()) : places_wanted_ > 0;
  return waits || out_full(operation.effect.request) ? kNever : now + 1;
}

}  // namespace forewarp
