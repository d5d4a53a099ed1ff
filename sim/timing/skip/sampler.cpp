#include "timing/skip/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <span>

#include "hardware/occupancy.h"
#include "timing/gpu/gpu.h"
#include "timing/host_cost.h"
#include "timing/skip/block_cuts.h"
#include "timing/skip/block_footprint.h"
#include "timing/skip/code_mix.h"
#include "timing/skip/estimate.h"
#include "timing/skip/rest_schedule.h"
#include "timing/skip/scaled_counters.h"
#include "timing/skip/steps_in_time.h"

namespace forewarp {
namespace {

// Of the rest, in lines: all slices are touched for so many in each of the launch's seconds, of which a half to eight
// count, some of them for more; of more than kSeenRest, stretches of time are. Products of 4096 come out within 1 % of
// what touching all of them gives, at a tenth of its cost.
constexpr double kTouchedRest = 500'000, kLeastForRest = 0.5, kMostForRest = 8;
constexpr std::uint64_t kSeenRest = 40'000'000, kSeenInStretches = 20'000'000;
// The last of them in any case, so that as much is dirty as would be: times L2's lines.
constexpr std::uint64_t kAtTheEnd = 2;
constexpr Cycle kSlice = 128;  // cycles between two looks at the progress
// Slices between two looks at what has been spent: at most so many, and no more than that part of those before.
constexpr std::uint64_t kSlicesALook = 32;
// Of what is left out, what nothing that was seen shows, where the launch was looked at in its middle and where it was
// not: with these the cycles of --full lay in the interval in 32 of 35 launches, before launches by TMA had windows
// (FINDINGS.md, windows).
constexpr double kUnseen = 0.04, kUnseenAhead = 0.1;
// Of the seconds, where windows follow a launch's start: for the start, and for the end.
constexpr double kForStart = 0.3, kForEnd = 0.2, kForWindows = 1 - kForStart - kForEnd;
// Few, since one has to be long: loops that copy some turns ahead, and lines that L1 keeps for some turns, take some
// tens of thousands of cycles until they are as they would be (FINDINGS.md, windows).
constexpr double kWindows = 2;
// Stretches of the rest that are compared, so as to choose windows that stand for all.
constexpr double kStretches = 128;
constexpr double kSomeWaves = 2, kManyWaves = 6;  // that say more of a launch than windows do
// A launch is simulated whole where that takes no more than so many times what leaving out a part of it does: the rule
// of ski rental, whose cost is never more than twice the least.
constexpr double kWholeForPart = 2;
constexpr double kLateEnd = 2;         // times what the end was to take, after which it is left
constexpr double kWarmUp = 0.5;        // of a window, until pipelines and L1 are as they would be
constexpr std::uint64_t kBatches = 8;  // parts of what a rest is taken to be like, for its variance
// While the instructions are simulated that are in any case: two for each batch of their last half.
constexpr std::uint64_t kCheckpoints = 2 * 2 * kBatches;
constexpr double kFewSms = 1. / 16;  // of the seconds, that a look at few SMs may take
constexpr std::size_t kFewOf = 8;    // ... which are at most one of so many
// ... that is kept for what follows a launch which stops early: that look, and touching L2 for the rest. What listing
// its lines takes comes to that.
constexpr double kForRest = 0.1;
// ... that listing the lines of blocks may take; where it would take more, the rest moves in proportion to what was
// seen.
constexpr double kForLines = 0.5;

/// How far a launch was at some time.
struct Mark {
  Cycle at = 0;
  std::uint64_t instructions = 0;
  TimingCounters counters;
  Cycle backlog = 0;                ///< that L2's atomic units had before them
  std::vector<double> by_sm = {};   ///< instructions, of checkpoints
  std::vector<double> by_age = {};  ///< of checkpoints in the first wave
};

/// What was seen between two times.
struct Seen {
  Mark from, to;
  std::uint64_t instructions() const { return std::max<std::uint64_t>(1, to.instructions - from.instructions); }
  double cycles() const { return static_cast<double>(to.at - from.at); }
};

/// Simulates a launch from its start on for as long as its seconds reach, or until the interval of its cycles is as
/// narrow as it is to be. What is left then is a schedule of blocks that go at the rate of the last part of that. Where
/// blocks can begin in the middle of their ways, two windows of the schedule and its end are simulated as well, with
/// the caches as they would be by then, and say how much longer than the schedule the launch takes there.
class Sampler {
 public:
  Sampler(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before)
      : recorder_(options.record ? std::optional<BlockRecorder>(std::in_place, *options.record, context.trace.launch)
                                 : std::nullopt),
        context_(context),
        options_(options),
        gpu_(watched_by(context, recorder_), before, options.threads,
             {0, options.blocks > 0 ? options.blocks : ~std::uint64_t{0}}),
        cuts_(context_) {
    const double traced = context.trace.launch.traced_seconds();
    seconds_ = options.effort.seconds_left(traced);
    for_verdict_ = std::max(0.0, options.effort.seconds - traced - seconds_);
    const std::uint64_t grid = context.trace.launch.grid.count();
    blocks_ = options.blocks > 0 ? std::min(options.blocks, grid) : grid;
    wave_ = std::min(blocks_, places());
    for (const BlockClass& cls : context.trace.classes) {
      std::uint64_t block = 0;
      for (const WarpTrace& warp : cls.warps) block += cls.paths[warp.path].instructions;
      class_instructions_.push_back(block);
      instructions_ += block * cls.population;
      for (const InstructionCount& count : cls.counts) lines_of_classes_ += count.lines;
    }
    // What a part of a grid executes, as if all blocks did as much.
    if (blocks_ < grid)
      instructions_ = static_cast<std::uint64_t>(static_cast<double>(blocks_) / static_cast<double>(grid) *
                                                 static_cast<double>(instructions_));
    checkpoints_.push_back(checkpoint());
  }

  TimingResult run() {
    const bool over = options_.full ? gpu_.run(~std::uint64_t{0}, kNever - 1) : run_in_time();
    TimingResult result;
    result.spans = gpu_.spans();
    result.counters = gpu_.counters();
    result.elapsed_cycles = over ? gpu_.last_end() : gpu_.now();
    result.coverage.warp_instructions = instructions_;
    result.coverage.detailed_instructions = over ? Coverage::kAll : gpu_.issued();
    result.coverage.extrapolated = !over;
    const double half = over ? 0 : extrapolate_rest(result);
    result.coverage.method = over                ? "every instruction simulated"
                             : begins_anywhere() ? "the rest at the rate of windows spread over it"
                                                 : "the rest at the rate of its last part";
    result.coverage.simulated_warp_instructions = std::min(instructions_, gpu_.issued() + issued_aside_);
    if (options_.caches == CacheState::Cold) {
      // Code comes from memory once, and so does what the front end reads to launch it.
      const std::uint64_t code =
          std::min(context_.program.code_lines() * static_cast<std::uint64_t>(context_.gpu.icache.line_bytes),
                   static_cast<std::uint64_t>(context_.gpu.icache.launch_bytes));
      result.counters.memory.dram_read_bytes += code + static_cast<std::uint64_t>(context_.gpu.launch.read_bytes);
    }
    result.elapsed_cycles += static_cast<Cycle>(context_.gpu.launch.end_cycles);
    const auto cycles = static_cast<double>(result.elapsed_cycles);
    result.coverage.cycles_low = over ? cycles : std::max(cycles - half, static_cast<double>(gpu_.now()));
    result.coverage.cycles_high = std::min(cycles + half, 2 * cycles);
    result.instruction_stalls = gpu_.instruction_stalls();
    if (recorder_) {
      for (std::uint16_t id = 0; id < gpu_.sms(); ++id) gpu_.sm(id).close_record(gpu_.now());
      recorder_->hand_over(result, gpu_.now(), blocks_, wave_);
    }
    result.host_seconds = seconds();
    result.host_seconds_of_lines = seconds_of_lines();
    return result;
  }

 private:
  static LaunchContext watched_by(LaunchContext context, std::optional<BlockRecorder>& recorder) {
    context.recorder = recorder ? &*recorder : nullptr;
    return context;
  }

  std::uint64_t cluster() const { return std::max<std::uint64_t>(1, context_.trace.launch.cluster.count()); }
  std::uint64_t places() const {
    return blocks_at_once(context_.gpu, context_.blocks_per_sm, context_.trace.launch.cluster.count());
  }

  /// SMs that have room for a block, or all its cluster.
  std::size_t sms_in_use() const {
    const auto room = static_cast<std::uint64_t>(context_.blocks_per_sm);
    return (places() + room - 1) / room;
  }

  /// Processor seconds spent so far, at a nominal speed.
  double seconds() const { return seconds_of(gpu_.counters()) + aside_ + seconds_of_lines(); }
  double seconds_of_lines() const { return footprint_ ? static_cast<double>(footprint_->work()) * kSecondsALine : 0; }

  // --- What is simulated ---------------------------------------------------------------------------------------------
  /// Whether the launch was followed to its end before what was seen was enough.
  bool run_in_time() {
    const std::uint64_t every = options_.detailed_instructions / kCheckpoints;
    const double wave = wave_instructions();
    for (std::uint64_t slice = 0, next_look = 0; !gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice); ++slice) {
      gpu_.advance_to(gpu_.now() + kSlice);
      if (slice >= next_look) {
        if (overspent()) return false;
        next_look = slice + 1 + std::min(kSlicesALook, slice / kSlicesALook);
      }
      // After so many instructions, and after each wave where those are more.
      const auto waves = [&](std::uint64_t done) { return std::floor(static_cast<double>(done) / wave); };
      const std::uint64_t before = checkpoints_.back().instructions;
      if (gpu_.issued() - before < every && (wave < every || waves(gpu_.issued()) == waves(before))) continue;
      checkpoints_.push_back(checkpoint());
      if (gpu_.issued() < options_.detailed_instructions || !is_precise()) continue;
      plan_windows();
      if (whole_is_cheap()) continue;
      const bool by_waves = windows_ && !*windows_;
      if (!by_waves || static_cast<double>(gpu_.issued()) >= kSomeWaves * wave) return false;
    }
    return true;
  }

  static Mark mark(const Gpu& gpu) {
    return {gpu.now(), gpu.issued(), gpu.counters(), gpu.memory().atomic_backlog(gpu.now())};
  }

  Mark checkpoint() const {
    Mark now = mark(gpu_);
    for (std::uint16_t id = 0; id < gpu_.sms(); ++id) now.by_sm.push_back(static_cast<double>(gpu_.sm(id).issued()));
    if (gpu_.dispatcher().dispatched() <= wave_) now.by_age = by_age(blocks_in_flight());
    return now;
  }

  /// The seconds are spent but for what the rest takes, and what is ahead takes more than is left of them, with the
  /// verdict's: a launch that has been simulated whole needs no extrapolation.
  bool overspent() {
    const double spent = seconds(), all = (1 - kForRest) * seconds_ - (lists_lines() ? seconds_to_list() : 0);
    if (spent <= all * kForStart) return false;
    if (spent * static_cast<double>(instructions_) / static_cast<double>(gpu_.issued()) <= seconds_ + for_verdict_)
      return false;
    plan_windows();
    return spent > all * for_start();
  }

  /// To simulate the launch whole takes no more than twice what leaving out a part of it does.
  bool whole_is_cheap() const {
    const double whole = static_cast<double>(instructions_) / static_cast<double>(gpu_.issued());
    return whole * for_start() <= kWholeForPart && whole * seconds() <= seconds_ + for_verdict_;
  }

  double wave_instructions() const {
    return static_cast<double>(instructions_) / static_cast<double>(blocks_) * static_cast<double>(wave_);
  }

  /// Windows and the end can be simulated.
  bool begins_anywhere() const { return cluster() == 1; }

  /// Windows in the middle of the launch, where its start is to end. None, where it may as well show many waves, with
  /// all that is on its way from one to the next; or some, where a window would be shorter than one: blocks that went
  /// off together do the same at the same time.
  void plan_windows() {
    if (windows_ || !begins_anywhere()) return;
    const double all = static_cast<double>(gpu_.issued()) / kForStart, wave = wave_instructions();
    const double start = all * (1 - kForEnd), window = all * kForWindows * (1 - kWarmUp) / kWindows;
    windows_ = start < kManyWaves * wave && (start < kSomeWaves * wave || window >= wave);
  }

  /// Of the seconds, for the launch's start.
  double for_start() const { return !windows_ ? 1 : *windows_ ? kForStart : 1 - kForEnd; }

  /// The lines of blocks, before the rest is touched.
  double seconds_to_list() const {
    if (context_.trace.classes.size() > BlockFootprint::kKeptClasses) return 0;
    return static_cast<double>(lines_of_classes_) * kSecondsALine;
  }
  bool lists_lines() const { return seconds_to_list() <= kForLines * seconds_; }

  // --- The part that the rest is like --------------------------------------------------------------------------------
  bool is_precise() const {
    const Seen seen = last_part(checkpoints_.back());
    const double rest = left_of(seen) * seen.cycles();
    return half_interval_of(seen) * rest <= options_.effort.precision * (static_cast<double>(gpu_.now()) + rest);
  }

  double left_instructions() const {
    return static_cast<double>(instructions_ - std::min(instructions_, gpu_.issued()));
  }

  /// What is left, in times of what was seen.
  double left_of(const Seen& seen) const { return left_instructions() / static_cast<double>(seen.instructions()); }

  /// The last half of what was simulated, or the whole waves nearest to half, so that blocks begin and end in it as
  /// often as they do in the rest.
  Seen last_part(const Mark& now) const {
    const double wave = wave_instructions();
    const auto done = static_cast<double>(now.instructions);
    const double part = std::max(1.0, std::round(done / 2 / wave)) * wave;
    return {mark_at(static_cast<std::uint64_t>(part < done ? done - part : done / 2)), now};
  }

  /// How far the launch was at the checkpoint that is nearest to so many instructions.
  const Mark& mark_at(std::uint64_t instructions) const {
    const auto after = std::ranges::upper_bound(checkpoints_, instructions, {}, &Mark::instructions);
    const auto before = std::prev(after);  // the launch's start is one
    const bool nearer =
        after != checkpoints_.end() && after->instructions - instructions < instructions - before->instructions;
    return nearer ? *after : *before;
  }

  /// Half of the 95 % interval of a rest that goes as what was seen, in parts of it: the rates of equal parts of that
  /// say how sure it is.
  double half_interval_of(const Seen& seen) const {
    std::vector<double> rates;
    Seen batch{seen.from, seen.from};
    for (std::uint64_t i = 1; i <= kBatches; ++i) {
      batch.to = i == kBatches ? seen.to : mark_at(seen.from.instructions + seen.instructions() * i / kBatches);
      if (batch.to.instructions == batch.from.instructions) continue;
      rates.push_back(batch.cycles() / static_cast<double>(batch.instructions()));
      batch.from = batch.to;
    }
    return std::hypot(half_interval(rates), kUnseenAhead);
  }

  // --- The rest ------------------------------------------------------------------------------------------------------
  /// The rest takes as long as its schedule says at the rate of the last part, or as windows in it do; what it moves is
  /// found by touching L2. Half of the interval of its cycles.
  double extrapolate_rest(TimingResult& result) {
    const Seen seen = last_part(mark(gpu_));
    const MemoryCounters before = result.counters.memory;
    const auto sms = static_cast<double>(std::min<std::uint64_t>(wave_, sms_in_use()));
    const double held = static_cast<double>(wave_) / sms;  // places for blocks that are taken on an SM with any
    in_flight_ = blocks_in_flight();
    L2Traffic traffic = gpu_.drain();
    const double active =
        std::max(1.0, static_cast<double>(seen.to.counters.sm_active_cycles - seen.from.counters.sm_active_cycles));
    // While blocks are waiting, an SM has none only until the next comes: that takes time in the rest as well.
    const double busy = gpu_.dispatcher().dispatched() < blocks_ ? active / (seen.cycles() * sms) : 1;
    const double most = busy * static_cast<double>(seen.instructions()) / active;
    RestTime rest = schedule({std::max(most / held, rate_alone()), most, shares_by_age(seen.from), times_by_sm(seen)});
    rest.block_cycles *= busy, rest.sm_cycles *= busy;
    expect_fetches(seen);
    const TouchEffort effort = effort_of_rest();
    const bool listed = lists_lines();
    if (listed) {
      footprint_.emplace(context_, gpu_.crew());
      // Blocks go on from where their warps are in the mean: what the slowest have left behind them comes first.
      std::vector<RestPart> behind;
      for (std::uint16_t sm = 0; sm < gpu_.sms(); ++sm)
        for (const RestBlock& b : in_flight_[sm])
          behind.push_back({b.block, b.done() + std::ranges::min(b.leads), b.done(), 0, 1, sm});
      traffic += footprint_->follow(behind, effort, gpu_.memory());
    } else {
      result.warnings.push_back(
          "listing the lines that the rest of the launch reads and writes would take longer than the seconds given: "
          "what it moves is taken in proportion to what was simulated (a larger --budget lists them)");
    }
    const double half = follow(rest, seen, effort, traffic, result.counters);
    if (!begins_anywhere()) add_scaled(result.counters, seen.to.counters, seen.from.counters, left_of(seen));
    if (listed) set_traffic(result.counters.memory, before, traffic);
    set_residence(result.counters, seen.to.counters, rest,
                  observed_warps(seen.to.counters, seen.from.counters, context_.warps_per_block, held));
    set_sectors(result.counters, traced_sectors(context_.trace, context_.patterns), listed);
    // Atomic operations that pile up in L2 outlast the blocks: L2 serves them one after the other.
    const double now = static_cast<double>(seen.to.backlog), grew = now - static_cast<double>(seen.from.backlog);
    const double served = grew > kUnseen * seen.cycles() ? now + left_of(seen) * (seen.cycles() + grew) : 0;
    result.elapsed_cycles += static_cast<Cycle>(std::max(rest.cycles, served));
    result.skipped.push_back({gpu_.now(), result.elapsed_cycles});
    return half * rest.cycles;
  }

  TouchEffort effort_of_rest() const {
    return {static_cast<std::uint64_t>(kTouchedRest * std::clamp(seconds_, kLeastForRest, kMostForRest)), kSeenRest,
            kSeenInStretches, kAtTheEnd * static_cast<std::uint64_t>(context_.gpu.l2.bytes) / kLineBytes};
  }

  /// A part of the launch that is simulated from a time of its schedule on.
  struct Window {
    Seen all, warm;  ///< `warm`: without what it takes to warm up
    bool over = false;
    double from = 0, scheduled = 1;  ///< in the schedule, what it did once warm
    double unsteady = 0;             ///< by how much its halves differ in their rates, in parts of its own

    double pace() const { return warm.cycles() / scheduled; }
  };

  /// Touches L2 for the rest. On the way it simulates windows, and the end, which is what it is. Half of the interval
  /// of the rest's cycles, in parts of them.
  double follow(RestTime& rest, const Seen& start, const TouchEffort& effort, L2Traffic& traffic,
                TimingCounters& counters) {
    double touched = 0;
    const auto touch_until = [&](double time) {
      if (!footprint_ || time <= touched) return;
      traffic += footprint_->follow(parts_between(rest.parts, touched, time), effort, gpu_.memory());
      touched = time;
    };
    double half = half_interval_of(start);
    if (begins_anywhere()) {
      const WorkInTime work(rest.parts, [&](std::uint64_t b) { return static_cast<double>(instructions_of(b)); });
      const double all = seconds_of(gpu_.counters()) / for_start();
      const double end = work.when(work.all() - kForEnd / for_start() * static_cast<double>(gpu_.issued()));
      const double left = work.by(end);
      double cycles = 0;
      const auto add = [&](const Seen& seen, double share, double pace) {
        cycles += share * pace * end;
        add_scaled(counters, seen.to.counters, seen.from.counters,
                   share * left / static_cast<double>(seen.instructions()));
      };
      const auto look = [&](const Stretch& stretch) {
        touch_until(stretch.at);
        return look_at(rest, work, stretch);
      };
      const double by_share = static_cast<double>(gpu_.now()) / for_start();  // cycles, of all seconds
      if (end <= 0 || !*windows_) {
        add(start, 1, 1);
      } else {
        const double each = kForWindows / kWindows, window = each * by_share;
        const double warm_up = kWarmUp * window, length = window - warm_up;
        CodeOfBlocks code(context_);
        const std::vector<double> places = stretches(end, length);
        const std::vector<CodeMix> mixes = code.executed(rest.parts, places, length);
        const auto look_from = [&](double place) {
          return look({std::max(0.0, place - warm_up), place, place + length, window, each * all});
        };
        const auto [one, other] = two_for_all(mixes);
        const Window first = look_from(places[one]), second = look_from(places[other]);
        const auto mix = [&](const Window& w) {
          return code.executed(rest.parts, std::span(&w.from, 1), w.scheduled).front();
        };
        const Eigen::Array3d share = shares(mixes, code.issued(gpu_.instruction_stalls()), mix(first), mix(second));
        const std::array paces{1.0, first.pace(), second.pace()};
        add(start, share[0], paces[0]);
        add(first.warm, share[1], paces[1]);
        add(second.warm, share[2], paces[2]);
        const std::array unsteady{0.0, first.unsteady, second.unsteady};
        half = half_interval(paces, std::span(share.data(), paces.size()), unsteady);
      }
      const double before_end = cycles;
      const double late = kLateEnd * kForEnd;
      const Window last = look({end, end, kForEver, late * by_share, late * all});
      // What it did not come to goes on as its last part did.
      const double unseen = std::max(0.0, work.all() - left - static_cast<double>(last.all.instructions()));
      const double times = unseen / static_cast<double>(last.warm.instructions());
      cycles += last.all.cycles() + times * last.warm.cycles();
      add_scaled(counters, last.all.to.counters, last.all.from.counters, 1);
      add_scaled(counters, last.warm.to.counters, last.warm.from.counters, times);
      if (*windows_) half = std::hypot(half * before_end / std::max(1.0, cycles), kUnseen);
      set_pace(rest, end, before_end, cycles);
    }
    touch_until(kForEver);
    return half;
  }

  /// A schedule takes so many cycles up to a time, and in all.
  static void set_pace(RestTime& rest, double end, double before_end, double all) {
    const double before = end > 0 ? before_end / end : 1, after = (all - before_end) / std::max(1.0, rest.cycles - end);
    double block_cycles = 0;
    for (const RestPart& part : rest.parts) block_cycles += std::clamp(end - part.at, 0.0, part.until - part.at);
    rest.block_cycles = before * block_cycles + after * (rest.block_cycles - block_cycles);
    rest.sm_cycles *= all / std::max(1.0, rest.cycles);
    rest.cycles = all;
  }

  /// Stretches of a schedule before a time, each as long as a window: in steps of the golden ratio, which do not fall
  /// into step with its waves.
  static std::vector<double> stretches(double end, double length) {
    std::vector<double> starts;
    for (double i = 0.5; i < kStretches; ++i)
      starts.push_back(std::fmod(i * std::numbers::phi, 1.0) * std::max(0.0, end - length));
    std::ranges::sort(starts);
    return starts;
  }

  /// The shares of the start and of two windows in some stretches. Each goes as the one that executes what it does, or
  /// as several where those hardly differ (kernel regression); as the start only where no window is alike.
  static Eigen::Array3d shares(std::span<const CodeMix> stretches, const CodeMix& start, const CodeMix& first,
                               const CodeMix& second) {
    Eigen::Array3d sum = Eigen::Array3d::Zero();
    for (const CodeMix& mix : stretches) {
      Eigen::Array3d far{apart(mix, start), apart(mix, first), apart(mix, second)};
      if (far.tail(2).minCoeff() <= kAlike) far[0] = std::numeric_limits<double>::infinity();
      const Eigen::Array3d weights = ((far.minCoeff() * far.minCoeff() - far.square()) / (kAlike * kAlike)).exp();
      sum += weights / weights.sum();
    }
    return sum / sum.sum();
  }

  /// A part of the schedule to simulate. It begins at `at`, counts from `from` on, when it has warmed up, and goes on
  /// until it has come to `until` and taken `cycles`, or `seconds` are spent.
  struct Stretch {
    double at = 0, from = 0, until = 0, cycles = 0, seconds = 0;
  };

  Window look_at(const RestTime& rest, const WorkInTime& work, const Stretch& stretch) {
    const double at = stretch.at;
    const std::size_t sms = gpu_.sms();
    std::vector<std::vector<RestPart>> of_sm(sms);  // what each did while a block takes: L1 may still hold it
    for (const RestPart& part : parts_between(rest.parts, at - block_time(rest), at)) of_sm[part.sm].push_back(part);
    struct Placed {
      RestPart part;
      std::span<const double> leads;
    };
    std::vector<Placed> placed;
    std::uint64_t next = gpu_.dispatcher().dispatched();
    for (const RestPart& part : rest.parts) {
      if (part.at > at) continue;
      next = std::max(next, part.block + 1);
      if (part.until > at) placed.push_back({part, {}});
    }
    // Its warps are as far apart as those of the block that was in its place when the start ended.
    std::ranges::sort(placed, {}, [](const Placed& p) { return p.part.block; });
    std::vector<std::size_t> held(sms);
    for (Placed& p : placed)
      if (const std::size_t rank = held[p.part.sm]++; rank < in_flight_[p.part.sm].size())
        p.leads = in_flight_[p.part.sm][rank].leads;
    std::ranges::stable_sort(placed, {}, [&](const Placed& p) {
      return p.part.position(at) + (p.leads.empty() ? 0 : std::ranges::min(p.leads));
    });
    std::vector<BlockUnderWay> blocks;
    for (const auto& [part, leads] : placed)
      blocks.push_back(
          {part.block, part.sm, cuts_.at(context_.classes.class_of(part.block), part.position(at), leads)});
    std::ranges::sort(blocks, {}, &BlockUnderWay::block);
    LaunchContext context = context_;
    context.recorder = nullptr;
    Gpu gpu(context, &gpu_.memory(), options_.threads, {next, blocks_, 0, blocks});
    for (std::size_t sm = 0; sm < sms && footprint_; ++sm)
      footprint_->fill_l1(of_sm[sm], gpu.sm(static_cast<std::uint16_t>(sm)));
    const auto work_until = [&](double time) { return time == kForEver ? time : work.by(time) - work.by(at); };
    Window window = run_for(gpu, stretch.seconds, stretch.cycles, work_until(stretch.from), work_until(stretch.until));
    const Seen& seen = window.warm;
    const double first = work.by(at) + static_cast<double>(seen.from.instructions);
    window.from = work.when(first);
    window.scheduled = std::max(1.0, work.when(first + static_cast<double>(seen.instructions())) - window.from);
    issued_aside_ += gpu.issued();
    return window;
  }

  /// Simulates it for so many cycles and instructions, of which it warms up for some, or to its end; for so many
  /// seconds at most.
  Window run_for(Gpu& gpu, double seconds, double cycles, double warm_up, double instructions) {
    Window window;
    window.all.from = window.warm.from = mark(gpu);
    std::vector<std::pair<double, double>> slices;  // instructions and cycles, while warm
    while (!window.over) {
      window.over = gpu.run(~std::uint64_t{0}, gpu.now() + kSlice);
      gpu.advance_to(gpu.now() + kSlice);
      const double spent = seconds_of(gpu.counters()) / seconds;
      const auto now = static_cast<double>(gpu.now()), issued = static_cast<double>(gpu.issued());
      if (spent >= 1 || (now >= cycles && issued >= instructions)) break;
      if (spent < kWarmUp && (now < kWarmUp * cycles || issued < warm_up)) window.warm.from = mark(gpu), slices.clear();
      if (window.warm.from.instructions == 0) window.all.from = window.warm.from;
      slices.emplace_back(issued, now);
    }
    window.all.to = window.warm.to = mark(gpu);
    if (window.over) window.all.to.at = window.warm.to.at = std::max(gpu.last_end(), window.warm.from.at);
    window.unsteady = unsteady(slices);
    aside_ += seconds_of(window.all.to.counters);
    return window;
  }

  /// By how much the rates of two halves differ, in parts of that of both.
  static double unsteady(std::span<const std::pair<double, double>> slices) {
    if (slices.size() < 3 || slices.back().first == slices.front().first) return 0;
    const auto rate = [](const auto& from, const auto& to) {
      return (to.first - from.first) / (to.second - from.second);
    };
    const auto &start = slices.front(), &middle = slices[slices.size() / 2], &end = slices.back();
    return (rate(middle, end) - rate(start, middle)) / rate(start, end);
  }

  /// That a block is in flight, in the mean.
  double block_time(const RestTime& rest) const {
    return rest.block_cycles * wave_instructions() / static_cast<double>(wave_) / std::max(1.0, left_instructions());
  }

  /// Sectors on their way from DRAM in the mean of a time, by its rate and how long a read takes (Little).
  void expect_fetches(const Seen& seen) {
    const MemoryCounters &l = seen.to.counters.memory, &e = seen.from.counters.memory;
    const std::uint64_t replies = l.read_replies - e.read_replies;
    const double each = replies == 0 ? 0
                                     : static_cast<double>(l.read_latency_cycles - e.read_latency_cycles) /
                                           static_cast<double>(replies);
    gpu_.memory().expect_fetches(static_cast<double>(l.dram_read_bytes - e.dram_read_bytes) / kSectorBytes * each /
                                 std::max(1.0, seen.cycles()));
  }

  /// Warp instructions a cycle of a block that has an SM for itself. What was simulated may not show it, so the next
  /// blocks are run so, for as long as is cheap: from one on that does no less than the mean, since those at the edges
  /// of a grid may have little to do. Where none is left it is the last ones. Few SMs hardly share anything, and the
  /// fewer they are, the further their blocks come.
  double rate_alone() {
    const std::uint64_t sms = std::max<std::size_t>(1, sms_in_use() / kFewOf);
    const std::uint64_t count = std::max(cluster(), std::min(blocks_, sms) / cluster() * cluster());
    std::uint64_t first = std::min(gpu_.dispatcher().dispatched(), blocks_ - count) / cluster() * cluster();
    while (first + count < blocks_ && instructions_of(first) < instructions_ / blocks_) first += cluster();
    LaunchContext context = context_;
    context.blocks_per_sm = 1;
    Gpu gpu(context, &gpu_.memory(), options_.threads,
            {first, first + count, cluster() > 1 ? 0 : static_cast<int>(sms)});
    const Window window = run_for(gpu, kFewSms * seconds_, kForEver, 0, 0);
    const TimingCounters &all = window.all.to.counters,
                         since = window.over ? TimingCounters{} : window.warm.from.counters;
    return static_cast<double>(all.instructions_issued - since.instructions_issued) /
           static_cast<double>(std::max<std::uint64_t>(1, all.sm_active_cycles - since.sm_active_cycles));
  }

  std::uint64_t instructions_of(std::uint64_t block) const {
    return class_instructions_[context_.classes.class_of(block)];
  }

  RestBlock whole_block(std::uint64_t block) const {
    const auto all = static_cast<double>(instructions_of(block));
    return {block, all, all, {}};
  }

  std::vector<std::vector<RestBlock>> blocks_in_flight() const {
    std::vector<std::vector<RestBlock>> in_flight(gpu_.sms());
    for (std::uint16_t id = 0; id < gpu_.sms(); ++id) {
      for (const ResidentBlock resident : gpu_.sm(id).residents()) {
        RestBlock& block = in_flight[id].emplace_back(whole_block(resident.linear));
        for (const std::uint16_t index : resident.warps) {
          const Warp& warp = gpu_.sm(id).warp(index);
          const auto way = static_cast<double>(context_.trace.classes[warp.cls].paths[warp.path].instructions);
          const double behind = warp.alive ? way - static_cast<double>(warp.cursor.ahead()) : way;
          block.left -= behind;
          block.leads.push_back(behind / way);
        }
        for (double& lead : block.leads) lead -= block.done();
      }
      std::ranges::sort(in_flight[id], {}, &RestBlock::block);
    }
    return in_flight;
  }

  /// How far the blocks of an SM are, from the oldest on, summed over SMs.
  static std::vector<double> by_age(const std::vector<std::vector<RestBlock>>& of_sms) {
    std::vector<double> sums;
    for (const std::vector<RestBlock>& blocks : of_sms) {
      sums.resize(std::max(sums.size(), blocks.size()), 0);
      for (std::size_t k = 0; k < blocks.size(); ++k) sums[k] += blocks[k].done();
    }
    return sums;
  }

  /// How far blocks of one SM came side by side in the last part, from the oldest on, while none had ended, and one
  /// instruction more, so that none stands still. Nothing, where some have: then those in flight are as far apart as
  /// they stay; or where the blocks of an SM differ by less than SMs do (standard deviation): then which one ends first
  /// is chance.
  std::vector<double> shares_by_age(const Mark& from) const {
    std::vector<double> shares = by_age(in_flight_);
    double sum = 0, squares = 0, sms = 0;
    std::uint64_t blocks = 0;
    for (const std::vector<RestBlock>& of_sm : in_flight_) {
      if (of_sm.empty()) continue;
      double done = 0;
      for (const RestBlock& block : of_sm) done += block.done() / static_cast<double>(of_sm.size());
      sum += done, squares += done * done, sms += 1;
      blocks += of_sm.size();
    }
    if (blocks == 0 || blocks < gpu_.dispatcher().dispatched()) return {};
    const double deviation = std::sqrt(std::max(0.0, squares / sms - sum / sms * sum / sms));
    for (std::size_t k = 0; k < from.by_age.size(); ++k) shares[k] -= from.by_age[k];
    if (shares.front() - shares.back() < deviation * sms) return {};
    for (double& share : shares) share += sms * static_cast<double>(wave_) / wave_instructions();
    return shares;
  }

  /// The rate of each SM in the last part, relative to their mean. None once all blocks are dispatched, since then SMs
  /// may hold fewer than they have room for.
  std::vector<double> times_by_sm(const Seen& seen) const {
    if (gpu_.dispatcher().dispatched() == blocks_) return {};
    std::vector<const Mark*> marks;
    for (const Mark& m : checkpoints_)
      if (m.instructions >= seen.from.instructions) marks.push_back(&m);
    std::vector<std::size_t> used;  // where no cluster fits an SM has no blocks
    for (std::size_t sm = 0; sm < gpu_.sms(); ++sm)
      if (marks.back()->by_sm[sm] > 0) used.push_back(sm);
    Eigen::ArrayXXd progress(used.size(), marks.size());
    for (std::size_t i = 0; i < used.size(); ++i)
      for (std::size_t m = 0; m < marks.size(); ++m)
        progress(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(m)) = marks[m]->by_sm[used[i]];
    const Eigen::ArrayXd rates = rates_of_each(progress);
    std::vector<double> times(gpu_.sms(), 1);
    for (std::size_t i = 0; i < used.size(); ++i) times[used[i]] = rates[static_cast<Eigen::Index>(i)];
    return times;
  }

  RestTime schedule(SmRate rate) const {
    // SMs on which no cluster fits stay empty.
    std::vector<std::vector<RestBlock>> left = in_flight_;
    for (std::size_t sm = left.size(); sm-- > 0 && left.size() > sms_in_use();) {
      if (!left[sm].empty()) continue;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(sm));
      if (!rate.times.empty()) rate.times.erase(rate.times.begin() + static_cast<std::ptrdiff_t>(sm));
    }
    const std::uint64_t first = gpu_.dispatcher().dispatched();
    return schedule_rest(std::move(left), blocks_ - first, context_.blocks_per_sm, rate,
                         [&](std::uint64_t i) { return whole_block(first + i); });
  }

  std::optional<BlockRecorder> recorder_;
  LaunchContext context_;
  SimulateOptions options_;
  double seconds_ = 0, for_verdict_ = 0;  ///< for_verdict_: beside them, for a launch that they reach for whole
  double aside_ = 0;                      ///< seconds spent on windows and looks at few SMs
  std::uint64_t issued_aside_ = 0;        ///< instructions simulated in windows
  Gpu gpu_;
  BlockCuts cuts_;
  std::optional<bool> windows_;                    ///< are there any, once planned
  std::vector<std::uint64_t> class_instructions_;  ///< of a block
  std::uint64_t blocks_ = 0, wave_ = 0, instructions_ = 0, lines_of_classes_ = 0;
  std::vector<Mark> checkpoints_;                  ///< the first is the launch's start
  std::vector<std::vector<RestBlock>> in_flight_;  ///< by SM, the oldest first, when the start ended
  std::optional<BlockFootprint> footprint_;
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before) {
  return Sampler(context, options, before).run();
}

}  // namespace forewarp
