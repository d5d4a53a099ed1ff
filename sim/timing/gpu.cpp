#include "timing/gpu.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp {
namespace {
constexpr std::size_t kMostSpans = 40000;
constexpr std::size_t kMostClassesForCode = 256;  // of a launch with a class for each block, so many show its code
}  // namespace

Gpu::Gpu(const LaunchContext& context, const MemorySystem* before)
    : context_(context),
      memory_(context.gpu, before == nullptr ? MemorySystem::L2Start::Flushed : MemorySystem::L2Start::Empty),
      instruction_stalls_(context.program.size()),
      dispatcher_(context.gpu, context.trace.launch.grid.count(), context.blocks_per_sm),
      sm_next_(static_cast<std::size_t>(context.gpu.chip.sm_count), kNever),
      gpc_of_(gpc_of_sms(context.gpu.chip)) {
  for (int sm = 0; sm < context.gpu.chip.sm_count; ++sm)
    sms_.push_back(std::make_unique<Sm>(context, static_cast<std::uint16_t>(sm), instruction_stalls_));
  const InstructionCacheSpec& icache = context.gpu.icache;
  for (std::size_t g = 0; g < context.gpu.chip.tpcs_per_gpc.size(); ++g)
    instruction_caches_.push_back(
        {InstructionCacheLevel(context.program.code_lines(), icache.l2_bytes / icache.line_bytes)});
  if (before != nullptr) warm_up(*before);
  dispatch();
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
  for (SharedInstructionCache& cache : instruction_caches_)
    for (const std::uint32_t line : lines) cache.gpc.insert(line, 0);
  for (const auto& sm : sms_) sm->preload_code(lines);
}

void Gpu::dispatch() {
  for (BlockDispatcher::Grant grant = dispatcher_.next(now_); grant.sm >= 0; grant = dispatcher_.next(now_)) {
    const auto sm = static_cast<std::size_t>(grant.sm);
    sms_[sm]->start_block(static_cast<std::uint32_t>(grant.block), now_);
    sm_next_[sm] = now_;
  }
}

/// Everything due at now_.
void Gpu::step() {
  // 1. Data arrives at the SMs.
  replies_.clear();
  memory_.run_until(now_, replies_);
  for (const MemoryReply& reply : replies_) sms_[reply.sm]->memory_pipe().prefetch_miss(reply);
  for (const MemoryReply& reply : replies_) sms_[reply.sm]->memory_pipe().prefetch_line(reply);
  for (const MemoryReply& reply : replies_) {
    sms_[reply.sm]->reply(reply, now_);
    sm_next_[reply.sm] = now_;
  }
  // 2. Blocks start.
  dispatch();
  // 3. SMs issue.
  for (std::size_t sm = 0; sm < sms_.size(); ++sm) {
    if (sm_next_[sm] > now_) continue;
    sm_next_[sm] = sms_[sm]->tick(now_, memory_, instruction_caches_[gpc_of_[sm]], finished_);
    for (const FinishedBlock& block : finished_) {
      dispatcher_.finished(static_cast<int>(sm), block.end);
      ++finished_blocks_;
      if (spans_.size() < kMostSpans)
        spans_.push_back({block.block, static_cast<std::uint16_t>(sm), block.start, block.end});
    }
    finished_.clear();
  }
}

Cycle Gpu::next_due() const {
  Cycle next = std::min(memory_.next_event(), dispatcher_.wake(now_));
  for (const Cycle sm : sm_next_) next = std::min(next, sm);
  return next;
}

bool Gpu::run(std::uint64_t stop_instructions, Cycle stop_cycle) {
  for (std::uint64_t steps = 0;; ++steps) {
    const Cycle next = next_due();
    const bool busy =
        !dispatcher_.exhausted() || std::any_of(sms_.begin(), sms_.end(), [](const auto& sm) { return !sm->idle(); });
    if (!busy) {
      last_end_ = std::max({last_end_, now_, dispatcher_.all_back()});
      return true;
    }
    if (next == kNever) report_deadlock();
    if (next > stop_cycle || ((steps & 63) == 0 && issued() >= stop_instructions)) return false;
    now_ = next;
    step();
  }
}

bool Gpu::inside_loops() const {
  return std::all_of(sms_.begin(), sms_.end(), [this](const auto& sm) { return sm->inside_loops(*loops_); });
}

LoopProgress Gpu::loop_progress() const {
  LoopProgress total;
  for (const auto& sm : sms_) sm->add_loop_progress(*loops_, total);
  return total;
}

L2Traffic Gpu::skip_iterations(const LoopProgress& progress, std::span<const std::uint32_t> counts) {
  SkippedAccesses skipped(memory_);
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const BlockLoop& block = progress.blocks[b];
    if (counts[b] > 0) sms_[block.sm]->skip_iterations(*loops_, block.slot, counts[b], skipped);
  }
  return skipped.apply(static_cast<std::uint64_t>(context_.gpu.l2.bytes) / kLineBytes);
}

int Gpu::live_warps() const {
  int live = 0;
  for (const auto& sm : sms_) live += sm->live_warps();
  return live;
}

std::vector<BlockProgress> Gpu::blocks_in_flight() const {
  std::vector<BlockProgress> blocks;
  for (const auto& sm : sms_) sm->add_block_progress(blocks);
  return blocks;
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
