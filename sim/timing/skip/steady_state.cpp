#include "timing/skip/steady_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "hardware/occupancy.h"
#include "timing/gpu/gpu.h"
#include "timing/skip/block_footprint.h"
#include "timing/skip/estimate.h"
#include "timing/skip/gpu_loops.h"
#include "timing/skip/loop_bodies.h"
#include "timing/skip/loop_watch.h"
#include "timing/skip/loops.h"
#include "timing/skip/rest_schedule.h"
#include "timing/skip/scaled_counters.h"

namespace forewarp {
namespace {

constexpr double kRefill = 1.0;  // L2's size that must have come in before its state counts as steady
constexpr std::uint64_t kMostTouches = 40'000'000;  // lines touched in L2 for skipped blocks; more would take seconds
constexpr std::uint64_t kTouchedWaves = 500'000;    // ... in all slices; of more, in some of them
constexpr double kStoredOften = 4;                  // times what L2 keeps dirty: little of it is there before or after
// Of a launch's rest, in lines: all slices are touched for so many in each of its seconds, of which a half to eight
// count, some of them for more; of more than kSeenRest, stretches of time are. Products of 4096 come out within 1 % of
// what touching all of them gives, at a tenth of its cost.
constexpr double kTouchedRest = 500'000, kLeastForRest = 0.5, kMostForRest = 8;
constexpr std::uint64_t kSeenRest = 40'000'000, kSeenInStretches = 20'000'000;
// The last of them in any case, so that as much is dirty as would be: times L2's lines.
constexpr std::uint64_t kAtTheEnd = 2;
// Blocks whose rates differ by less stay in step: those behind find in L2 what the others have brought. Not the measure
// of loop_progress.cpp, which is of short stretches: with it 0.47 of sgemm_shared_tiled_4096's reads from memory were
// lost.
constexpr double kInStep = 0.05;
constexpr std::uint64_t kWindows = 8;  // the budget pays for so many windows
constexpr Cycle kSlice = 128;          // cycles between two looks at the progress
// Slices between two looks at what has been spent: at most so many, and no more than that part of the seconds takes.
constexpr double kSlicesALook = 32, kSpentALook = 1. / 64;
constexpr double kSteady = 0.02;  // two windows agree when their rates differ by less
// Of DRAM's bandwidth, by which what is dirty in L2 may grow: what is not written back yet will be, and takes its time
// then (transposes that have brought in twice what L2 holds are still 10 % faster than later).
constexpr double kDirtyGrowth = 0.03;
constexpr Cycle kExit = 4096;      // cycles of a loop left after a skip: what its exit still waits for
constexpr double kMostMargin = 3;  // ... in iterations, at most
// Of what is left out, what no window shows (blocks that fall behind one by one, a rate that drifts later): twice the
// standard deviation that remains against --full where the windows of a launch agree.
constexpr double kUnseen = 0.04;
// ... and of the rest of a launch that did not settle, of which nothing was seen: or as much of it as is unlike what it
// is taken to be like, if that is more.
constexpr double kUnsettled = 0.1;
// A last part is taken for the rest unless another did so much more of what remains.
constexpr double kAlike = 0.1;
constexpr std::uint64_t kBatches = 8;  // parts of what a rest is taken to be like, for its variance
constexpr std::size_t kManyWaves = 6;  // waves, or times of several short ones, that make a rate
// Blocks that stream fall into step and out of it again in about eight waves (kernels of 64 Mi elements in --full), and
// their rate swings by a tenth: short ones are averaged over so many, by two of each three marks.
constexpr std::uint64_t kSwing = 6;
constexpr double kAffordedSwing = 6;  // budgets of host_cost()
// Waves that say how long it takes until L2 is full, where so many times as much follows.
constexpr std::size_t kFewWaves = 3, kFewFill = 4;
// Blocks that were moved on stream up to a tenth faster than those that have been side by side for long, for so many
// marks (tile_column_sums_8192x4097; --full beside the default).
constexpr std::uint64_t kSettle = 6;
constexpr double kLeastSkip = 6;         // iterations worth skipping
constexpr double kShort = 0.05;          // of what lies ahead, whose rate hardly counts
constexpr double kGrowth = 4;            // the first wave's next part, in iterations that it has behind it
constexpr std::uint64_t kWhole = 3;      // times the budget up to which a launch costs hardly more than a part of it
constexpr std::uint64_t kManyLooks = 3;  // times the budget after which a wave under way is looked at once more at most
constexpr std::uint64_t kHurry = 7;      // times the budget after which waves are left out even if they differ
constexpr std::uint64_t kPatience = 10;  // times the budget after which a launch is extrapolated as it is
constexpr std::uint64_t kPatienceKnown = 5;
// ... or as soon as what is left of a wave is so much of it, where the rate of its loop is known and waves follow.
constexpr double kNothingNew = 0.02;
constexpr double kOverdraft = 2.0;  // ... unless it would be done for so many times as much
// Budgets of host_cost() that a launch is worth following to its end for, where less than a wave has yet to start
// beside others that end: some eight seconds on one thread.
constexpr double kFollowed = 45;
// What simulating costs, in warp instructions: memory lines are work too.
constexpr std::uint64_t kLookupsPerUnit = 4, kUnitsPerRequest = 1;
// What the host takes for a line in L1 and below it, in warp instructions: the products and the copy of forewarp bench.
constexpr std::uint64_t kHostLookup = 1, kHostRequest = 20;

// Processor seconds for a warp instruction, a line looked up in L1, a request below it, a sector of an atomic operation
// and one of DRAM, at a nominal speed, and for a line of BlockFootprint::work() (FINDINGS.md: what a prediction costs).
constexpr double kSecondsAnInstruction = 1 / 5.4e6, kSecondsALookup = 1 / 4e6, kSecondsARequest = 1 / 0.95e6,
                 kSecondsAnAtomic = 1 / 2.5e6, kSecondsASector = 1 / 1.2e6, kSecondsALine = 1 / 10e6;
// Times as much detail as before when an interval is too wide: what was spent before is a third of it, or no more than
// the rest of the budget.
constexpr double kMore = 4, kLeastMore = 2;
constexpr double kFirstWave = 0.8;   // of the budget in seconds that a first wave may take
constexpr double kFewSms = 1. / 16;  // ... that each of the two looks at few SMs may take
constexpr std::size_t kFewOf = 8;    // ... which are at most one of so many
// ... that is kept for what follows a launch which stops early: those looks, and touching L2 for the rest. What listing
// its lines takes comes to that.
constexpr double kForRest = 0.1;
// ... that listing the lines of blocks may take; where it would take more, the rest moves in proportion to what was
// seen.
constexpr double kForLines = 0.5;

std::uint64_t block_instructions(const BlockClass& cls) {
  std::uint64_t block = 0;
  for (const WarpTrace& warp : cls.warps) block += cls.paths[warp.path].instructions;
  return block;
}

std::uint32_t longest_line_period(const Loops& loops) {
  std::uint32_t period = 1;
  for (const std::vector<PathLoops>& paths : loops)
    for (const PathLoops& of_path : paths)
      for (const PathLoop& loop : of_path) period = std::max(period, loop.line_period);
  return period;
}

std::uint64_t block_lines(const BlockClass& cls) {
  std::uint64_t lines = 0;
  for (const InstructionCount& count : cls.counts) lines += count.lines;
  return lines;
}

/// What simulating a block costs, reckoned like SteadyState::work().
std::uint64_t block_work(const BlockClass& cls) {
  const std::uint64_t lines = block_lines(cls);
  return block_instructions(cls) + lines / kLookupsPerUnit + lines * kUnitsPerRequest;
}

/// Drives a Gpu and skips what repeats.
class SteadyState {
 public:
  /// `for_verdict`: seconds beside those of the options, for a launch that can be simulated whole in all of them.
  SteadyState(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before,
              double for_verdict)
      : recorder_(options.record ? std::optional<BlockRecorder>(std::in_place, *options.record, context.trace.launch)
                                 : std::nullopt),
        context_(context),
        options_(options),
        for_verdict_(for_verdict),
        gpu_(watched_by(context, recorder_), before, options.threads,
             {0, options.blocks > 0 ? options.blocks : ~std::uint64_t{0}}),
        loops_(find_loops(context.trace, context.program)),
        saturated_(before != nullptr),
        watch_(gpu_, loops_, longest_line_period(loops_), options.detailed_instructions),
        bodies_(context_, loops_) {
    const std::uint64_t capacity =
        blocks_at_once(context.gpu, context.blocks_per_sm, context.trace.launch.cluster.count());
    const std::uint64_t grid = context.trace.launch.grid.count();
    blocks_ = options.blocks > 0 ? std::min(options.blocks, grid) : grid;
    wave_ = std::min(capacity, blocks_);
    std::uint64_t work = 0;
    for (const BlockClass& cls : context.trace.classes) {
      class_instructions_.push_back(block_instructions(cls));
      instructions_ += class_instructions_.back() * cls.population;
      work += block_work(cls) * cls.population;
      lines_of_classes_ += block_lines(cls);
    }
    if (blocks_ < grid) {  // what a part of a grid executes, as if all blocks did as much
      const double part = static_cast<double>(blocks_) / static_cast<double>(grid);
      instructions_ = static_cast<std::uint64_t>(part * static_cast<double>(instructions_));
      work = static_cast<std::uint64_t>(part * static_cast<double>(work));
    }
    // Short blocks: several waves at a time, so that their rate is a mean over many.
    total_work_ = work;
    wave_work_ = std::max<std::uint64_t>(1, work / blocks_ * wave_);
    mark_blocks_ = wave_ * std::max<std::uint64_t>(1, options.detailed_instructions / kWindows / wave_work_);
    next_mark_ = mark_blocks_;
    marks_.emplace_back();
    checkpoints_.emplace_back();
    left_.push_back(bodies_.left(gpu_));
  }

  TimingResult run() {
    TimingResult result;
    result.coverage.warp_instructions = instructions_;
    bool over = false;
    if (options_.full) {
      over = gpu_.run(~std::uint64_t{0}, kNever - 1);
    } else {
      over = run_in_time(instructions_ > options_.detailed_instructions &&
                         total_work_ > kWhole * options_.detailed_instructions);
    }
    result.counters = virtual_counters();
    result.elapsed_cycles = over ? gpu_.last_end() + static_cast<Cycle>(skipped_cycles_) : virtual_now();
    put_on_the_clock(result);
    if (!over) extrapolate_rest(result);
    if (!over || skipped_iterations_ > 0 || skipped_blocks_ > 0)
      set_sectors(result.counters, traced_sectors(context_.trace, context_.patterns), misses_known_);
    if (options_.caches == CacheState::Cold) {
      // Code comes from memory once, and so does what the front end reads to launch it.
      const std::uint64_t code =
          std::min(context_.program.code_lines() * static_cast<std::uint64_t>(context_.gpu.icache.line_bytes),
                   static_cast<std::uint64_t>(context_.gpu.icache.launch_bytes));
      result.counters.memory.dram_read_bytes += code + static_cast<std::uint64_t>(context_.gpu.launch.read_bytes);
    }
    result.elapsed_cycles += static_cast<Cycle>(context_.gpu.launch.end_cycles);
    result.instruction_stalls = gpu_.instruction_stalls();
    result.coverage.simulated_warp_instructions = gpu_.issued();
    result.coverage.extrapolated = skipped_iterations_ > 0 || skipped_blocks_ > 0 || !over;
    describe(result, over);
    if (recorder_) hand_over_record(result);
    return result;
  }

  /// Processor seconds spent so far, at a nominal speed.
  double seconds() const { return seconds(gpu_.counters()) + aside_ + seconds_of_lines(); }
  double seconds_of_lines() const { return footprint_ ? static_cast<double>(footprint_->work()) * kSecondsALine : 0; }
  static double seconds(const TimingCounters& c) {
    return static_cast<double>(c.instructions_issued) * kSecondsAnInstruction +
           static_cast<double>(c.l1_tag_lookups) * kSecondsALookup +
           static_cast<double>(c.memory.read_requests + c.memory.write_requests) * kSecondsARequest +
           static_cast<double>(c.memory.atomic_sectors + c.memory.reduction_sectors) * kSecondsAnAtomic +
           static_cast<double>(c.memory.dram_read_bytes + c.memory.dram_write_bytes) / kSectorBytes * kSecondsASector;
  }
  /// What all of the launch would take; of one of which nothing was seen, that is not known.
  double seconds_in_full() const {
    if (gpu_.issued() == 0) return std::numeric_limits<double>::infinity();
    return seconds(gpu_.counters()) * static_cast<double>(instructions_) /
           static_cast<double>(std::max<std::uint64_t>(1, gpu_.issued()));
  }

 private:
  /// A part of a loop that was left out at the rate seen before it; what comes after it may correct that.
  struct OpenSkip {
    double iterations = 0, rate = 0;  ///< rate 0: nothing to correct
    std::uint64_t wave = 0;           ///< blocks that had been handed out
    std::uint64_t loops = 0;          ///< of loops_in_flight()
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
    std::vector<FineCycle> backlog;  ///< of L2's atomic units
    std::vector<BlockProgress> in_flight;
    std::uint64_t dirty = 0;            ///< bytes in L2
    std::vector<std::uint64_t> issued;  ///< by SM, simulated
  };

  struct Representative {
    Mark start;
    double unlike = 0;  ///< the part from there on to what is left
  };

  static LaunchContext watched_by(LaunchContext context, std::optional<BlockRecorder>& recorder) {
    context.recorder = recorder ? &*recorder : nullptr;
    return context;
  }

  /// Time as if nothing had been skipped.
  Cycle virtual_now() const { return gpu_.now() + static_cast<Cycle>(skipped_cycles_); }

  TimingCounters virtual_counters() const {
    TimingCounters counters = gpu_.counters();
    add_scaled(counters, skipped_, TimingCounters{}, 1);
    return counters;
  }

  Mark mark_now() const {
    return {virtual_now(),
            gpu_.finished_blocks() + skipped_blocks_,
            gpu_.issued() + skipped_instructions_,
            virtual_counters(),
            gpu_.memory().atomic_backlog(gpu_.now()),
            blocks_in_flight(gpu_, context_.trace),
            gpu_.memory().dirty_bytes(),
            gpu_.issued_by_sm()};
  }

  /// A time of the simulation's own clock, as if nothing had been skipped.
  Cycle moved(Cycle at) const {
    const auto after =
        std::upper_bound(skips_.begin(), skips_.end(), at, [](Cycle t, const Skip& s) { return t <= s.at; });
    return at + static_cast<Cycle>(after == skips_.begin() ? 0 : std::prev(after)->cycles_so_far);
  }

  /// Spans as if nothing had been skipped, and where something was.
  void put_on_the_clock(TimingResult& result) const {
    result.spans = gpu_.spans();
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

  /// What was watched of a block, with what was left out meanwhile; or why there is nothing.
  void hand_over_record(TimingResult& result) {
    for (std::uint16_t id = 0; id < gpu_.sms(); ++id) gpu_.sm(id).close_record(gpu_.now());
    BlockRecord record = recorder_->finish(gpu_.now());
    const std::string block = std::to_string(record.request.block);
    if (record.request.block >= blocks_) {
      result.warnings.push_back("block " + block + " is to be watched, but the launch has " + std::to_string(blocks_) +
                                " blocks: their numbers begin at 0");
      return;
    }
    if (record.blocks.empty()) {
      result.warnings.push_back("block " + block +
                                " is to be watched, but it is among those that were extrapolated: watch one of the "
                                "first wave, below block " +
                                std::to_string(wave_) + ", or simulate all with --full");
      return;
    }
    record.elapsed = moved(record.start);
    double before = 0;
    for (const Skip& skip : skips_) {
      if (skip.at >= record.start && skip.at < record.end)
        record.left_out.push_back({skip.at, static_cast<Cycle>(skip.cycles_so_far - before)});
      before = skip.cycles_so_far;
    }
    result.record = std::make_shared<const BlockRecord>(std::move(record));
  }

  void note_skip() {
    skips_.push_back({gpu_.now(), skipped_cycles_});
    instructions_at_skip_ = gpu_.issued() + skipped_instructions_;
    add_checkpoint();
  }

  /// What has been simulated so far has cost.
  std::uint64_t work() const {
    const TimingCounters counters = gpu_.counters();
    return counters.instructions_issued + counters.l1_tag_lookups / kLookupsPerUnit +
           (counters.memory.read_requests + counters.memory.write_requests) * kUnitsPerRequest;
  }

  /// ... in the time that the host takes for a warp instruction by itself: what work() leaves to memory is less, so
  /// that launches which it bounds are looked at for as long as others.
  static double host_cost(const TimingCounters& counters) {
    return static_cast<double>(counters.instructions_issued + counters.l1_tag_lookups * kHostLookup +
                               (counters.memory.read_requests + counters.memory.write_requests) * kHostRequest);
  }

  /// The budget in seconds is spent but for what the rest takes, and what is ahead takes more than is left of it, with
  /// the verdict's share: a launch that has been simulated whole needs no extrapolation. One whose rest is unlike all
  /// that was seen has that share as well: there is nothing to explain before it is known.
  bool overspent() {
    const double spent = seconds(), budget = options_.effort.seconds;
    const double before_rest = (1 - kForRest) * budget - (lists_lines() ? seconds_to_list() : 0);
    if (spent <= before_rest) return false;
    const auto done = static_cast<double>(gpu_.issued() + skipped_instructions_);
    if (spent * static_cast<double>(instructions_) / done <= budget + for_verdict_) return false;
    return spent > before_rest + for_verdict_ || representative_start(mark_now()).unlike <= kAlike;
  }

  /// The lines of blocks, before the first is left out.
  double seconds_to_list() const {
    if (footprint_ || context_.trace.classes.size() > BlockFootprint::kKeptClasses) return 0;
    return static_cast<double>(lines_of_classes_) * kSecondsALine;
  }

  bool lists_lines() const { return seconds_to_list() <= kForLines * options_.effort.seconds; }

  double wave_host_cost() const {
    return host_cost(gpu_.counters()) / static_cast<double>(gpu_.finished_blocks()) * static_cast<double>(wave_);
  }

  /// Too much has been spent, and as much lies ahead.
  bool out_of_patience() {
    // Whole waves of loops whose rate is known: they would only show it again, but for the second.
    const bool known = last_rate_ > 0 && blocks_ - gpu_.dispatcher().dispatched() >= 3 * wave_;
    if (known && gpu_.dispatcher().dispatched() > wave_ && left_in_flight() < kNothingNew * wave_instructions())
      return true;
    // Where no wave has ended, there is none to compare with another.
    const bool compares = marks_.size() > 1 || skipped_blocks_ > 0;
    if (!compares) return false;
    const std::uint64_t patience = known ? kPatienceKnown : kPatience;
    // What could be left out so far can be left out of what lies ahead, too.
    const std::uint64_t done = gpu_.issued() + skipped_instructions_;
    const double ahead = static_cast<double>(instructions_ - std::min(instructions_, done)) / static_cast<double>(done);
    const double budget = static_cast<double>(options_.detailed_instructions);
    const double spent = static_cast<double>(work_) / budget / static_cast<double>(patience);
    if (spent <= 1 || spent * (1 + ahead) <= kOverdraft) return false;
    // Where less than a wave waits, most of what lies ahead is the end, in which SMs hold fewer and fewer blocks: there
    // is nothing that it is like.
    const bool ends = blocks_ - gpu_.dispatcher().dispatched() < wave_;
    return !ends || host_cost(gpu_.counters()) * (1 + ahead) > kFollowed * budget;
  }

  /// Instructions of a mean wave.
  double wave_instructions() const {
    return static_cast<double>(instructions_) / static_cast<double>(blocks_) * static_cast<double>(wave_);
  }

  /// Instructions that blocks in flight have before them.
  double left_in_flight() const {
    const std::uint64_t begun = instructions_of(0, gpu_.dispatcher().dispatched());
    return static_cast<double>(begun) - static_cast<double>(gpu_.issued() + skipped_instructions_);
  }

  /// Whether the launch was followed to its end before the budget was spent.
  bool run_in_time(bool skips) {
    std::uint64_t looked_at = 0;  // issued then
    std::uint64_t last_look = 0, next_look = 0;
    double spent = 0;
    for (std::uint64_t slice = 0; !gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice); ++slice) {
      gpu_.advance_to(gpu_.now() + kSlice);
      keep_l2_of_last_wave();
      if (slice >= next_look) {
        if (overspent()) return false;
        const double now = seconds(), of_slice = (now - spent) / static_cast<double>(slice - last_look + 1);
        const double affords = kSpentALook * options_.effort.seconds / std::max(of_slice, 1e-9);
        last_look = slice + 1;
        next_look = last_look + static_cast<std::uint64_t>(std::min(kSlicesALook, affords));
        spent = now;
      }
      if (skips && try_skip_blocks()) continue;
      if (skips) try_skip_iterations();
      if (gpu_.issued() - looked_at < options_.detailed_instructions / 4) continue;
      looked_at = gpu_.issued();
      work_ = work();
      if (skips && out_of_patience()) return false;
      add_checkpoint();
    }
    return true;
  }

  /// What the last wave is about to read is not there yet, unless others have read it.
  void keep_l2_of_last_wave() {
    const std::uint64_t begun = gpu_.dispatcher().dispatched();
    if (before_last_wave_ || begun <= wave_ || begun == blocks_ || blocks_ - begun > (blocks_ - 1) % wave_ + 1) return;
    before_last_wave_.emplace(context_.gpu, MemorySystem::L2Start::Empty);
    before_last_wave_->copy_lines(gpu_.memory());
  }

  void add_checkpoint() {
    checkpoints_.push_back(mark_now());
    left_.push_back(bodies_.left(gpu_));
  }

  // --- Waves -------------------------------------------------------------------------------------------------------
  // Every time another wave's worth of blocks has left, its time is noted; once waves agree, whole ones are left out.
  bool try_skip_blocks() {
    if (gpu_.finished_blocks() + skipped_blocks_ < next_mark_) return false;
    next_mark_ += mark_blocks_;
    marks_.push_back(mark_now());
    if (settling_ && marks_.size() > 1) {
      settling_ = false;
      marks_.erase(marks_.begin());
      return false;
    }
    // Short waves from before L2 was full say little of those that follow.
    if (!saturated_ && wave_work_ <= options_.detailed_instructions / 2 && missing(marks_.back().counters) <= 0) {
      measure_anew();
      if (kSwing * wave_host_cost() <= kAffordedSwing * static_cast<double>(options_.detailed_instructions))
        many_ = std::max(kManyWaves, static_cast<std::size_t>(kSwing * wave_ / mark_blocks_ * 3 / 2));
      return false;
    }
    const std::size_t n = marks_.size() - 1;
    // Blocks that fill the budget with a wave or two are worth fewer of them.
    const bool late = work() > options_.detailed_instructions, hurry = work_ > options_.detailed_instructions * kHurry;
    const bool dear = late && wave_work_ > options_.detailed_instructions / 2;
    // L2 was filled after waves that agreed: one that is like them says that it made no difference.
    const bool same =
        n == 1 && dear && rates_differ_by(filled_rate_, cycles_per_instruction(marks_[0], marks_[1])) < 3 * kSteady;
    const std::uint64_t left = blocks_ - gpu_.dispatcher().dispatched();
    if (left < (dear ? 1 : 2) * wave_) return false;
    if (n < (same ? 1 : hurry ? 2 : dear ? 3 : fills_soon(n, left) ? kFewWaves : many_)) return false;
    // The more marks there are, the longer the times that are compared.
    const std::size_t width = std::max<std::size_t>(1, n / 3);
    const double last = cycles_per_instruction(marks_[n - width], marks_[n]);
    const double earlier = same ? filled_rate_ : cycles_per_instruction(marks_[n - 2 * width], marks_[n - width]);
    const double drift = rates_differ_by(earlier, last);
    if (drift > (late ? 3 * kSteady : kSteady) && !hurry) return false;
    if (dirty_growth(marks_[n - width]) > kDirtyGrowth && !hurry) return false;
    unsteady_ = unsteady_ || drift > 3 * kSteady;
    // While what is dirty grew, DRAM had less to write than it will have.
    const bool grew = n >= 2 * width && dirty_growth(marks_[n - 2 * width]) > kDirtyGrowth;
    // Where waves differ, all that have been seen since L2 is full are as good as the last.
    const Mark& reference = marks_[hurry && saturated_ ? 0 : n - (hurry || same || grew ? 1 : 2) * width];
    const std::uint64_t most = left / wave_ - (dear ? 0 : 1);  // the tail remains
    const std::uint64_t filling = saturated_ ? 0 : waves_until_full(reference);
    if ((filling > 0 && filling < most) || (filling == 0 && !saturated_ && missing(reference.counters) > 0)) {
      // L2 has to be full, and dirty, before the rate is the one that lasts: fill it and measure again.
      filled_rate_ = cycles_per_instruction(reference, marks_[n]);
      if (filling > 0) skip_waves(reference, filling, drift);
      measure_anew();
      if (filling > 0 && kSettle * mark_blocks_ / wave_ * wave_work_ <= options_.detailed_instructions) {
        settling_ = true;
        next_mark_ += (kSettle - 1) * mark_blocks_;
      }
      return true;
    }
    // A few waves may agree by chance: blocks that start together only fall out of step after many.
    skip_waves(reference, most, drift);
    next_mark_ = ~std::uint64_t{0};  // what is left is the tail
    return true;
  }

  /// L2 will be full after waves that are little of what lies ahead: a few say how long they take.
  bool fills_soon(std::size_t n, std::uint64_t left) const {
    return !saturated_ && n >= kFewWaves && kFewFill * waves_until_full(marks_[n - kFewWaves + 1]) < left / wave_;
  }

  /// L2 is full now.
  void measure_anew() {
    saturated_ = true;
    marks_.assign(1, mark_now());
    next_mark_ = marks_.back().blocks + mark_blocks_;
  }

  static double cycles_per_instruction(const Mark& from, const Mark& to) {
    return static_cast<double>(to.at - from.at) /
           static_cast<double>(std::max<std::uint64_t>(1, to.instructions - from.instructions));
  }

  static double rates_differ_by(double earlier, double later) { return std::abs(later - earlier) / later; }

  /// Bytes that have become dirty since a mark, in proportion to what DRAM could have taken.
  double dirty_growth(const Mark& since) const {
    const Mark& last = marks_.back();
    const double by_cycle = context_.gpu.hbm.bytes_per_ns * 1000 / context_.gpu.chip.sm_clock_mhz;
    return (static_cast<double>(last.dirty) - static_cast<double>(since.dirty)) /
           (static_cast<double>(last.at - since.at) * by_cycle);
  }

  /// Bytes that have been put into L2, the copies in the other partition too.
  static double brought(const TimingCounters& c) {
    const MemoryCounters& m = c.memory;
    return static_cast<double>(m.miss_sectors + m.write_sectors + m.fabric_hit_sectors + m.fabric_miss_sectors) *
           kSectorBytes;
  }

  /// Bytes that have to come in before everything in L2 has been replaced.
  double missing(const TimingCounters& c) const {
    return kRefill * static_cast<double>(context_.gpu.l2.bytes) - brought(c);
  }

  /// Waves after which everything in L2 has been replaced, at the rate at which data was brought in since `reference`.
  std::uint64_t waves_until_full(const Mark& reference) const {
    const TimingCounters &later = marks_.back().counters, &earlier = reference.counters;
    const double by_wave = (brought(later) - brought(earlier)) * static_cast<double>(wave_) /
                           static_cast<double>(marks_.back().blocks - reference.blocks);
    const double rest = missing(later);
    return by_wave <= 0 || rest <= 0 ? 0 : static_cast<std::uint64_t>(std::ceil(rest / by_wave));
  }

  std::uint64_t instructions_of(std::uint64_t first, std::uint64_t count) const {
    if (class_instructions_.size() == 1) return class_instructions_[0] * count;
    std::uint64_t sum = 0;
    for (std::uint64_t block = first; block < first + count; ++block)
      sum += class_instructions_[context_.classes.class_of(block)];
    return sum;
  }

  /// Leaves out whole waves at the rate since `reference`, which is off that of the waves before by `drift`.
  void skip_waves(const Mark& reference, std::uint64_t waves, double drift) {
    const Mark& last = marks_.back();
    const std::uint64_t first = gpu_.dispatcher().dispatched(), count = waves * wave_;
    const std::uint64_t instructions = instructions_of(first, count);
    const double factor =
        static_cast<double>(instructions) / static_cast<double>(last.instructions - reference.instructions);
    const double cycles = factor * static_cast<double>(last.at - reference.at);
    skipped_cycles_ += cycles;
    neighbours_.push_back({drift, cycles, cycles});
    const MemoryCounters before = skipped_.memory;
    add_scaled(skipped_, last.counters, reference.counters, factor);
    // All of them touch L2 if that is affordable; else the last, so that the tail finds L2 as it would be.
    const bool listed = lists_lines();
    const std::uint64_t touched =
        listed ? std::min(count, kMostTouches / std::max<std::uint64_t>(1, footprint().lines_per_block())) : 0;
    // Some slices stand for all where what is dirty before and after is little of what is stored.
    const std::uint64_t written = last.counters.memory.write_sectors - reference.counters.memory.write_sectors;
    const double stored = factor * static_cast<double>(written * kSectorBytes);
    const double kept = context_.gpu.l2.dirty_share * static_cast<double>(context_.gpu.l2.bytes);
    const std::uint64_t in_all = stored < kStoredOften * kept && stored > 0 ? kMostTouches : kTouchedWaves;
    expect_fetches(last.counters, reference.counters, static_cast<double>(last.at - reference.at));
    const L2Traffic traffic =
        listed ? footprint().touch(first + count - touched, touched, in_all, gpu_.memory()) : L2Traffic{};
    if (touched == count) set_traffic(skipped_.memory, before, traffic);
    misses_known_ = misses_known_ && touched == count;
    std::vector<FineCycle> piled_up = last.backlog;
    for (std::size_t i = 0; i < piled_up.size(); ++i) {
      const FineCycle then = reference.backlog.empty() ? 0 : reference.backlog[i];  // the launch's start has none
      piled_up[i] = static_cast<FineCycle>(factor * static_cast<double>(piled_up[i] - std::min(piled_up[i], then)));
    }
    gpu_.memory().add_atomic_backlog(piled_up);
    gpu_.dispatcher().skip(count);
    skipped_blocks_ += count;
    skipped_instructions_ += instructions;
    note_skip();
  }

  BlockFootprint& footprint() {
    if (!footprint_) footprint_.emplace(context_, wave_, gpu_.crew());
    return *footprint_;
  }

  /// Sectors on their way from DRAM in the mean of a time, by its rate and how long a read takes (Little).
  void expect_fetches(const TimingCounters& later, const TimingCounters& earlier, double cycles) {
    const MemoryCounters &l = later.memory, &e = earlier.memory;
    const std::uint64_t replies = l.read_replies - e.read_replies;
    const double each = replies == 0 ? 0
                                     : static_cast<double>(l.read_latency_cycles - e.read_latency_cycles) /
                                           static_cast<double>(replies);
    gpu_.memory().expect_fetches(static_cast<double>(l.dram_read_bytes - e.dram_read_bytes) / kSectorBytes * each /
                                 std::max(1.0, cycles));
  }

  // --- Loops -------------------------------------------------------------------------------------------------------
  // While every resident warp goes round its loop at a steady rate, all blocks go on by what they would do in some
  // time. The first wave is looked at again, each time after a longer part: blocks that start together fall out of
  // step, and what they find of each other's reading in the caches changes with it. It has half of the budget: SMs that
  // went in step through all of it begin the second wave apart.
  void try_skip_iterations() {
    const std::optional<LoopWatch::Steady> steady = watch_.look(last_rate_);
    if (!steady) return;
    const bool hurry = have_had_their_share(*steady) || (first_wave_is_over_budget() && one_loop());
    if (!steady->agrees && !steady->alone && !hurry) return;
    const double ahead = iterations_ahead(*steady);
    double most = ahead;
    const double until_full = saturated_ ? most : iterations_until_full(*steady);
    const bool fills = until_full < most && !hurry;
    if (fills) most = until_full;
    saturated_ = saturated_ || until_full <= 0;
    if (most < kLeastSkip) return;
    // One stretch is enough until L2 is full where that is soon: the rate of so short a part hardly counts.
    if (steady->alone && !hurry && !(fills && most < kShort * ahead)) return;
    correct_open_skip(*steady);
    // Where looking is dear, or much has been spent: once on the way to L2's filling or half way, and not again.
    const bool dear = steady->dear || gpu_.issued() > kManyLooks * options_.detailed_instructions;
    const double step = std::max(kLeastSkip, steady->alone || hurry   ? most
                                             : !dear                  ? kGrowth * mean_position(steady->progress)
                                             : looked_again_ || fills ? most
                                                                      : most / 2);
    looked_again_ = true;
    const bool again = (last_rate_ == 0 || fills) && most - step >= kLeastSkip;
    if (again) most = step;
    // What was seen before L2 was full confirms, no more: it went at another rate.
    const double mean_rate = since_full_ ? steady->rate : (steady->rate + steady->other) / 2;
    skip_iterations(*steady, most / steady->moved, mean_rate);
    if (again) {
      open_skip_ = {most, mean_rate, gpu_.dispatcher().dispatched(), steady->loops};
      watch_.restart(steady->rate, LoopWatch::kAgreeAcross);
      return;
    }
    // With L2 full, it may be another rate.
    saturated_ = saturated_ || fills;
    since_full_ = fills;
    last_rate_ = fills ? 0 : steady->rate;
    watch_.restart(fills ? steady->rate : 0, steady->dear ? LoopWatch::kAgreeFullDear : LoopWatch::kAgreeFull);
  }

  bool first_wave_is_over_budget() const {
    return gpu_.dispatcher().dispatched() <= wave_ && seconds() > kFirstWave * options_.effort.seconds;
  }

  /// Nearly all of the launch is like the loops that blocks in flight are in.
  bool one_loop() const { return bodies_.share_in_flight(gpu_) >= 1 - kAlike; }

  /// Other loops are still to be seen, and the ways there: these have had as much of half a first wave's budget as they
  /// are of the launch.
  bool have_had_their_share(const LoopWatch::Steady& steady) const {
    const double share = bodies_.share_in_flight(gpu_), spent = seconds(gpu_.counters()) - seconds(steady.entered);
    return share < 1 - kAlike && spent > share * kFirstWave * options_.effort.seconds / 2;
  }

  static double mean_position(const LoopProgress& progress) {
    double sum = 0;
    for (const BlockLoop& block : progress.blocks) sum += block.position;
    return sum / static_cast<double>(progress.blocks.size());
  }

  /// Iterations that the mean warp has before it when the first is about to leave its loop.
  static double iterations_ahead(const LoopWatch::Steady& steady) {
    const double margin = std::clamp(std::ceil(kExit * steady.rate), 1.0, kMostMargin);
    double times = 1e18;
    for (std::size_t b = 0; b < steady.expected.size(); ++b)
      if (steady.expected[b] > 0)
        times = std::min(times, (steady.progress.blocks[b].least_remaining - margin) / steady.expected[b]);
    return times * steady.moved;
  }

  /// Iterations after which everything in L2 has been replaced, at the rate of this stretch.
  double iterations_until_full(const LoopWatch::Steady& steady) const {
    const double by_stretch = brought(gpu_.counters()) - brought(steady.since);
    const double rest = missing(virtual_counters());
    return rest <= 0 ? 0 : by_stretch <= 0 ? 1e18 : rest / by_stretch * steady.moved;
  }

  /// The part that was left out ran at the mean of the rates before and after it.
  void correct_open_skip(const LoopWatch::Steady& after) {
    if (open_skip_.rate > 0 && open_skip_.wave == gpu_.dispatcher().dispatched() && open_skip_.loops == after.loops) {
      skipped_cycles_ += open_skip_.iterations * (2 / (open_skip_.rate + after.rate) - 1 / open_skip_.rate);
      if (!skips_.empty()) skips_.back().cycles_so_far = skipped_cycles_;
    }
    open_skip_ = {};
  }

  /// Leaves out so many times what blocks are expected to move on; `rate`: of the mean of all, to reckon with.
  void skip_iterations(const LoopWatch::Steady& steady, double times, double rate) {
    std::vector<std::uint32_t> counts(steady.expected.size());
    std::uint64_t instructions = 0, most = 0;
    for (std::size_t b = 0; b < counts.size(); ++b) {
      counts[b] = static_cast<std::uint32_t>(std::llround(times * steady.expected[b]));
      // All barriers of a ring are looked at, where they are now and where they will be.
      const BlockLoop& block = steady.progress.blocks[b];
      if (block.phase_period == 1) continue;
      counts[b] = std::min(counts[b], block.least_remaining - std::min(block.least_remaining, block.phase_period));
      counts[b] -= counts[b] % block.phase_period;
    }
    const TimingCounters now = gpu_.counters();
    expect_fetches(now, steady.since, static_cast<double>(steady.cycles));
    const L2Traffic traffic = forewarp::skip_iterations(gpu_, context_, loops_, steady.progress, counts);
    for (std::size_t b = 0; b < counts.size(); ++b) {
      instructions += counts[b] * steady.progress.blocks[b].iteration_instructions;
      most = std::max<std::uint64_t>(most, counts[b]);
    }
    const double cycles =
        static_cast<double>(instructions) / static_cast<double>(steady.progress.iteration_instructions) / rate;
    // Lines that nobody had touched come from DRAM once; what the stretch measured would count its own reuse again.
    const MemoryCounters before = skipped_.memory;
    add_scaled(skipped_, now, steady.since, cycles / static_cast<double>(steady.cycles));
    set_traffic(skipped_.memory, before, traffic);
    skipped_cycles_ += cycles;
    if (steady.alone) {
      open_cycles_ += cycles;
    } else {
      neighbours_.push_back({(steady.rate - steady.other) / steady.rate, cycles, cycles});
    }
    skipped_iterations_ += most;
    skipped_instructions_ += instructions;
    note_skip();
  }

  // --- Launches that do not settle ---------------------------------------------------------------------------------
  /// Instructions of the last part of what was simulated that the rest is taken to be like: half of it, or the whole
  /// waves nearest to half, so that blocks begin and end in it as often as they do in the rest.
  std::uint64_t representative_part(std::uint64_t done) const {
    const double wave = wave_instructions();
    const double waves = std::max(1.0, std::round(static_cast<double>(done) / 2 / wave));
    if (waves * wave < static_cast<double>(done)) return static_cast<std::uint64_t>(waves * wave);
    // What was left out went, as far as is known, as what was seen before it; what was seen since says how it goes now.
    const std::uint64_t since = done - instructions_at_skip_;
    return since < options_.detailed_instructions ? done / 2 : std::min(done / 2, since);
  }

  /// Where the part begins that the rest is taken to be like: the last half, or where blocks did something else then
  /// than they will (other loops of their way), the part between a checkpoint and now that did most nearly the same.
  Representative representative_start(const Mark& now) {
    const std::uint64_t start = now.instructions - representative_part(now.instructions);
    const BodyVector left = bodies_.left(gpu_);
    std::size_t last = checkpoints_.size();
    while (last > 1 && checkpoints_[last - 1].instructions > start) --last;
    const double unlike = unlikeness(between(left, left_[last - 1]), left);
    const std::size_t alike = most_alike(left_, left);
    const bool recent = unlike <= unlikeness(between(left, left_[alike]), left) + kAlike;
    const std::size_t first = recent ? last - 1 : alike;
    const std::size_t since = same_blocks(checkpoints_[first], now) ? first + last_change_of_rate(first) : first;
    if (recent && since == first) return {mark_at(start, now), unlike};
    return {checkpoints_[since], unlikeness(between(left, left_[since]), left)};
  }

  /// Of the blocks in flight most still are: how they went before the rate changed is behind them. Where they have
  /// ended, it changed because others begin.
  static bool same_blocks(const Mark& earlier, const Mark& now) {
    return now.blocks - earlier.blocks < (earlier.in_flight.size() + 1) / 2;
  }

  /// Checkpoints from `first` on until the rate no longer changes.
  std::size_t last_change_of_rate(std::size_t first) const {
    std::vector<double> rates;
    for (std::size_t i = first; i + 1 < checkpoints_.size(); ++i)
      rates.push_back(std::log(cycles_per_instruction(checkpoints_[i], checkpoints_[i + 1])));
    return last_change(rates);
  }

  /// How far the launch was when it had done so many instructions, between the checkpoints (and `now`).
  Mark mark_at(std::uint64_t instructions, const Mark& now) const {
    const auto after = std::upper_bound(checkpoints_.begin(), checkpoints_.end(), instructions,
                                        [](std::uint64_t done, const Mark& m) { return done < m.instructions; });
    Mark mark = *std::prev(after);  // the launch's start is one
    const Mark& next = after == checkpoints_.end() ? now : *after;
    if (next.instructions == mark.instructions) return mark;
    const double part = static_cast<double>(instructions - mark.instructions) /
                        static_cast<double>(next.instructions - mark.instructions);
    const TimingCounters before = mark.counters;
    add_scaled(mark.counters, next.counters, before, part);
    mark.at += static_cast<Cycle>(part * static_cast<double>(next.at - mark.at));
    mark.instructions = instructions;
    return mark;
  }

  /// The rest runs at the rate of the last part of what was simulated; what it moves is found by touching L2.
  void extrapolate_rest(TimingResult& result) {
    const Mark now = mark_now();
    const auto [reference, unlike] = representative_start(now);
    const std::uint64_t seen = now.instructions - reference.instructions;
    const double factor =
        static_cast<double>(instructions_ - std::min(instructions_, now.instructions)) / static_cast<double>(seen);
    const MemoryCounters before = result.counters.memory;
    add_scaled(result.counters, now.counters, reference.counters, factor);
    const Cycle so_far = result.elapsed_cycles;
    const Held held = held_since(reference, now);
    L2Traffic traffic = gpu_.drain();
    SmRate rate =
        observed_rate(now.counters, reference.counters, seen,
                      {context_.warps_per_block, context_.blocks_per_sm, context_.gpu.issue.sub_partitions, held.sms},
                      held.blocks, few_sms());
    rate.shares = shares_so_far(now);
    rate.of_sms = rates_of_sms(reference, now);
    const RestTime rest = remaining_time(now.in_flight, rate);
    const TouchEffort effort{
        static_cast<std::uint64_t>(kTouchedRest * std::clamp(options_.effort.seconds, kLeastForRest, kMostForRest)),
        kSeenRest, kSeenInStretches, kAtTheEnd * static_cast<std::uint64_t>(context_.gpu.l2.bytes) / kLineBytes};
    // Blocks go on from where their warps are in the mean: what some of them have left behind them comes first.
    expect_fetches(now.counters, reference.counters, static_cast<double>(now.at - reference.at));
    if (lists_lines()) {
      traffic += catch_up(gpu_, context_, kBlockSteps, effort.touched);
      traffic += footprint().follow(rest.parts, effort, gpu_.memory()).traffic;
      set_traffic(result.counters.memory, before, traffic);
    } else {
      misses_known_ = false;
      result.warnings.push_back(
          "listing the lines that the rest of the launch reads and writes would take longer than the seconds given: "
          "what "
          "it moves is taken in proportion to what was simulated (a larger --budget lists them)");
    }
    result.elapsed_cycles += static_cast<Cycle>(rest.cycles);
    set_residence(result.counters, now.counters, rest,
                  observed_warps(now.counters, reference.counters, context_.warps_per_block, held.blocks));
    result.skipped.push_back({so_far, result.elapsed_cycles});
    const auto looks =
        static_cast<std::uint64_t>(std::count_if(checkpoints_.begin(), checkpoints_.end(), [&](const Mark& mark) {
          return mark.instructions > reference.instructions;
        }));
    add_batches(reference, now, std::clamp<std::uint64_t>(looks, 2, kBatches), rest.cycles);
    skipped_cycles_ += rest.cycles;
    unsettled_cycles_ += std::max(kUnsettled, unlike) * rest.cycles;
    result.warnings.push_back(
        "the launch did not settle within the detailed budget; its rest was taken to run at the rate of its last part");
  }

  /// What follows for `cycles` at the rate between two marks: the rates of so many equal parts say how sure that is.
  void add_batches(const Mark& from, const Mark& to, std::uint64_t batches, double cycles) {
    const double each = cycles / static_cast<double>(batches - 1);
    Mark last = from;
    double before = 0;
    for (std::uint64_t i = 1; i <= batches; ++i) {
      const Mark next = mark_at(from.instructions + (to.instructions - from.instructions) * i / batches, to);
      const double rate = cycles_per_instruction(last, next);
      if (i > 1) neighbours_.push_back({rates_differ_by(before, rate), each, each});
      before = rate;
      last = next;
    }
  }

  /// SMs that have room for a block, or all its cluster.
  std::size_t sms_in_use() const {
    const auto room = static_cast<std::uint64_t>(context_.blocks_per_sm);
    return (blocks_at_once(context_.gpu, context_.blocks_per_sm, context_.trace.launch.cluster.count()) + room - 1) /
           room;
  }

  /// Blocks that are left for a last wave, or began it.
  std::uint64_t last_wave() const {
    const std::uint64_t begun = gpu_.dispatcher().exhausted() ? 0 : gpu_.dispatcher().dispatched();
    const std::uint64_t last = (blocks_ - begun) % wave_;
    return last == 0 ? wave_ : last;
  }

  static std::vector<std::size_t> blocks_by_sm(const Mark& mark) {
    std::vector<std::size_t> blocks(mark.issued.size());
    for (const BlockProgress& block : mark.in_flight) ++blocks[block.sm];
    return blocks;
  }

  /// SMs that hold any block.
  static std::size_t sms_with_blocks(const Mark& mark) {
    const std::vector<std::size_t> blocks = blocks_by_sm(mark);
    return blocks.size() - static_cast<std::size_t>(std::count(blocks.begin(), blocks.end(), std::size_t{0}));
  }

  /// As at the end of the launch: as many SMs as a last wave leaves busy, up to an eighth of all. Those hardly share
  /// anything, and the fewer they are, the further their blocks come in the seconds of a look.
  FewSms few_sms() {
    if (context_.trace.launch.cluster.count() > 1) return {last_wave(), rate_of_few(last_wave(), 1), 0};
    const std::uint64_t sms =
        std::clamp<std::uint64_t>(last_wave(), 1, std::max<std::size_t>(1, sms_in_use() / kFewOf));
    const double alone = rate_of_few(sms, 1);
    return {sms, alone, context_.blocks_per_sm > 1 ? rate_of_few(sms, context_.blocks_per_sm) : alone};
  }

  /// Warp instructions a cycle of an SM that holds so many blocks, when so many SMs do, as at the end of a launch.
  /// Nothing that was simulated shows it, so the next blocks are run so, for as long as is cheap: from one on that does
  /// no less than the mean, since those at the edges of a grid may have little to do. Where none is left it is the last
  /// ones, in an L2 as they found it.
  double rate_of_few(std::uint64_t sms, int blocks_per_sm) {
    const std::uint64_t together = std::max<std::uint64_t>(1, context_.trace.launch.cluster.count());
    sms = std::min(sms, static_cast<std::uint64_t>(context_.gpu.chip.sm_count));
    const std::uint64_t most = std::min(blocks_, sms * static_cast<std::uint64_t>(blocks_per_sm));
    const std::uint64_t count = std::max(together, most / together * together);
    std::uint64_t first = std::min(gpu_.dispatcher().dispatched(), blocks_ - count) / together * together;
    while (first + count < blocks_ && instructions_of(first, 1) < instructions_ / blocks_) first += together;
    LaunchContext context = context_;
    context.blocks_per_sm = blocks_per_sm;
    const bool begun = before_last_wave_ && gpu_.dispatcher().exhausted();
    Gpu gpu(context, begun ? &*before_last_wave_ : &gpu_.memory(), options_.threads,
            {first, first + count, together > 1 ? 0 : static_cast<int>(sms)});
    // With fewer instructions than by default it would see little but their first loads.
    const auto budget =
        static_cast<double>(std::max(options_.detailed_instructions, SimulateOptions{}.detailed_instructions));
    TimingCounters half;
    bool over = false;
    while (!over) {
      over = gpu.run(~std::uint64_t{0}, gpu.now() + kSlice);
      gpu.advance_to(gpu.now() + kSlice);
      const double spent =
          std::max(host_cost(gpu.counters()) / budget, seconds(gpu.counters()) / (kFewSms * options_.effort.seconds));
      if (spent >= 1) break;
      if (spent < 0.5) half = gpu.counters();
    }
    const TimingCounters all = gpu.counters(), since = over ? TimingCounters{} : half;
    aside_ += seconds(all);
    return static_cast<double>(all.instructions_issued - since.instructions_issued) /
           static_cast<double>(std::max<std::uint64_t>(1, all.sm_active_cycles - since.sm_active_cycles));
  }

  struct Held {
    double blocks = 0;    ///< on an SM that holds any
    std::size_t sms = 0;  ///< that hold any
  };
  /// In the mean of the looks since `reference`: the rate that was seen is theirs, not that of the few that may be
  /// left. A place that is filled again counts as taken all the time.
  Held held_since(const Mark& reference, const Mark& now) const {
    if (!gpu_.dispatcher().exhausted()) return {static_cast<double>(context_.blocks_per_sm), sms_in_use()};
    double blocks = 0, sms = 0, looks = 0;
    const auto add = [&](const Mark& mark) {
      blocks += static_cast<double>(mark.in_flight.size());
      sms += static_cast<double>(sms_with_blocks(mark));
      ++looks;
    };
    for (const Mark& mark : checkpoints_)
      if (mark.at >= reference.at) add(mark);
    add(now);
    return {blocks / std::max(1.0, sms), static_cast<std::size_t>(std::max(1.0, std::round(sms / looks)))};
  }

  /// What the blocks of an SM got of it, the oldest first, between all checkpoints that found the same ones there.
  std::vector<double> shares_so_far(const Mark& now) const {
    std::vector<double> sum;
    for (std::size_t i = 0; i < checkpoints_.size(); ++i) {
      const Mark& later = i + 1 < checkpoints_.size() ? checkpoints_[i + 1] : now;
      const std::vector<double> shares = observed_shares(later.in_flight, checkpoints_[i].in_flight);
      sum.resize(std::max(sum.size(), shares.size()), 0);
      for (std::size_t k = 0; k < shares.size(); ++k) sum[k] += shares[k];
    }
    const auto [least, most] = std::minmax_element(sum.begin(), sum.end());
    if (sum.empty() || *least > (1 - kInStep) * *most) return {};
    return sum;
  }

  /// Of the time since the checkpoint before `reference`, or of the last half of what was simulated if that is more:
  /// SMs differ by chance in so little as may follow a skip. Halved where a checkpoint is nearest to its middle.
  std::vector<double> rates_of_sms(const Mark& reference, const Mark& now) const {
    const auto done = [](const Mark& from, const Mark& to) {
      std::vector<std::uint64_t> issued;
      for (std::size_t sm = 0; sm < to.issued.size(); ++sm)
        issued.push_back(to.issued[sm] - (from.issued.empty() ? 0 : from.issued[sm]));
      return issued;
    };
    const auto total = [](const Mark& mark) {
      return std::accumulate(mark.issued.begin(), mark.issued.end(), std::uint64_t{0});
    };
    const auto all = static_cast<double>(total(now));
    const auto early = std::find_if(checkpoints_.begin(), checkpoints_.end(),
                                    [&](const Mark& mark) { return static_cast<double>(total(mark)) >= all / 2; });
    const bool earlier = early != checkpoints_.end() && total(*early) < total(reference);
    const Mark& start = earlier ? *early : reference;
    const auto first = static_cast<double>(total(start)), middle = (first + all) / 2;
    const auto off = [&](const Mark& mark) { return std::abs(static_cast<double>(total(mark)) - middle); };
    const auto half = std::min_element(checkpoints_.begin(), checkpoints_.end(),
                                       [&](const Mark& a, const Mark& b) { return off(a) < off(b); });
    if (static_cast<double>(total(*half)) <= first) return {};
    return lasting_rates(done(start, *half), done(*half, now), blocks_by_sm(now));
  }

  RestTime remaining_time(const std::vector<BlockProgress>& in_flight, SmRate rate) const {
    const auto instructions = [&](std::uint64_t block) {
      return static_cast<double>(class_instructions_[context_.classes.class_of(block)]);
    };
    std::vector<std::vector<BlockProgress>> by_sm(static_cast<std::size_t>(context_.gpu.chip.sm_count));
    for (const BlockProgress& block : in_flight) by_sm[block.sm].push_back(block);
    const auto whole = [&](std::uint64_t block) { return RestBlock{block, instructions(block), instructions(block)}; };
    std::vector<std::vector<RestBlock>> left(by_sm.size());
    for (std::size_t sm = 0; sm < by_sm.size(); ++sm) {
      std::sort(by_sm[sm].begin(), by_sm[sm].end(),
                [](const BlockProgress& a, const BlockProgress& b) { return a.block < b.block; });
      for (const BlockProgress& block : by_sm[sm])
        left[sm].push_back({block.block, instructions(block.block), instructions(block.block) * (1 - block.done)});
    }
    // SMs on which no cluster fits stay empty.
    for (std::size_t sm = left.size(); sm-- > 0 && left.size() > sms_in_use();)
      if (left[sm].empty()) {
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(sm));
        if (sm < rate.of_sms.size()) rate.of_sms.erase(rate.of_sms.begin() + static_cast<std::ptrdiff_t>(sm));
      }
    const std::uint64_t first = gpu_.dispatcher().dispatched();
    return schedule_rest(std::move(left), blocks_ - first, context_.blocks_per_sm, rate,
                         [&](std::uint64_t i) { return whole(first + i); });
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
    const double half =
        std::hypot(half_interval(neighbours_, open_cycles_), kUnseen * skipped_cycles_, unsettled_cycles_);
    const auto cycles = static_cast<double>(result.elapsed_cycles);
    result.coverage.cycles_low = std::max(cycles - half, cycles - skipped_cycles_);
    result.coverage.cycles_high = std::min(cycles + half, 2 * cycles);
  }

  std::optional<BlockRecorder> recorder_;
  LaunchContext context_;
  SimulateOptions options_;
  double for_verdict_ = 0;
  Gpu gpu_;
  Loops loops_;
  std::vector<std::uint64_t> class_instructions_;  ///< of a block
  std::uint64_t blocks_ = 0, wave_ = 0, instructions_ = 0, total_work_ = 0, wave_work_ = 0, mark_blocks_ = 0,
                next_mark_ = 0, lines_of_classes_ = 0;
  std::uint64_t skipped_blocks_ = 0, skipped_iterations_ = 0, skipped_instructions_ = 0, work_ = 0,
                instructions_at_skip_ = 0;
  double aside_ = 0;  ///< seconds spent on looks at few SMs
  double skipped_cycles_ = 0, unsettled_cycles_ = 0, last_rate_ = 0;
  std::vector<Neighbours> neighbours_;  ///< windows on which what was left out rests
  double open_cycles_ = 0;              ///< left out after a window that agrees with nothing yet
  double filled_rate_ = 0;              ///< cycles per instruction of waves before L2 was filled
  TimingCounters skipped_;
  std::vector<Mark> marks_;  ///< the launch's start, then waves
  std::vector<Mark> checkpoints_;
  std::vector<BodyVector> left_;  ///< at the checkpoints
  std::vector<Skip> skips_;
  std::optional<BlockFootprint> footprint_;
  std::optional<MemorySystem> before_last_wave_;  ///< its L2, once that wave begins
  bool misses_known_ = true;                      ///< L2 was touched for all that was left out
  std::size_t many_ = kManyWaves;                 ///< marks that make a rate
  bool saturated_ = false, unsteady_ = false, looked_again_ = false, since_full_ = false, settling_ = false;
  LoopWatch watch_;
  LoopBodies bodies_;
  OpenSkip open_skip_;
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before) {
  // With more detail each time, until the interval is as narrow as it is to be or the time does not reach for more.
  SimulateOptions now = options;
  const double traced = context.trace.launch.traced_seconds(), seconds = options.effort.seconds_left(traced);
  const double for_verdict = std::max(0.0, options.effort.seconds - traced - seconds);
  now.effort.seconds = seconds;
  for (double spent = 0;;) {
    SteadyState launch(context, now, before, for_verdict);
    TimingResult result = launch.run();
    result.coverage.detailed_instructions = now.full ? Coverage::kAll : now.detailed_instructions;
    spent += launch.seconds();
    result.host_seconds = launch.seconds();
    result.host_seconds_of_lines = launch.seconds_of_lines();
    result.host_seconds_in_all = spent;
    const double left = seconds - spent;
    const double half = (result.coverage.cycles_high - result.coverage.cycles_low) / 2;
    const bool enough = half <= options.effort.precision * static_cast<double>(result.elapsed_cycles);
    if (!result.coverage.extrapolated || enough) return result;
    now.effort.seconds = left;
    now.full = launch.seconds_in_full() <= left;
    const double more = std::min(kMore, left / launch.seconds());
    if (!now.full && more < kLeastMore) return result;
    now.detailed_instructions = static_cast<std::uint64_t>(more * static_cast<double>(now.detailed_instructions));
  }
}

}  // namespace forewarp
