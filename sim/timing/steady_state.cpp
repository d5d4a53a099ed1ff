#include "timing/steady_state.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "timing/block_footprint.h"
#include "timing/gpu.h"
#include "timing/loops.h"

namespace forewarp {
namespace {

constexpr double kRefill = 1.25;         // L2's size that must have come in before its state counts as steady
constexpr std::uint64_t kMostTouches = 40'000'000;  // lines touched in L2 for skipped blocks; more would take seconds
constexpr std::uint64_t kWindows = 8;    // the budget pays for so many windows
constexpr Cycle kSlice = 128;            // cycles between two looks at the progress
constexpr Cycle kLeastWindow = 2048;     // a window lasts at least so long
constexpr double kSteady = 0.02;         // two windows agree when their rates differ by less
constexpr std::uint32_t kMargin = 3;     // iterations left after a skip, so that the exit is simulated
constexpr std::uint32_t kLeastSkip = 6;  // iterations worth skipping
constexpr double kAlike = 0.1;          // blocks are alike when their instructions spread by less, against their mean
constexpr std::uint64_t kPatience = 6;  // times the budget after which an unsettled launch is extrapolated as it is

/// a + (b - c) * factor for every event count.
void add_scaled(TimingCounters& a, const TimingCounters& b, const TimingCounters& c, double factor) {
  const auto add = [factor](std::uint64_t& to, std::uint64_t later, std::uint64_t earlier) {
    to += static_cast<std::uint64_t>(std::llround(static_cast<double>(later - earlier) * factor));
  };
#define FW_ADD(field) add(a.field, b.field, c.field)
  FW_ADD(issue_active_cycles);
  FW_ADD(smsp_active_cycles);
  FW_ADD(sm_active_cycles);
  FW_ADD(warp_cycles);
  for (std::size_t i = 0; i < kStallReasons; ++i) FW_ADD(stalls[i]);
  FW_ADD(l1_load_sectors);
  FW_ADD(l1_load_hit_sectors);
  FW_ADD(l1_store_sectors);
  FW_ADD(l1_store_hit_sectors);
  FW_ADD(l1_tag_lookups);
  FW_ADD(l1_data_wavefronts);
  FW_ADD(shared_wavefronts);
  FW_ADD(l1_data_cycles);
  FW_ADD(icache_l0_misses);
  FW_ADD(icache_l1_misses);
  FW_ADD(icache_l2_misses);
  for (std::size_t i = 0; i < a.pipe_cycles.size(); ++i) FW_ADD(pipe_cycles[i]);
  FW_ADD(memory.read_requests);
  FW_ADD(memory.write_requests);
  FW_ADD(memory.atomic_requests);
  FW_ADD(memory.read_sectors);
  FW_ADD(memory.write_sectors);
  FW_ADD(memory.atomic_sectors);
  FW_ADD(memory.reduction_sectors);
  FW_ADD(memory.hit_sectors);
  FW_ADD(memory.miss_sectors);
  FW_ADD(memory.fabric_hit_sectors);
  FW_ADD(memory.fabric_miss_sectors);
  FW_ADD(memory.fabric_sectors);
  FW_ADD(memory.dram_read_bytes);
  FW_ADD(memory.dram_write_bytes);
  FW_ADD(memory.row_hits);
  FW_ADD(memory.row_misses);
  FW_ADD(memory.row_conflicts);
  FW_ADD(memory.turnarounds);
  FW_ADD(memory.read_latency_cycles);
  FW_ADD(memory.read_replies);
#undef FW_ADD
}

std::uint64_t launch_instructions(const KernelTrace& trace) {
  std::uint64_t total = 0;
  for (const BlockClass& cls : trace.classes) {
    std::uint64_t block = 0;
    for (const WarpTrace& warp : cls.warps) block += cls.paths[warp.path].instructions;
    total += block * cls.population;
  }
  return total;
}

/// Whether blocks execute nearly equally many instructions.
bool blocks_alike(const KernelTrace& trace) {
  double sum = 0, squares = 0, count = 0;
  for (const BlockClass& cls : trace.classes) {
    double block = 0;
    for (const WarpTrace& warp : cls.warps) block += static_cast<double>(cls.paths[warp.path].instructions);
    const double population = static_cast<double>(cls.population);
    sum += population * block;
    squares += population * block * block;
    count += population;
  }
  const double mean = sum / count;
  return squares / count - mean * mean <= kAlike * kAlike * mean * mean;
}

/// Drives a Gpu and skips what repeats.
class SteadyState {
 public:
  SteadyState(const LaunchContext& context, const SimulateOptions& options)
      : context_(context), options_(options), gpu_(context), loops_(find_loops(context.trace, context.program)) {
    gpu_.set_loops(&loops_);
    const std::uint64_t capacity = static_cast<std::uint64_t>(context.gpu.chip.sm_count) * static_cast<std::uint64_t>(context.blocks_per_sm);
    blocks_ = context.trace.launch.grid.count();
    wave_ = std::min(capacity, blocks_);
    instructions_ = launch_instructions(context.trace);
    // Short blocks: several waves at a time, so that their rate is a mean over many.
    const std::uint64_t wave_instructions = std::max<std::uint64_t>(1, instructions_ / blocks_ * wave_);
    mark_blocks_ = wave_ * std::max<std::uint64_t>(1, options.detailed_instructions / kWindows / wave_instructions);
    next_mark_ = mark_blocks_;
  }

  TimingResult run() {
    TimingResult result;
    result.coverage.warp_instructions = instructions_;
    bool over = false;
    if (options_.full || result.coverage.warp_instructions <= options_.detailed_instructions) {
      over = gpu_.run(~std::uint64_t{0}, kNever - 1);
    } else {
      over = run_skipping();
    }
    result.counters = gpu_.counters();
    add_scaled(result.counters, skipped_, TimingCounters{}, 1);
    result.elapsed_cycles = virtual_now();
    if (over) result.elapsed_cycles = gpu_.last_end() + static_cast<Cycle>(skipped_cycles_);
    put_on_the_clock(result);
    if (!over) extrapolate_rest(result);
    result.elapsed_cycles += static_cast<Cycle>(context_.gpu.launch.end_cycles);
    result.instruction_stalls = gpu_.instruction_stalls();
    result.coverage.simulated_warp_instructions = gpu_.issued();
    result.coverage.extrapolated = skipped_iterations_ > 0 || skipped_blocks_ > 0 || !over;
    describe(result, over);
    return result;
  }

 private:
  /// Time as if nothing had been skipped.
  Cycle virtual_now() const { return gpu_.now() + static_cast<Cycle>(skipped_cycles_); }

  /// Spans as if nothing had been skipped, and where something was.
  void put_on_the_clock(TimingResult& result) const {
    result.spans = gpu_.spans();
    const auto moved = [&](Cycle at) {
      const auto after = std::upper_bound(skips_.begin(), skips_.end(), at, [](Cycle t, const Skip& s) { return t <= s.at; });
      return at + static_cast<Cycle>(after == skips_.begin() ? 0 : std::prev(after)->cycles_so_far);
    };
    for (BlockSpan& span : result.spans) {
      span.start = moved(span.start);
      span.end = moved(span.end);
    }
    double before = 0;
    for (const Skip& skip : skips_) {
      result.skipped.push_back({skip.at + static_cast<Cycle>(before), skip.at + static_cast<Cycle>(skip.cycles_so_far)});
      before = skip.cycles_so_far;
    }
  }

  void note_skip() { skips_.push_back({gpu_.now(), skipped_cycles_}); }

  bool run_skipping() {
    while (!gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice)) {
      gpu_.advance_to(gpu_.now() + kSlice);
      if (try_skip_blocks()) continue;
      try_skip_iterations();
      if (gpu_.issued() > options_.detailed_instructions * kPatience) return false;
    }
    return true;
  }

  // --- Waves -------------------------------------------------------------------------------------------------------
  // Every time another wave's worth of blocks has left, its time is noted; once two agree, whole waves are left out.
  bool try_skip_blocks() {
    if (gpu_.finished_blocks() + skipped_blocks_ < next_mark_) return false;
    next_mark_ += mark_blocks_;
    marks_.push_back({virtual_now(), gpu_.counters()});
    add_scaled(marks_.back().counters, skipped_, TimingCounters{}, 1);
    const std::size_t n = marks_.size();
    if (n < 4) return false;  // the first wave starts in step; it does not count
    const double last = static_cast<double>(marks_[n - 1].at - marks_[n - 2].at), before = static_cast<double>(marks_[n - 2].at - marks_[n - 3].at);
    const double drift = std::abs(last - before) / last;
    const bool out_of_budget = gpu_.issued() > options_.detailed_instructions;
    if (drift > (out_of_budget ? 3 * kSteady : kSteady)) return false;
    const std::uint64_t left = blocks_ - gpu_.dispatcher().dispatched();
    if (left < 2 * wave_) return false;
    const std::uint64_t most = left / wave_ - 1;  // at least a whole wave and the tail remain
    const std::uint64_t filling = saturated_ ? 0 : waves_until_full();
    uncertainty_ = std::max(uncertainty_, drift);
    if (filling > 0 && filling + 6 * mark_blocks_ / wave_ <= most) {
      // L2 has to be full, and dirty, before the rate is the one that lasts: fill it and measure again.
      skip_waves(filling);
      saturated_ = true;
      marks_.clear();
      next_mark_ = gpu_.finished_blocks() + skipped_blocks_ + mark_blocks_;
      return true;
    }
    skip_waves(most);
    next_mark_ = ~std::uint64_t{0};  // what is left is the tail
    return true;
  }

  /// Waves after which everything in L2 has been replaced, at the rate at which the last marks brought data in.
  std::uint64_t waves_until_full() const {
    const TimingCounters &later = marks_.back().counters, &earlier = marks_[marks_.size() - 3].counters;
    const auto brought = [](const TimingCounters& c) { return static_cast<double>(c.memory.miss_sectors + c.memory.write_sectors) * kSectorBytes; };
    const double by_wave = (brought(later) - brought(earlier)) * static_cast<double>(wave_) / static_cast<double>(2 * mark_blocks_);
    const double missing = kRefill * static_cast<double>(context_.gpu.l2.bytes) - brought(later);
    return by_wave <= 0 || missing <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(missing / by_wave));
  }

  /// Leaves out whole waves at the rate of the last two marks.
  void skip_waves(std::uint64_t waves) {
    const std::size_t n = marks_.size();
    const std::uint64_t first = gpu_.dispatcher().dispatched(), count = waves * wave_;
    const double factor = static_cast<double>(count) / static_cast<double>(2 * mark_blocks_);
    skipped_cycles_ += factor * static_cast<double>(marks_[n - 1].at - marks_[n - 3].at);
    note_skip();
    const std::uint64_t read = skipped_.memory.dram_read_bytes, written = skipped_.memory.dram_write_bytes;
    add_scaled(skipped_, marks_[n - 1].counters, marks_[n - 3].counters, factor);
    if (!footprint_) footprint_.emplace(context_);
    if (footprint_->lines_per_block() < kMostTouches / count) {
      const SkippedAccesses::Traffic traffic = footprint_->touch(first, count, gpu_.memory());
      skipped_.memory.dram_read_bytes = read + traffic.dram_read_bytes;
      skipped_.memory.dram_write_bytes = written + traffic.dram_write_bytes;
    }
    gpu_.dispatcher().skip(count);
    skipped_blocks_ += count;
  }

  // --- Loops -------------------------------------------------------------------------------------------------------
  // While every resident warp is inside its loop, the mean iterations a cycle are measured over windows; once two
  // windows agree, all warps go on by the same number of iterations.
  void try_skip_iterations() {
    const LoopProgress progress = gpu_.loop_progress();
    if (!progress.all_inside || progress.warps == 0 || progress.warps != window_.warps) {
      restart_window(progress);
      return;
    }
    // Counted in instructions, so that a window need not start and end where iterations do.
    const double moved = static_cast<double>(gpu_.issued() - window_.issued) / static_cast<double>(progress.iteration_instructions);
    if (moved < least_move(progress) || gpu_.now() - window_.at < kLeastWindow) return;
    const double rate = moved / static_cast<double>(gpu_.now() - window_.at);
    const double before = window_.rate;
    // A later wave that runs as the one before did need not be watched as long.
    const bool known = last_rate_ > 0 && std::abs(rate - last_rate_) < 2 * kSteady * rate;
    const bool steady = (before > 0 && std::abs(rate - before) < kSteady * rate) || known;
    if (steady && progress.least_remaining >= kLeastSkip + kMargin) {
      const double other = before > 0 ? before : last_rate_;
      skip_iterations(progress, (rate + other) / 2);
      last_rate_ = rate;
      uncertainty_ = std::max(uncertainty_, std::abs(rate - other) / rate);
      restart_window(gpu_.loop_progress());
      return;
    }
    restart_window(progress);
    window_.rate = rate;
  }

  /// Iterations a window spans: a share of the budget, so that short bodies are averaged over many.
  double least_move(const LoopProgress& progress) const {
    const double window = static_cast<double>(options_.detailed_instructions) / kWindows;
    return std::ceil(std::clamp(window / static_cast<double>(progress.iteration_instructions), 1.0, 32.0));
  }

  void restart_window(const LoopProgress& progress) {
    window_ = {};
    window_.at = gpu_.now();
    window_.warps = progress.all_inside ? progress.warps : 0;
    window_.issued = gpu_.issued();
    window_.counters = gpu_.counters();
  }

  void skip_iterations(const LoopProgress& progress, double rate) {
    const std::uint32_t count = progress.least_remaining - kMargin;
    const double cycles = count / rate;
    const TimingCounters now = gpu_.counters();
    const SkippedAccesses::Traffic traffic = gpu_.skip_iterations(count);
    // Lines that nobody had touched come from DRAM once; what the window measured would count its own reuse again.
    const std::uint64_t read = skipped_.memory.dram_read_bytes + traffic.dram_read_bytes;
    const std::uint64_t written = skipped_.memory.dram_write_bytes + traffic.dram_write_bytes;
    add_scaled(skipped_, now, window_.counters, cycles / static_cast<double>(gpu_.now() - window_.at));
    skipped_.memory.dram_read_bytes = read;
    skipped_.memory.dram_write_bytes = written;
    skipped_cycles_ += cycles;
    note_skip();
    skipped_iterations_ += count;
    skipped_instructions_ += progress.iteration_instructions * count;
  }

  // --- Launches that do not settle ---------------------------------------------------------------------------------
  void extrapolate_rest(TimingResult& result) {
    const double factor = 1 / progress_share() - 1;
    const double rest = std::max(static_cast<double>(virtual_now()) * factor, whole_block_cycles(result.counters) - static_cast<double>(virtual_now()));
    add_scaled(result.counters, result.counters, TimingCounters{}, factor);
    const Cycle so_far = result.elapsed_cycles;
    result.elapsed_cycles += static_cast<Cycle>(rest);
    result.skipped.push_back({so_far, result.elapsed_cycles});
    uncertainty_ = std::max(uncertainty_, 0.15);
    result.warnings.push_back("the launch did not settle within the detailed budget; its rest was taken to run at the mean rate so far");
  }

  /// Cycles of the launch if its blocks are alike: an SM works through whole ones, so the launch lasts as long as the SMs
  /// that get one more than the others. The mean rate would have all SMs end together, in the middle of a block.
  double whole_block_cycles(const TimingCounters& counters) const {
    if (!blocks_alike(context_.trace)) return 0;
    const double sms = static_cast<double>(context_.gpu.chip.sm_count), blocks = static_cast<double>(blocks_);
    const double each = static_cast<double>(counters.sm_active_cycles) / (progress_share() * blocks);
    return std::ceil(blocks / sms) * each;
  }

  double progress_share() const {
    const double simulated = static_cast<double>(gpu_.issued() + skipped_instructions_);
    const double total = static_cast<double>(instructions_);
    const double left_out = static_cast<double>(skipped_blocks_) / static_cast<double>(blocks_);
    return std::clamp(simulated / total + left_out, 1e-9, 1.0);
  }

  void describe(TimingResult& result, bool over) const {
    std::string& method = result.coverage.method;
    if (skipped_iterations_ > 0) method += std::to_string(skipped_iterations_) + " steady loop iterations";
    if (skipped_blocks_ > 0) method += (method.empty() ? "" : " and ") + std::to_string(skipped_blocks_) + " blocks in steady waves";
    if (!over) method += (method.empty() ? "" : " and ") + std::string("the rest at the mean rate");
    method = method.empty() ? "every instruction simulated" : method + " extrapolated";
    result.coverage.uncertainty_pct = 100 * uncertainty_;
  }

  struct Window {
    Cycle at = 0;
    std::uint64_t warps = 0, issued = 0;
    double rate = 0;   ///< of the window before
    TimingCounters counters;
  };
  struct Skip {
    Cycle at = 0;               ///< on the simulation's own clock
    double cycles_so_far = 0;  ///< skipped up to and with this one
  };
  struct Mark {
    Cycle at;
    TimingCounters counters;
  };

  LaunchContext context_;
  SimulateOptions options_;
  Gpu gpu_;
  std::vector<std::vector<PathLoop>> loops_;
  std::uint64_t blocks_ = 0, wave_ = 0, instructions_ = 0, mark_blocks_ = 0, next_mark_ = 0, skipped_blocks_ = 0, skipped_iterations_ = 0, skipped_instructions_ = 0;
  double skipped_cycles_ = 0, uncertainty_ = 0, last_rate_ = 0;
  TimingCounters skipped_;
  std::vector<Mark> marks_;
  std::vector<Skip> skips_;
  std::optional<BlockFootprint> footprint_;
  bool saturated_ = false;
  Window window_;
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options) { return SteadyState(context, options).run(); }

}  // namespace forewarp
