#include "timing/steady_state.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "timing/block_footprint.h"
#include "timing/gpu.h"
#include "timing/loops.h"
#include "timing/rest_schedule.h"
#include "timing/scaled_counters.h"

namespace forewarp {
namespace {

constexpr double kRefill = 1.0;  // L2's size that must have come in before its state counts as steady
constexpr std::uint64_t kMostTouches = 40'000'000;  // lines touched in L2 for skipped blocks; more would take seconds
constexpr std::uint64_t kWindows = 8;               // the budget pays for so many windows
constexpr Cycle kSlice = 128;                       // cycles between two looks at the progress
constexpr Cycle kLeastWindow = 2048;                // a window lasts at least so long
constexpr double kSteady = 0.02;                    // two windows agree when their rates differ by less
constexpr Cycle kExit = 4096;                       // cycles of a loop left after a skip: what its exit still waits for
constexpr double kMostMargin = 3;                   // ... in iterations, at most
constexpr double kLeastSkip = 6;                    // iterations worth skipping
constexpr std::uint64_t kHurry = 5;      // times the budget after which waves are left out even if they differ
constexpr std::uint64_t kPatience = 10;  // times the budget after which a launch is extrapolated as it is
constexpr double kOverdraft = 2.0;       // ... unless it would be done for so many times as much
// What simulating costs, in warp instructions: memory lines are work too.
constexpr std::uint64_t kLookupsPerUnit = 4, kUnitsPerRequest = 1;

std::uint64_t block_instructions(const BlockClass& cls) {
  std::uint64_t block = 0;
  for (const WarpTrace& warp : cls.warps) block += cls.paths[warp.path].instructions;
  return block;
}

/// Drives a Gpu and skips what repeats.
class SteadyState {
 public:
  SteadyState(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before)
      : context_(context),
        options_(options),
        gpu_(context, before),
        loops_(find_loops(context.trace, context.program)),
        saturated_(before != nullptr) {
    gpu_.set_loops(&loops_);
    const std::uint64_t capacity =
        static_cast<std::uint64_t>(context.gpu.chip.sm_count) * static_cast<std::uint64_t>(context.blocks_per_sm);
    blocks_ = context.trace.launch.grid.count();
    wave_ = std::min(capacity, blocks_);
    for (const BlockClass& cls : context.trace.classes) {
      class_instructions_.push_back(block_instructions(cls));
      instructions_ += class_instructions_.back() * cls.population;
    }
    for (const std::vector<PathLoop>& paths : loops_)
      for (const PathLoop& loop : paths) line_period_ = std::max(line_period_, loop.line_period);
    // Short blocks: several waves at a time, so that their rate is a mean over many.
    wave_instructions_ = std::max<std::uint64_t>(1, instructions_ / blocks_ * wave_);
    mark_blocks_ = wave_ * std::max<std::uint64_t>(1, options.detailed_instructions / kWindows / wave_instructions_);
    next_mark_ = mark_blocks_;
    marks_.emplace_back();
    checkpoints_.emplace_back();
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
    result.counters = virtual_counters();
    result.elapsed_cycles = over ? gpu_.last_end() + static_cast<Cycle>(skipped_cycles_) : virtual_now();
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
  struct Window {
    Cycle at = 0;
    std::uint64_t issued = 0;
    LoopProgress progress;  ///< then; warps == 0: not all were inside their loops
    double rate = 0;        ///< of the window before, in iterations a cycle
    TimingCounters counters;
  };
  /// A part of a loop that was left out at the rate seen before it; what comes after it may correct that.
  struct OpenSkip {
    double iterations = 0, rate = 0;  ///< rate 0: nothing to correct
    std::uint64_t wave = 0;           ///< blocks that had been handed out
  };
  struct Skip {
    Cycle at = 0;              ///< on the simulation's own clock
    double cycles_so_far = 0;  ///< skipped up to and with this one
  };
  /// How far the launch was at some time, as if nothing had been skipped.
  struct Mark {
    Cycle at = 0;
    std::uint64_t blocks = 0, instructions = 0;
    TimingCounters counters;
  };

  /// Time as if nothing had been skipped.
  Cycle virtual_now() const { return gpu_.now() + static_cast<Cycle>(skipped_cycles_); }

  TimingCounters virtual_counters() const {
    TimingCounters counters = gpu_.counters();
    add_scaled(counters, skipped_, TimingCounters{}, 1);
    return counters;
  }

  Mark mark_now() const {
    return {virtual_now(), gpu_.finished_blocks() + skipped_blocks_, gpu_.issued() + skipped_instructions_,
            virtual_counters()};
  }

  /// Spans as if nothing had been skipped, and where something was.
  void put_on_the_clock(TimingResult& result) const {
    result.spans = gpu_.spans();
    const auto moved = [&](Cycle at) {
      const auto after =
          std::upper_bound(skips_.begin(), skips_.end(), at, [](Cycle t, const Skip& s) { return t <= s.at; });
      return at + static_cast<Cycle>(after == skips_.begin() ? 0 : std::prev(after)->cycles_so_far);
    };
    for (BlockSpan& span : result.spans) {
      span.start = moved(span.start);
      span.end = moved(span.end);
    }
    double before = 0;
    for (const Skip& skip : skips_) {
      result.skipped.push_back(
          {skip.at + static_cast<Cycle>(before), skip.at + static_cast<Cycle>(skip.cycles_so_far)});
      before = skip.cycles_so_far;
    }
  }

  void note_skip() { skips_.push_back({gpu_.now(), skipped_cycles_}); }

  /// What has been simulated so far has cost.
  std::uint64_t work() const {
    const TimingCounters counters = gpu_.counters();
    return counters.instructions_issued + counters.l1_tag_lookups / kLookupsPerUnit +
           (counters.memory.read_requests + counters.memory.write_requests) * kUnitsPerRequest;
  }

  /// Too much has been spent, and as much lies ahead.
  bool out_of_patience() const {
    const double spent = static_cast<double>(work_) / static_cast<double>(options_.detailed_instructions * kPatience);
    const std::uint64_t done = gpu_.issued() + skipped_instructions_;
    const double ahead =
        static_cast<double>(instructions_ - std::min(instructions_, done)) / static_cast<double>(gpu_.issued());
    return spent > 1 && spent * (1 + ahead) > kOverdraft;
  }

  bool run_skipping() {
    std::uint64_t looked_at = 0;  // issued then
    while (!gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice)) {
      gpu_.advance_to(gpu_.now() + kSlice);
      if (try_skip_blocks()) continue;
      try_skip_iterations();
      if (gpu_.issued() - looked_at < options_.detailed_instructions / 4) continue;
      looked_at = gpu_.issued();
      work_ = work();
      if (out_of_patience()) return false;
      checkpoints_.push_back(mark_now());
    }
    return true;
  }

  // --- Waves -------------------------------------------------------------------------------------------------------
  // Every time another wave's worth of blocks has left, its time is noted; once waves agree, whole ones are left out.
  bool try_skip_blocks() {
    if (gpu_.finished_blocks() + skipped_blocks_ < next_mark_) return false;
    next_mark_ += mark_blocks_;
    marks_.push_back(mark_now());
    const std::size_t n = marks_.size() - 1;
    // Blocks that fill the budget with a wave or two are worth fewer of them.
    const bool late = gpu_.issued() > options_.detailed_instructions,
               hurry = work_ > options_.detailed_instructions * kHurry;
    const bool dear = late && wave_instructions_ > options_.detailed_instructions / 2;
    if (n < (dear ? 2u : 6u)) return false;
    const std::uint64_t left = blocks_ - gpu_.dispatcher().dispatched();
    if (left < (dear ? 1 : 2) * wave_) return false;
    // The more marks there are, the longer the times that are compared.
    const std::size_t width = std::max<std::size_t>(1, n / 3);
    const double last = cycles_per_instruction(marks_[n - width], marks_[n]);
    const double drift = std::abs(last - cycles_per_instruction(marks_[n - 2 * width], marks_[n - width])) / last;
    if (drift > (late ? 3 * kSteady : kSteady) && !hurry) return false;
    unsteady_ = unsteady_ || drift > 3 * kSteady;
    uncertainty_ = std::max(uncertainty_, drift);
    const Mark& reference = marks_[hurry ? n / 2 : n - 2 * width];
    const std::uint64_t most = left / wave_ - (dear ? 0 : 1);  // the tail remains
    const std::uint64_t filling = saturated_ ? 0 : waves_until_full(reference);
    if (filling > 0 && filling + 6 * mark_blocks_ / wave_ <= most) {
      // L2 has to be full, and dirty, before the rate is the one that lasts: fill it and measure again.
      skip_waves(reference, filling);
      saturated_ = true;
      const Mark now = mark_now();
      marks_.assign(1, now);
      next_mark_ = now.blocks + mark_blocks_;
      return true;
    }
    skip_waves(reference, most);
    next_mark_ = ~std::uint64_t{0};  // what is left is the tail
    return true;
  }

  static double cycles_per_instruction(const Mark& from, const Mark& to) {
    return static_cast<double>(to.at - from.at) /
           static_cast<double>(std::max<std::uint64_t>(1, to.instructions - from.instructions));
  }

  /// Waves after which everything in L2 has been replaced, at the rate at which data was brought in since `reference`.
  std::uint64_t waves_until_full(const Mark& reference) const {
    const TimingCounters &later = marks_.back().counters, &earlier = reference.counters;
    const auto brought = [](const TimingCounters& c) {
      return static_cast<double>(c.memory.miss_sectors + c.memory.write_sectors) * kSectorBytes;
    };
    const double by_wave = (brought(later) - brought(earlier)) * static_cast<double>(wave_) /
                           static_cast<double>(marks_.back().blocks - reference.blocks);
    const double missing = kRefill * static_cast<double>(context_.gpu.l2.bytes) - brought(later);
    return by_wave <= 0 || missing <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(missing / by_wave));
  }

  std::uint64_t instructions_of(std::uint64_t first, std::uint64_t count) const {
    if (class_instructions_.size() == 1) return class_instructions_[0] * count;
    std::uint64_t sum = 0;
    for (std::uint64_t block = first; block < first + count; ++block)
      sum += class_instructions_[context_.classes.class_of(block)];
    return sum;
  }

  /// Leaves out whole waves at the rate since `reference`.
  void skip_waves(const Mark& reference, std::uint64_t waves) {
    const Mark& last = marks_.back();
    const std::uint64_t first = gpu_.dispatcher().dispatched(), count = waves * wave_;
    const std::uint64_t instructions = instructions_of(first, count);
    const double factor =
        static_cast<double>(instructions) / static_cast<double>(last.instructions - reference.instructions);
    skipped_cycles_ += factor * static_cast<double>(last.at - reference.at);
    note_skip();
    const std::uint64_t read = skipped_.memory.dram_read_bytes, written = skipped_.memory.dram_write_bytes;
    add_scaled(skipped_, last.counters, reference.counters, factor);
    // All of them touch L2 if that is affordable; else the last, so that the tail finds L2 as it would be.
    const std::uint64_t touched =
        std::min(count, kMostTouches / std::max<std::uint64_t>(1, footprint().lines_per_block()));
    const SkippedAccesses::Traffic traffic = footprint().touch(first + count - touched, touched, gpu_.memory());
    if (touched == count) {
      skipped_.memory.dram_read_bytes = read + traffic.dram_read_bytes;
      skipped_.memory.dram_write_bytes = written + traffic.dram_write_bytes;
    }
    gpu_.dispatcher().skip(count);
    skipped_blocks_ += count;
    skipped_instructions_ += instructions;
  }

  BlockFootprint& footprint() {
    if (!footprint_) footprint_.emplace(context_, wave_);
    return *footprint_;
  }

  // --- Loops -------------------------------------------------------------------------------------------------------
  // While every resident warp is inside its loop, the mean iterations a cycle are measured over windows; once two
  // windows agree, all warps go on by what they would do in the same time. The first wave looks again half way.
  void try_skip_iterations() {
    const LoopProgress progress = gpu_.loop_progress();
    if (!same_warps(progress, window_.progress)) {
      restart_window(progress);
      return;
    }
    // Counted in instructions, so that a window need not start and end where iterations do.
    const double moved =
        static_cast<double>(gpu_.issued() - window_.issued) / static_cast<double>(progress.iteration_instructions);
    const double window = least_move(progress);
    if (moved < window || gpu_.now() - window_.at < kLeastWindow) return;
    const double rate = moved / static_cast<double>(gpu_.now() - window_.at);
    // A later wave that runs as the one before did need not be watched as long.
    const bool known = last_rate_ > 0 && std::abs(rate - last_rate_) < 2 * kSteady * rate;
    // Half way, the mean of both ends serves for what lies between.
    const double limit = (open_skip_.rate > 0 ? 3 : 1) * kSteady;
    const bool steady = known || (window_.rate > 0 && std::abs(rate - window_.rate) < limit * rate);
    double most = iterations_ahead(progress, rate);
    if (!steady || most < kLeastSkip) {
      restart_window(progress);
      window_.rate = rate;
      return;
    }
    const double other = window_.rate > 0 ? window_.rate : last_rate_;
    correct_open_skip(rate);
    const double half = (most - std::min(most, window)) / 2;
    const bool again = last_rate_ == 0 && open_skip_.rate == 0 && half >= 2 * window && half >= kLeastSkip;
    if (again) most = half;
    skip_iterations(progress, most, rate, (rate + other) / 2);
    uncertainty_ = std::max(uncertainty_, std::abs(rate - other) / rate);
    if (again)
      open_skip_ = {most, (rate + other) / 2, gpu_.dispatcher().dispatched()};
    else
      last_rate_ = rate;
    restart_window(gpu_.loop_progress());
    if (again) window_.rate = rate;
  }

  static bool same_warps(const LoopProgress& a, const LoopProgress& b) {
    if (!a.all_inside || a.warps == 0 || a.warps != b.warps) return false;
    for (std::size_t g = 0; g < LoopProgress::kGroups; ++g)
      if (a.groups[g].warps != b.groups[g].warps) return false;
    return true;
  }

  /// Iterations a cycle of the warps of a group since the window began.
  double group_rate(const LoopProgress& progress, std::size_t group) const {
    const LoopProgress::Group& now = progress.groups[group];
    if (now.warps == 0) return 0;
    return static_cast<double>(now.issued - window_.progress.groups[group].issued) /
           static_cast<double>(now.iteration_instructions) / static_cast<double>(gpu_.now() - window_.at);
  }

  /// Iterations that the mean warp has before it when the first is about to leave its loop.
  double iterations_ahead(const LoopProgress& progress, double rate) const {
    const double margin = std::clamp(std::ceil(kExit * rate), 1.0, kMostMargin);
    double cycles = 1e18;
    for (std::size_t g = 0; g < LoopProgress::kGroups; ++g)
      if (const double r = group_rate(progress, g); r > 0)
        cycles = std::min(cycles, (progress.groups[g].least_remaining - margin) / r);
    return cycles * rate;
  }

  /// Iterations a window spans: a share of the budget, so that short bodies are averaged over many, and whole lines.
  double least_move(const LoopProgress& progress) const {
    const double budget =
        static_cast<double>(options_.detailed_instructions) / static_cast<double>(progress.iteration_instructions);
    const double share = std::ceil(std::clamp(budget / kWindows, 1.0, 32.0));
    const double period = static_cast<double>(line_period_);
    return period * 2 > budget ? share : std::ceil(share / period) * period;
  }

  void restart_window(const LoopProgress& progress) {
    window_ = {};
    window_.at = gpu_.now();
    window_.issued = gpu_.issued();
    if (!progress.all_inside) return;
    window_.progress = progress;
    window_.counters = gpu_.counters();
  }

  /// The part that was left out ran at the mean of the rates before and after it.
  void correct_open_skip(double rate) {
    if (open_skip_.rate > 0 && open_skip_.wave == gpu_.dispatcher().dispatched()) {
      skipped_cycles_ += open_skip_.iterations * (2 / (open_skip_.rate + rate) - 1 / open_skip_.rate);
      if (!skips_.empty()) skips_.back().cycles_so_far = skipped_cycles_;
    }
  }

  /// Leaves out so many iterations of the mean warp. `seen`: the rate of the window, `rate`: the one to reckon with.
  void skip_iterations(const LoopProgress& progress, double iterations, double seen, double rate) {
    Gpu::IterationCounts counts{};
    std::uint64_t instructions = 0, most = 0;
    for (std::size_t g = 0; g < LoopProgress::kGroups; ++g) {
      counts[g] = static_cast<std::uint32_t>(iterations * group_rate(progress, g) / seen);
      instructions += counts[g] * progress.groups[g].iteration_instructions;
      most = std::max<std::uint64_t>(most, counts[g]);
    }
    const double cycles =
        static_cast<double>(instructions) / static_cast<double>(progress.iteration_instructions) / rate;
    const TimingCounters now = gpu_.counters();
    const SkippedAccesses::Traffic traffic = gpu_.skip_iterations(counts);
    // Lines that nobody had touched come from DRAM once; what the window measured would count its own reuse again.
    const std::uint64_t read = skipped_.memory.dram_read_bytes + traffic.dram_read_bytes;
    const std::uint64_t written = skipped_.memory.dram_write_bytes + traffic.dram_write_bytes;
    add_scaled(skipped_, now, window_.counters, cycles / static_cast<double>(gpu_.now() - window_.at));
    skipped_.memory.dram_read_bytes = read;
    skipped_.memory.dram_write_bytes = written;
    skipped_cycles_ += cycles;
    note_skip();
    skipped_iterations_ += most;
    skipped_instructions_ += instructions;
  }

  // --- Launches that do not settle ---------------------------------------------------------------------------------
  /// The rest runs at the rate of the last part of what was simulated; what it moves is found by touching L2.
  void extrapolate_rest(TimingResult& result) {
    const Mark now = mark_now();
    const auto reference = std::find_if(checkpoints_.rbegin(), checkpoints_.rend(),
                                        [&](const Mark& m) { return m.instructions <= now.instructions / 2; });
    const std::uint64_t seen = now.instructions - reference->instructions;
    const double factor =
        static_cast<double>(instructions_ - std::min(instructions_, now.instructions)) / static_cast<double>(seen);
    const std::uint64_t read = result.counters.memory.dram_read_bytes,
                        written = result.counters.memory.dram_write_bytes;
    add_scaled(result.counters, now.counters, reference->counters, factor);
    const std::vector<BlockProgress> in_flight = gpu_.blocks_in_flight();
    const std::uint64_t first = gpu_.dispatcher().dispatched();
    if (footprint().lines_per_block() < kMostTouches / std::max<std::uint64_t>(1, blocks_ - first + wave_)) {
      SkippedAccesses::Traffic traffic = footprint().finish(in_flight, gpu_.memory());
      traffic += footprint().touch(first, blocks_ - first, gpu_.memory());
      result.counters.memory.dram_read_bytes = read + traffic.dram_read_bytes;
      result.counters.memory.dram_write_bytes = written + traffic.dram_write_bytes;
    }
    const Cycle so_far = result.elapsed_cycles;
    const SmRate rate = observed_rate(now.counters, reference->counters, seen, context_.warps_per_block);
    result.elapsed_cycles += static_cast<Cycle>(remaining_cycles(in_flight, rate));
    result.skipped.push_back({so_far, result.elapsed_cycles});
    uncertainty_ = std::max(uncertainty_, 0.15);
    result.warnings.push_back(
        "the launch did not settle within the detailed budget; its rest was taken to run at the rate of its last part");
  }

  double remaining_cycles(const std::vector<BlockProgress>& in_flight, const SmRate& rate) const {
    const auto instructions = [&](std::uint64_t block) {
      return static_cast<double>(class_instructions_[context_.classes.class_of(block)]);
    };
    std::vector<std::vector<double>> by_sm(static_cast<std::size_t>(context_.gpu.chip.sm_count));
    for (const BlockProgress& block : in_flight)
      by_sm[block.sm].push_back(instructions(block.block) * (1 - block.done));
    const std::uint64_t first = gpu_.dispatcher().dispatched();
    return rest_cycles(std::move(by_sm), blocks_ - first, context_.blocks_per_sm, rate,
                       [&](std::uint64_t i) { return instructions(first + i); });
  }

  void describe(TimingResult& result, bool over) const {
    std::string& method = result.coverage.method;
    if (skipped_iterations_ > 0) method += std::to_string(skipped_iterations_) + " steady loop iterations";
    if (skipped_blocks_ > 0)
      method += (method.empty() ? "" : " and ") + std::to_string(skipped_blocks_) + " blocks in " +
                (unsteady_ ? "unsteady" : "steady") + " waves";
    if (!over) method += (method.empty() ? "" : " and ") + std::string("the rest at the rate of its last part");
    method = method.empty() ? "every instruction simulated" : method + " extrapolated";
    if (unsteady_)
      result.warnings.push_back(
          "the launch's waves did not settle within the detailed budget; the rest of them was taken to run at their "
          "mean rate");
    result.coverage.uncertainty_pct = 100 * uncertainty_;
  }

  LaunchContext context_;
  SimulateOptions options_;
  Gpu gpu_;
  std::vector<std::vector<PathLoop>> loops_;
  std::uint32_t line_period_ = 1;
  std::vector<std::uint64_t> class_instructions_;  ///< of a block
  std::uint64_t blocks_ = 0, wave_ = 0, instructions_ = 0, wave_instructions_ = 0, mark_blocks_ = 0, next_mark_ = 0;
  std::uint64_t skipped_blocks_ = 0, skipped_iterations_ = 0, skipped_instructions_ = 0, work_ = 0;
  double skipped_cycles_ = 0, uncertainty_ = 0, last_rate_ = 0;
  TimingCounters skipped_;
  std::vector<Mark> marks_;  ///< the launch's start, then waves
  std::vector<Mark> checkpoints_;
  std::vector<Skip> skips_;
  std::optional<BlockFootprint> footprint_;
  bool saturated_ = false, unsteady_ = false;
  Window window_;
  OpenSkip open_skip_;
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before) {
  return SteadyState(context, options, before).run();
}

}  // namespace forewarp
