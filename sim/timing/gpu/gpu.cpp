#include "timing/gpu/gpu.h"

#include <algorithm>

#include "base/error.h"
#include "hardware/occupancy.h"

namespace forewarp {
namespace {
constexpr std::size_t kMostSpans = 40000;
constexpr std::size_t kMostClassesForCode = 256;  // of a launch with a class for each block, so many show its code
// Ticks of SMs in a step that are worth waking other threads for: some ten microseconds.
constexpr std::uint64_t kWorthSharing = 200;
}  // namespace

Gpu::Gpc::Gpc(const LaunchContext& context)
    : instructions{InstructionCacheLevel(context.program.code_lines(),
                                         context.gpu.icache.l2_bytes / context.gpu.icache.line_bytes,
                                         context.gpu.icache.ways)} {}

Gpu::Gpu(const LaunchContext& context, const MemorySystem* before, unsigned threads, BlockRange blocks)
    : context_(context),
      memory_(context.gpu, before == nullptr ? MemorySystem::L2Start::Flushed : MemorySystem::L2Start::Empty),
      instruction_stalls_(std::max(1u, threads), std::vector<StallCycles>(context.program.size())),
      dispatcher_(context.gpu, std::min(blocks.end, context.trace.launch.grid.count()), context.blocks_per_sm,
                  static_cast<int>(context.trace.launch.cluster.count())),
      sm_next_(static_cast<std::size_t>(context.gpu.chip.sm_count), kNever),
      crew_(std::max(1u, threads)) {
  for (int g = 0; g < memory_.gpcs(); ++g) gpcs_.push_back(std::make_unique<Gpc>(context));
  for (std::size_t sm = 0; sm < sm_next_.size(); ++sm) {
    const auto id = static_cast<std::uint16_t>(sm);
    sms_.push_back(std::make_unique<Sm>(context, id));
    Gpc& gpc = gpc_of(id);
    if (gpc.end_sm == 0) gpc.first_sm = sm;
    FW_CHECK(gpc.end_sm == 0 || gpc.end_sm == sm, "SMs of a GPC are not numbered one after another");
    gpc.end_sm = sm + 1;
  }
  if (const std::uint64_t together = context.trace.launch.cluster.count(); together > 0) {
    if (blocks_at_once(context.gpu, context.blocks_per_sm, together) == 0)
      throw InputError("a cluster of " + std::to_string(together) + " blocks does not fit a GPC of " +
                           context.gpu.name + ", with " + std::to_string(context.blocks_per_sm) + " blocks on an SM",
                       "use smaller clusters, or blocks that need less");
    const std::vector<std::uint16_t> cpcs = cpc_of_sms(context.gpu.chip);
    for (const auto& gpc : gpcs_) {
      const auto first = cpcs.begin() + static_cast<std::ptrdiff_t>(gpc->first_sm);
      const auto end = cpcs.begin() + static_cast<std::ptrdiff_t>(gpc->end_sm);
      gpc->network =
          std::make_unique<ClusterNetwork>(context.gpu.cluster, gpc->first_sm, std::vector<std::uint16_t>(first, end));
      for (std::size_t sm = gpc->first_sm; sm < gpc->end_sm; ++sm) sms_[sm]->join(*gpc->network);
    }
  }
  if (before != nullptr) warm_up(*before);
  if (blocks.sms > 0) dispatcher_.keep_to(blocks.sms, context.blocks_per_sm);
  dispatcher_.skip(blocks.first);
  for (const BlockUnderWay& block : blocks.under_way) {
    dispatcher_.hold(block.sm);
    sms_[block.sm]->start_block(static_cast<std::uint32_t>(block.block), 0, {}, &block.state);
    sm_next_[block.sm] = gpc_of(block.sm).next = 0;
  }
  start_first_blocks();
}

/// Whatever else has run in between, L2 and the instruction caches stay: kernels/micro code_size and launch on an H200
/// find code of up to 128 KiB again, in each sub-partition up to 32 KiB. The L1 data cache and the constants that hold
/// the launch's arguments start anew.
void Gpu::warm_up(const MemorySystem& before) {
  memory_.copy_lines(before);
  std::vector<std::uint8_t> executed(context_.program.code_lines());
  const std::uint32_t per_line = context_.program.instructions_per_line();
  const std::size_t classes = std::min(context_.trace.classes.size(), kMostClassesForCode);
  for (std::size_t c = 0; c < classes; ++c)
    for (const WarpPath& path : context_.trace.classes[c].paths)
      for (const Run& run : path.runs)
        std::fill(executed.begin() + run.first / per_line,
                  executed.begin() + (run.first + run.count - 1) / per_line + 1, 1);
  std::vector<std::uint32_t> lines;
  for (std::uint32_t line = 0; line < executed.size(); ++line)
    if (executed[line] != 0) lines.push_back(line);
  for (const auto& gpc : gpcs_)
    for (const std::uint32_t line : lines) gpc->instructions.gpc.insert(line, 0);
  for (const auto& sm : sms_) sm->preload_code(lines);
}

void Gpu::start_first_blocks() {
  for (BlockDispatcher::Grant grant = dispatcher_.next(0); grant.sm >= 0; grant = dispatcher_.next(0)) {
    const auto sm = static_cast<std::uint16_t>(grant.sm);
    sms_[sm]->start_block(block_of(grant.block), 0, seat_of(grant.block));
    sm_next_[sm] = 0;
    gpc_of(sm).next = 0;
  }
}

ClusterSeat Gpu::seat_of(std::uint64_t place) const {
  const std::uint64_t blocks = context_.trace.launch.cluster.count();
  if (blocks == 0) return {};
  return {place / blocks, static_cast<std::uint32_t>(place % blocks), static_cast<std::uint32_t>(blocks)};
}

/// Cluster after cluster, the blocks of each by rank; both x fastest.
std::uint32_t Gpu::block_of(std::uint64_t place) const {
  const Dim3& cluster = context_.trace.launch.cluster;
  const Dim3& grid = context_.trace.launch.grid;
  if (cluster.y <= 1 && cluster.z <= 1) return static_cast<std::uint32_t>(place);
  const ClusterSeat seat = seat_of(place);
  const std::uint64_t columns = grid.x / cluster.x, rows = grid.y / cluster.y;
  const std::uint64_t x = seat.cluster % columns * cluster.x + seat.rank % cluster.x;
  const std::uint64_t y = seat.cluster / columns % rows * cluster.y + seat.rank / cluster.x % cluster.y;
  const std::uint64_t z = seat.cluster / columns / rows * cluster.z + seat.rank / cluster.x / cluster.y;
  return static_cast<std::uint32_t>((z * grid.y + y) * grid.x + x);
}

/// Blocks that are handed out from a cycle on and before another.
void Gpu::give_blocks(Cycle from, Cycle end) {
  for (Cycle at = std::max(from, dispatcher_.wake(dispatched_at_)); at < end; at = dispatcher_.wake(at)) {
    dispatched_at_ = at;
    for (BlockDispatcher::Grant grant = dispatcher_.next(at); grant.sm >= 0; grant = dispatcher_.next(at)) {
      const auto sm = static_cast<std::uint16_t>(grant.sm);
      gpc_of(sm).starts.push_back({at, sm, block_of(grant.block), seat_of(grant.block)});
    }
  }
}

/// The dispatcher hears of blocks that have left, in their order.
void Gpu::take_blocks_back() {
  ends_.clear();
  for (const auto& gpc : gpcs_) {
    ends_.insert(ends_.end(), gpc->ends.begin(), gpc->ends.end());
    gpc->ends.clear();
  }
  std::stable_sort(ends_.begin(), ends_.end(), [](const Gpc::End& a, const Gpc::End& b) { return a.seen < b.seen; });
  for (const Gpc::End& end : ends_) {
    dispatcher_.finished(end.sm, end.block.end);
    ++finished_blocks_;
    if (spans_.size() < kMostSpans) spans_.push_back({end.block.block, end.sm, end.block.start, end.block.end});
  }
}

/// Everything that is due at a GPC.
void Gpu::step(Gpc& gpc, int id, Cycle now, std::vector<StallCycles>& stalls) {
  // 1. Data arrives at the SMs.
  gpc.replies.clear();
  memory_.take_answers(id, now, gpc.replies);
  for (const MemoryReply& reply : gpc.replies) {
    sms_[reply.sm]->reply(reply, now, memory_);
    sm_next_[reply.sm] = now;
  }
  while (gpc.network != nullptr && gpc.network->next() <= now) {
    const ClusterNetwork::Message message = gpc.network->take();
    sms_[message.to.sm]->receive(message, now);
    sm_next_[message.to.sm] = now;
  }
  // 2. Blocks start.
  std::size_t started = 0;
  for (; started < gpc.starts.size() && gpc.starts[started].at <= now; ++started) {
    const Gpc::Start& start = gpc.starts[started];
    sms_[start.sm]->start_block(start.block, now, start.seat);
    sm_next_[start.sm] = now;
  }
  if (started > 0) gpc.starts.erase(gpc.starts.begin(), gpc.starts.begin() + static_cast<std::ptrdiff_t>(started));
  // 3. SMs issue.
  for (std::size_t sm = gpc.first_sm; sm < gpc.end_sm; ++sm) {
    if (sm_next_[sm] > now) continue;
    ++gpc.ticks;
    sm_next_[sm] = sms_[sm]->tick(now, memory_, gpc.instructions, stalls, gpc.finished);
    for (const FinishedBlock& block : gpc.finished) gpc.ends.push_back({now, static_cast<std::uint16_t>(sm), block});
    gpc.finished.clear();
  }
  gpc.last = now;
}

void Gpu::run_gpc(int id, Cycle end, std::vector<StallCycles>& stalls) {
  Gpc& gpc = *gpcs_[static_cast<std::size_t>(id)];
  gpc.ticks = 0;
  gpc.replies.clear();
  memory_.answers_before(id, end, gpc.replies);
  for (const MemoryReply& reply : gpc.replies) sms_[reply.sm]->memory_pipe().prefetch_miss(reply);
  for (const MemoryReply& reply : gpc.replies) sms_[reply.sm]->memory_pipe().prefetch_line(reply);
  for (const MemoryReply& reply : gpc.replies) sms_[reply.sm]->memory_pipe().prefetch_load(reply);
  for (;;) {
    gpc.next = gpc.network != nullptr ? gpc.network->next() : kNever;
    for (std::size_t sm = gpc.first_sm; sm < gpc.end_sm; ++sm) gpc.next = std::min(gpc.next, sm_next_[sm]);
    Cycle now = std::min(gpc.next, memory_.next_answer(id));
    if (!gpc.starts.empty()) now = std::min(now, gpc.starts.front().at);
    if (now >= end) return;
    step(gpc, id, now, stalls);
  }
}

void Gpu::run_side_by_side(Cycle end, Cycle below) {
  const auto channels = static_cast<std::uint32_t>(memory_.channel_groups());
  const auto piece = [&](std::uint32_t i, unsigned member) {
    if (i == 0) {
      memory_.run_below(below);
    } else if (i <= channels) {
      memory_.run_channels(i - 1, below);
    } else {
      run_gpc(static_cast<int>(i - 1 - channels), end, instruction_stalls_[member]);
    }
  };
  const auto pieces = static_cast<std::uint32_t>(gpcs_.size() + 1 + channels);
  std::uint64_t ticks = 0;  // of the last step: this one is about as long
  for (const auto& gpc : gpcs_) ticks += gpc->ticks;
  if (ticks >= kWorthSharing) {
    crew_.run(pieces, piece);
  } else {
    for (std::uint32_t i = 0; i < pieces; ++i) piece(i, 0);
  }
  for (const auto& gpc : gpcs_) now_ = std::max(now_, gpc->last);
}

Cycle Gpu::next_of_gpcs() const {
  Cycle next = dispatcher_.wake(dispatched_at_);
  for (int g = 0; g < memory_.gpcs(); ++g)
    next = std::min({next, gpcs_[static_cast<std::size_t>(g)]->next, memory_.next_answer(g)});
  return next;
}

Cycle Gpu::next_due() const { return std::min({next_of_gpcs(), memory_.next_below(), memory_.next_of_channels()}); }

bool Gpu::over() const {
  return dispatcher_.exhausted() && std::all_of(sms_.begin(), sms_.end(), [](const auto& sm) { return sm->idle(); });
}

bool Gpu::run(std::uint64_t stop_instructions, Cycle stop_cycle) {
  const auto after = [](Cycle at, Cycle by) { return at == kNever ? kNever : at + by; };
  const auto block_end = static_cast<Cycle>(context_.gpu.launch.block_end_cycles);
  const Cycle answer = memory_.answer_cycles(), at_a_time = std::max<Cycle>(1, answer / 2);
  for (;;) {
    memory_.exchange();
    if (over()) {
      std::vector<MemoryReply> none;
      memory_.run_until(now_, none);
      last_end_ = std::max({last_end_, now_, dispatcher_.all_back()});
      return true;
    }
    const Cycle due = next_of_gpcs(), below = memory_.next_below(), channels = memory_.next_of_channels();
    if (due == kNever && below == kNever && channels == kNever) report_deadlock();
    if (std::min({due, below, channels}) > stop_cycle || issued() >= stop_instructions) return false;
    // What is below has not answered before `known`, nor heard of DRAM before `heard`; SMs may push from `due` or then
    // on. Where a call stops does not cut that short: the order of requests that meet would be another.
    const Cycle heard = after(channels, memory_.channel_cycles());
    const Cycle known = after(std::min(below, heard), answer);
    Cycle end = std::min(after(due, at_a_time), known);
    if (!dispatcher_.exhausted()) end = std::min(end, after(due, block_end + 1));
    if (due < end) give_blocks(due, end);
    // ... nor do channels run ahead of what slices may send them meanwhile.
    const Cycle sent = after(below, memory_.sent_cycles());
    run_side_by_side(end, std::min({due, known, heard, sent}));
    take_blocks_back();
  }
}

std::vector<StallCycles> Gpu::instruction_stalls() const {
  std::vector<StallCycles> sum = instruction_stalls_.front();
  for (std::size_t t = 1; t < instruction_stalls_.size(); ++t)
    for (std::size_t i = 0; i < sum.size(); ++i)
      for (std::size_t s = 0; s < kStallReasons; ++s) sum[i][s] += instruction_stalls_[t][i][s];
  return sum;
}

int Gpu::live_warps() const {
  int live = 0;
  for (const auto& sm : sms_) live += sm->live_warps();
  return live;
}

L2Traffic Gpu::drain() {
  const MemoryCounters before = memory_.counters();
  std::vector<MemoryReply> replies;
  for (Cycle now = now_;;) {
    Cycle next = kNever;
    for (const auto& sm : sms_) next = std::min(next, sm->drain(now, memory_));
    memory_.exchange();
    replies.clear();
    memory_.run_until(now, replies);
    for (const MemoryReply& reply : replies) sms_[reply.sm]->reply(reply, now + 1, memory_);
    next = std::min(next, replies.empty() ? memory_.next_event() : now + 1);
    if (next == kNever) break;
    now = std::max(next, now + 1);
  }
  const MemoryCounters& after = memory_.counters();
  L2Traffic traffic;
  traffic.read = (after.dram_read_bytes - before.dram_read_bytes) / kSectorBytes;
  traffic.written = (after.dram_write_bytes - before.dram_write_bytes) / kSectorBytes;
  traffic.missed = after.miss_sectors - before.miss_sectors;
  traffic.fetched = traffic.missed;
  traffic.fabric_hits = after.fabric_hit_sectors - before.fabric_hit_sectors;
  traffic.fabric_misses = after.fabric_miss_sectors - before.fabric_miss_sectors;
  return traffic;
}

std::uint64_t Gpu::issued() const {
  std::uint64_t total = 0;
  for (const auto& sm : sms_) total += sm->issued();
  return total;
}

TimingCounters Gpu::counters() const {
  TimingCounters total;
  for (const auto& sm : sms_) sm->collect(now_, total);
  total.memory = memory_.counters();
  return total;
}

void Gpu::report_deadlock() const {
  std::string text = "the simulated GPU is stuck at cycle " + std::to_string(now_) + ":\n";
  for (const auto& sm : sms_) {
    text += sm->describe_wait(now_);
    if (text.size() > 2000) break;
  }
  throw InputError(text,
                   "the kernel waits for something that cannot happen, such as a barrier that some warps never reach");
}

}  // namespace forewarp
