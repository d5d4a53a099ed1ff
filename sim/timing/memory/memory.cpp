// The memory system's ports and its clock. The units (crossbar, slices, channels) keep state; memory_paths.cpp moves
// requests between them as events, which are dispatched here.
#include "timing/memory/memory.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "timing/memory/memory_state.h"

namespace forewarp {
namespace {

constexpr std::uint64_t kForeignLine = std::uint64_t{1} << 34;  ///< lines from here on belong to no launch

}  // namespace

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
  controller_out_ = std::max<Cycle>(1, controller / 2);
  controller_back_ = controller > controller_out_ ? controller - controller_out_ : 1;
  slice_flit_ = fine_cost(x.slice_write_bytes_per_cycle, kLineBytes) / static_cast<FineCycle>(crossbar_.line_flits());
  tag_cost_ = fine_cost(l2.slice_tags_per_cycle * l2.clock_ratio);
  data_cost_ = sector_cost(l2.slice_bytes_per_cycle * l2.clock_ratio);
  atomic_cost_ = fine_cost(l2.clock_ratio, l2.atomic_interval);
  sector_cost_ = fine_cost(l2.clock_ratio, 1);
  word_cost_ = fine_cost(l2.clock_ratio, l2.atomic_word_interval);
  slices_.reserve(static_cast<std::size_t>(l2.slices));
  for (int i = 0; i < l2.slices; ++i) slices_.emplace_back(geometry_, l2.coalescer_requests);
  const auto channels = static_cast<std::uint32_t>(model.hbm.channels);
  channels_.reserve(channels);
  for (std::uint32_t i = 0; i < channels; ++i) channels_.emplace_back(timings_, i, channels);
  groups_.resize((channels + kChannelGroup - 1) / kChannelGroup);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    groups_[g].first = g * kChannelGroup;
    groups_[g].next.assign(std::min(kChannelGroup, channels - groups_[g].first), kNever);
  }
  posted_.assign(static_cast<std::size_t>(model.chip.sm_count), 0);
  sm_write_flits_ = x.sm_write_flits;
  cpc_fabric_writes_ = x.cpc_fabric_writes;
  cpc_reads_ = x.cpc_reads;
  ports_.resize(model.chip.tpcs_per_gpc.size());
  cpcs_ = model.chip.tpcs_per_gpc.size() * static_cast<std::size_t>(model.chip.cpcs_per_gpc);
  at_fabric_.resize(2 * cpcs_);
  held_up_.resize(cpcs_);
  at_slices_.resize(slices_.size() * cpcs_);
  reads_.resize(cpcs_);
  round_trip_ = request_cycles_ + hit_cycles_ + response_cycles_ + far_out_ + far_back_;
  if (start == L2Start::Empty) return;
  // What a profiler's flush leaves in the caches: lines of no buffer of the kernel.
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

// ---- Ports ----------------------------------------------------------------------------------------------------------

void MemorySystem::State::push(const MemoryRequest& request, Cycle now) {
  posted_[request.sm] += flits(crossbar_, request);
  const Cycle leaves = crossbar_.send(request.sm, port_sectors(request), now);
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
  r.at_once = request.fetch;
  r.flits = static_cast<std::uint8_t>(flits(crossbar_, request));
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
    r.leaves = crossbar_.leaves_gpc(r.sm, sent.leaves);
    send_read(id);
    return;
  }
  if (r.kind == RequestKind::Write) {
    ++counters_.write_requests;
    counters_.write_sectors += sectors;
  } else {
    // Lanes on one word are separate requests to L2 (kernels/micro l2_modify, modify_lanes_*_by0).
    counters_.atomic_requests += r.rounds;
    if (r.kind == RequestKind::Reduction) counters_.reduction_requests += r.rounds;
    (r.kind == RequestKind::Atomic ? counters_.atomic_sectors : counters_.reduction_sectors) += sectors * r.rounds;
  }
  schedule(sent.leaves, Step::CpcWrite, 0, id);
}

// ---- Events ---------------------------------------------------------------------------------------------------------

/// Requests, channels and sets do not fit in the host's near caches, so what the events of a cycle will look at is
/// prefetched before the first of them is handled, beginning with what must be read to know the rest of the
/// addresses.
void MemorySystem::State::prefetch_due() const {
  for (const Event& e : due_) {
    switch (static_cast<Step>(e.type)) {
      case Step::Serve:
        for (const Queue& queue : slices_[e.unit].queue)
          if (queue.first != kNone) records_.prefetch(queue.first);
        break;
      case Step::Taken:
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
      case Step::Enter:
        prefetch_lookup(e.subject);
        break;
      case Step::Serve:
        for (const Queue& queue : slices_[e.unit].queue)
          if (queue.first != kNone) prefetch_lookup(queue.first);
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
    case Step::CpcWrite:
      leave_cpc(e.subject, now);
      break;
    case Step::CpcGoesOn:
      go_on(held_up(records_[e.subject]), now);
      break;
    case Step::FabricOut:
      if (!waits(turn_at_fabric(records_[e.subject]), cpc_fabric_writes_, e.subject)) cross(e.subject, now);
      break;
    case Step::Cross: {
      Turn& turn = turn_at_fabric(records_[e.subject]);
      HeldUp& held = held_up(records_[e.subject]);
      --turn.in_line;
      const std::uint32_t next = next_of(turn);
      schedule(now + request_cycles_ + far_out_, Step::Arrive, 0, e.subject);
      cross(next, now);
      if (turn.first == kNone && !held.going_on) go_on(held, now);
      break;
    }
    case Step::Arrive: {
      const Record& r = records_[e.subject];
      if (r.kind == RequestKind::Read) {
        arrive(e.subject, now);
      } else if (!waits(turn_at_slice(r), 1, e.subject)) {
        enter(e.subject, now);
      }
      break;
    }
    case Step::Enter: {
      Turn& turn = turn_at_slice(records_[e.subject]);
      --turn.in_line;
      const std::uint32_t next = next_of(turn);
      arrive(e.subject, now);
      enter(next, now);
      break;
    }
    case Step::Serve:
      serve(e.unit, now);
      break;
    case Step::Taken:
      slices_[e.unit].cache.written_back(count(e.sectors));
      resume(e.unit, now);
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
  return state_->posted_[sm] < state_->sm_write_flits_ && state_->crossbar_.accepts(sm, now);
}

Cycle MemorySystem::accepts_again(std::uint16_t sm, Cycle now) const {
  return state_->posted_[sm] < state_->sm_write_flits_ ? state_->crossbar_.accepts_again(sm, now) : kNever;
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
      first = std::min(first, port.sent.front().pushed);  // the first of each port is the earliest
  if (first != kNever) s.events_.advance(std::min({first, s.events_.next(), s.next_from_channels()}));
  for (State::Port& port : s.ports_) {
    for (const State::Port::Sent& sent : port.sent) s.take_in(sent);
    port.sent.clear();
  }
  for (const State::Answer& answer : s.answered_)
    s.ports_[static_cast<std::size_t>(answer.gpc)].answers.push(answer.at, answer.event);
  s.answered_.clear();
  s.hear_of_channels();
  s.tell_channels();
}

Cycle MemorySystem::next_below() const { return state_->events_.next(); }

Cycle MemorySystem::next_of_channels() const {
  Cycle next = kNever;
  for (const State::ChannelGroup& group : state_->groups_) next = std::min(next, group.first_next);
  return next;
}

std::size_t MemorySystem::channel_groups() const { return state_->groups_.size(); }
Cycle MemorySystem::channel_cycles() const { return state_->controller_back_; }
Cycle MemorySystem::sent_cycles() const { return state_->controller_out_; }

void MemorySystem::run_channels(std::size_t group, Cycle limit) { state_->run_channels(state_->groups_[group], limit); }

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
      if (static_cast<Step>(e.type & ~(kPosted | kMerged)) == Step::Response) {
        const Cycle there = s.crossbar_.deliver(e.unit, count(e.sectors & 15), at, (e.type & kMerged) != 0);
        if (!posted) port.queued_cycles += there - at;
        if (there > at) {
          const auto type = static_cast<std::uint8_t>(static_cast<unsigned>(Step::Reply) | (e.type & kPosted));
          port.answers.push(there, {e.subject, e.unit, type, e.sectors});
          continue;
        }
      }
      if (posted) s.posted_[e.unit] -= e.sectors >> kFlits;
      replies.push_back({e.subject, e.unit, static_cast<std::uint8_t>(e.sectors & 15)});
    }
  }
}

void MemorySystem::answers_before(int gpc, Cycle limit, std::vector<MemoryReply>& replies) const {
  state_->ports_[static_cast<std::size_t>(gpc)].answers.for_each_before(limit, [&](const Event& e) {
    replies.push_back({e.subject, e.unit, e.sectors});
  });
}

Cycle MemorySystem::next_event() {
  exchange();
  Cycle next = std::min(next_below(), next_of_channels());
  for (int g = 0; g < gpcs(); ++g) next = std::min(next, next_answer(g));
  return next;
}

void MemorySystem::run_until(Cycle now, std::vector<MemoryReply>& replies) {
  for (Cycle at = next_event(); at <= now; at = next_event()) {
    run_below(at + 1);
    for (std::size_t group = 0; group < channel_groups(); ++group) run_channels(group, at + 1);
    for (int g = 0; g < gpcs(); ++g) take_answers(g, at, replies);
  }
}

MemoryCounters& MemoryCounters::operator+=(const MemoryCounters& other) {
#define FW_MEMORY_COUNTER(name, ...) name += other.name;
#include "timing/counters.def"
  return *this;
}

MemoryCounters MemorySystem::counters() const {
  MemoryCounters sum = state_->counters_;
  for (const State::Port& port : state_->ports_) sum.read_latency_cycles += port.queued_cycles;
  for (const State::ChannelGroup& group : state_->groups_) sum += group.counters;
  return sum;
}

Cycle MemorySystem::deliver_also(std::uint16_t sm, int sectors, Cycle now) {
  return state_->crossbar_.deliver(sm, sectors, now, true);
}

std::uint8_t MemorySystem::partition(std::uint16_t sm) const {
  return static_cast<std::uint8_t>(state_->crossbar_.partition(sm));
}

}  // namespace forewarp
