#include "timing/skip/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "hardware/occupancy.h"
#include "timing/gpu/gpu.h"
#include "timing/skip/block_cuts.h"
#include "timing/skip/block_footprint.h"
#include "timing/skip/blocks_in_flight.h"
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
constexpr Cycle kSlice = 128;              // cycles between two looks at the progress
constexpr std::uint64_t kCheckpoints = 4;  // while the instructions are simulated that are in any case
// Slices between two looks at what has been spent: at most so many, and no more than that part of the seconds takes.
constexpr double kSlicesALook = 32, kSpentALook = 1. / 64;
// Of what is left out, what nothing that was seen shows, where the launch was looked at in its middle and where it was
// not: with these the cycles of --full lay in the interval in 32 of 35 launches, before launches by TMA had windows
// (FINDINGS.md, windows).
constexpr double kUnseen = 0.04, kUnseenAhead = 0.1;
// Of the seconds, where windows follow a launch's start: for the start, and for the end.
constexpr double kForStart = 0.3, kForEnd = 0.2, kForWindows = 1 - kForStart - kForEnd;
// Few, since one has to be long: loops that copy some turns ahead, and lines that L1 keeps for some turns, take some
// tens of thousands of cycles until they are as they would be (FINDINGS.md, windows).
constexpr double kWindows = 2;
// Places for a window that are tried, in the time that it takes and in all; of a schedule with more parts, none are.
constexpr double kPlaces = 4, kMostPlaces = 512;
constexpr std::size_t kMostToPlace = 50'000;
// Of a window: where little is to be stored, and in which part of it much is.
constexpr double kAbout = 1.25, kFromStores = 0.55, kToStores = 0.8;
constexpr double kSomeWaves = 2, kManyWaves = 6;  // that say more of a launch than windows do
constexpr double kLateEnd = 2;                    // times what the end was to take, after which it is left
constexpr double kWarmUp = 0.5;                   // of a window, until pipelines and L1 are as they would be
constexpr std::uint64_t kBatches = 8;             // parts of what a rest is taken to be like, for its variance

// Processor seconds for a warp instruction, a line looked up in L1, a request below it, a sector of an atomic operation
// and one of DRAM, at a nominal speed, and for a line of BlockFootprint::work() (FINDINGS.md: what a prediction costs).
constexpr double kSecondsAnInstruction = 1 / 5.4e6, kSecondsALookup = 1 / 4e6, kSecondsARequest = 1 / 0.95e6,
                 kSecondsAnAtomic = 1 / 2.5e6, kSecondsASector = 1 / 1.2e6, kSecondsALine = 1 / 10e6;
constexpr double kFewSms = 1. / 16;  // of the seconds, that each of the two looks at few SMs may take
constexpr std::size_t kFewOf = 8;    // ... which are at most one of so many
// ... that is kept for what follows a launch which stops early: those looks, and touching L2 for the rest. What listing
// its lines takes comes to that.
constexpr double kForRest = 0.1;
// ... that listing the lines of blocks may take; where it would take more, the rest moves in proportion to what was
// seen.
constexpr double kForLines = 0.5;

double seconds_of(const TimingCounters& c) {
  return static_cast<double>(c.instructions_issued) * kSecondsAnInstruction +
         static_cast<double>(c.l1_tag_lookups) * kSecondsALookup +
         static_cast<double>(c.memory.read_requests + c.memory.write_requests) * kSecondsARequest +
         static_cast<double>(c.memory.atomic_sectors + c.memory.reduction_sectors) * kSecondsAnAtomic +
         static_cast<double>(c.memory.dram_read_bytes + c.memory.dram_write_bytes) / kSectorBytes * kSecondsASector;
}

/// How far a launch was at some time.
struct Mark {
  Cycle at = 0;
  std::uint64_t instructions = 0;
  TimingCounters counters;
  Cycle backlog = 0;  ///< that L2's atomic units had before them
  std::vector<BlockProgress> in_flight;

  std::size_t sms() const {  ///< that hold any block
    std::size_t sms = 0;
    for (std::size_t i = 0; i < in_flight.size(); ++i) sms += i == 0 || in_flight[i].sm != in_flight[i - 1].sm;
    return sms;
  }
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
    checkpoints_.push_back(mark(gpu_));
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
    if (recorder_) hand_over_record(result);
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

  /// What was watched of a block; or why there is nothing.
  void hand_over_record(TimingResult& result) {
    for (std::uint16_t id = 0; id < gpu_.sms(); ++id) gpu_.sm(id).close_record(gpu_.now());
    BlockRecord record = recorder_->finish(gpu_.now());
    const std::string block = std::to_string(record.request.block);
    if (record.request.block >= blocks_)
      result.warnings.push_back("block " + block + " is to be watched, but the launch has " + std::to_string(blocks_) +
                                " blocks: their numbers begin at 0");
    else if (record.blocks.empty())
      result.warnings.push_back("block " + block +
                                " is to be watched, but it is among those that were extrapolated: watch one of the "
                                "first wave, below block " +
                                std::to_string(wave_) + ", or simulate all with --full");
    else {
      const bool cut = result.coverage.extrapolated && record.end == gpu_.now();
      if (cut && result.elapsed_cycles > gpu_.now())
        record.left_out.push_back({record.end, result.elapsed_cycles - gpu_.now()});
      result.record = std::make_shared<const BlockRecord>(std::move(record));
    }
  }

  // --- What is simulated ---------------------------------------------------------------------------------------------
  /// Whether the launch was followed to its end before what was seen was enough.
  bool run_in_time() {
    const double checkpoint_every = static_cast<double>(options_.detailed_instructions) / kCheckpoints;
    std::uint64_t last_look = 0, next_look = 0;
    double spent = 0;
    for (std::uint64_t slice = 0; !gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice); ++slice) {
      gpu_.advance_to(gpu_.now() + kSlice);
      if (slice >= next_look) {
        if (overspent()) return false;
        const double now = seconds(), of_slice = (now - spent) / static_cast<double>(slice - last_look + 1);
        const double affords = kSpentALook * seconds_ / std::max(of_slice, 1e-9);
        last_look = slice + 1;
        next_look = last_look + static_cast<std::uint64_t>(std::min(kSlicesALook, affords));
        spent = now;
      }
      // After so many instructions, and after each wave where those are more.
      const std::uint64_t before = checkpoints_.back().instructions;
      const auto waves = [&](std::uint64_t done) {
        return std::floor(static_cast<double>(done) / wave_instructions());
      };
      if (static_cast<double>(gpu_.issued() - before) < checkpoint_every &&
          (waves(gpu_.issued()) == waves(before) || checkpoint_every > wave_instructions()))
        continue;
      checkpoints_.push_back(mark(gpu_));
      if (gpu_.issued() < options_.detailed_instructions || !is_precise()) continue;
      plan_windows();
      const bool by_waves = windows_ && !*windows_;
      if (!by_waves || static_cast<double>(gpu_.issued()) >= kSomeWaves * wave_instructions()) return false;
    }
    return true;
  }

  Mark mark(const Gpu& gpu) const {
    return {gpu.now(), gpu.issued(), gpu.counters(), gpu.memory().atomic_backlog(gpu.now()),
            blocks_in_flight(gpu, context_.trace)};
  }
  /// The same without backlog and blocks in flight.
  static Mark brief_mark(const Gpu& gpu) { return {gpu.now(), gpu.issued(), gpu.counters(), 0, {}}; }

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
    const bool waves = start >= kManyWaves * wave || (start >= kSomeWaves * wave && window < wave);
    windows_ = !waves;
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

  /// What is left, in times of what was seen.
  double left_of(const Seen& seen) const {
    return static_cast<double>(instructions_ - std::min(instructions_, seen.to.instructions)) /
           static_cast<double>(seen.instructions());
  }

  /// The last half of what was simulated, or the whole waves nearest to half, so that blocks begin and end in it as
  /// often as they do in the rest.
  Seen last_part(const Mark& now) const {
    const double wave = wave_instructions();
    const auto done = static_cast<double>(now.instructions);
    const double part = std::max(1.0, std::round(done / 2 / wave)) * wave;
    return {mark_at(static_cast<std::uint64_t>(part < done ? done - part : done / 2), now), now};
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
    const auto between = [&](Cycle a, Cycle b) {
      return static_cast<Cycle>((1 - part) * static_cast<double>(a) + part * static_cast<double>(b));
    };
    mark.at = between(mark.at, next.at);
    mark.backlog = between(mark.backlog, next.backlog);
    mark.instructions = instructions;
    return mark;
  }

  /// Half of the 95 % interval of a rest that goes as what was seen, in parts of it: the rates of equal parts of that
  /// say how sure it is.
  double half_interval_of(const Seen& seen) const {
    const auto looks = std::count_if(checkpoints_.begin(), checkpoints_.end(),
                                     [&](const Mark& mark) { return mark.instructions > seen.from.instructions; });
    const std::uint64_t batches = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(looks), 2, kBatches);
    std::vector<double> rates;
    Seen batch{seen.from, seen.from};
    for (std::uint64_t i = 1; i <= batches; ++i) {
      batch.from = batch.to;
      batch.to = mark_at(seen.from.instructions + seen.instructions() * i / batches, seen.to);
      rates.push_back(batch.cycles() / static_cast<double>(batch.instructions()));
    }
    return std::hypot(half_interval(rates), kUnseenAhead);
  }

  // --- The rest ------------------------------------------------------------------------------------------------------
  /// The rest takes as long as its schedule says at the rate of the last part, or as windows in it do; what it moves is
  /// found by touching L2. Half of the interval of its cycles.
  double extrapolate_rest(TimingResult& result) {
    const Seen seen = last_part(mark(gpu_));
    const MemoryCounters before = result.counters.memory;
    const Held held = held_in(seen);
    leads_ = leads_in_flight(gpu_, context_.trace);
    L2Traffic traffic = gpu_.drain();
    SmRate rate =
        observed_rate(seen.to.counters, seen.from.counters, seen.instructions(),
                      {context_.warps_per_block, context_.blocks_per_sm, context_.gpu.issue.sub_partitions, held.sms},
                      held.blocks, few_sms());
    rate.shares = shares_so_far(seen.to);
    RestTime rest = schedule(rate);
    expect_fetches(seen);
    const TouchEffort effort = effort_of_rest();
    const bool listed = lists_lines();
    if (listed) {
      // Blocks go on from where their warps are in the mean: what some of them have left behind them comes first.
      traffic += catch_up(gpu_, context_, effort.touched);
      footprint_.emplace(context_, gpu_.crew());
    } else {
      result.warnings.push_back(
          "listing the lines that the rest of the launch reads and writes would take longer than the seconds given: "
          "what it moves is taken in proportion to what was simulated (a larger --budget lists them)");
    }
    traced_ = traced_sectors(context_.trace, context_.patterns);
    const std::vector<double> paces = follow(rest, seen, effort, traffic, result.counters);
    if (!begins_anywhere()) add_scaled(result.counters, seen.to.counters, seen.from.counters, left_of(seen));
    if (listed) set_traffic(result.counters.memory, before, traffic);
    set_residence(result.counters, seen.to.counters, rest,
                  observed_warps(seen.to.counters, seen.from.counters, context_.warps_per_block, held.blocks));
    set_sectors(result.counters, traced_, listed);
    // Atomic operations that pile up in L2 outlast the blocks: L2 serves them one after the other.
    const double now = static_cast<double>(seen.to.backlog), grew = now - static_cast<double>(seen.from.backlog);
    const double served = grew > kUnseen * seen.cycles() ? now + left_of(seen) * (seen.cycles() + grew) : 0;
    result.elapsed_cycles += static_cast<Cycle>(std::max(rest.cycles, served));
    result.skipped.push_back({gpu_.now(), result.elapsed_cycles});
    const double known = paces.size() < 2 ? half_interval_of(seen) : std::hypot(half_interval(paces), kUnseen);
    return rest.cycles > 0 ? known * rest.cycles : 0;
  }

  TouchEffort effort_of_rest() const {
    return {static_cast<std::uint64_t>(kTouchedRest * std::clamp(seconds_, kLeastForRest, kMostForRest)), kSeenRest,
            kSeenInStretches, kAtTheEnd * static_cast<std::uint64_t>(context_.gpu.l2.bytes) / kLineBytes};
  }

  /// A part of the launch that is simulated from a time of its schedule on.
  struct Window {
    Seen all, warm;  ///< `warm`: without what it takes to warm up
    bool over = false;
    double scheduled = 1;  ///< cycles of the schedule, for what it did once warm

    double pace() const { return warm.cycles() / scheduled; }
    double stores() const {  ///< sectors in a cycle of the schedule
      return static_cast<double>(stored_sectors(warm.to.counters) - stored_sectors(warm.from.counters)) / scheduled;
    }
  };

  /// Touches L2 for the rest. On the way it simulates windows, and the end, which is what it is.
  std::vector<double> follow(RestTime& rest, const Seen& start, const TouchEffort& effort, L2Traffic& traffic,
                             TimingCounters& counters) {
    double touched = 0;
    const auto touch_until = [&](double time) {
      if (!footprint_) return;
      traffic += footprint_->follow(parts_between(rest.parts, touched, time), effort, gpu_.memory()).traffic;
      touched = time;
    };
    std::vector<double> paces;
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
      const auto look_from = [&](double time, double seconds) {
        touch_until(time);
        return look_at(rest, work, time, seconds);
      };
      paces.push_back(1);
      if (end <= 0 || !*windows_) {
        add(start, 1, 1);
      } else {
        const double each = kForWindows / kWindows;
        const auto [one, other] = places_of_windows(rest, end, static_cast<double>(gpu_.now()) * each / for_start());
        Window first = look_from(std::min(one, other), each * all),
               second = look_from(std::max(one, other), each * all);
        if (first.stores() > second.stores()) std::swap(first, second);
        const double share = share_of_stores(first, second, left / end);
        const double pace = (1 - share) * first.pace() + share * second.pace();
        paces.insert(paces.end(), {first.pace(), pace});
        add(first.warm, 1 - share, first.pace());
        add(second.warm, share, second.pace());
      }
      const Window last = look_from(end, kLateEnd * kForEnd * all);
      // What it did not come to goes on as its last part did.
      const double unseen =
          last.over ? 0 : std::max(0.0, work.all() - left - static_cast<double>(last.all.instructions()));
      const double times = unseen / static_cast<double>(last.warm.instructions());
      cycles += last.all.cycles() + times * last.warm.cycles();
      add_scaled(counters, last.all.to.counters, last.all.from.counters, 1);
      add_scaled(counters, last.warm.to.counters, last.warm.from.counters, times);
      const double pace = rest.cycles > 0 ? cycles / rest.cycles : 1;
      rest.cycles *= pace, rest.block_cycles *= pace, rest.sm_cycles *= pace;
    }
    touch_until(std::numeric_limits<double>::infinity());
    return paces;
  }

  /// Sectors that are stored, by way of L1 or as boxes.
  static std::uint64_t stored_sectors(const TimingCounters& c) {
    return std::max(c.l1_store_sectors, c.memory.write_sectors);
  }

  /// The share of the second of two windows in the schedule, at so many instructions a cycle, with which they store as
  /// much as is left to be stored. Blocks that went off together store at the same time, and what they do then is
  /// another thing than what they do in their loops. Where stores do not tell windows apart, each has its half.
  double share_of_stores(const Window& fewer, const Window& more, double instructions) const {
    const double part = static_cast<double>(blocks_) / static_cast<double>(context_.trace.launch.grid.count());
    const double all = part * static_cast<double>(traced_.stores + traced_.box_stores);
    const double left = (all - static_cast<double>(stored_sectors(gpu_.counters()))) /
                        std::max(1.0, left_instructions()) * instructions;
    if (left < fewer.stores() || left >= more.stores()) return 0.5;
    return (left - fewer.stores()) / (more.stores() - fewer.stores());
  }

  /// Where two windows of so many cycles begin, before a time: near the middles of both halves, one where no more is
  /// stored than in the mean and one where no less is.
  std::pair<double, double> places_of_windows(const RestTime& rest, double end, double cycles) {
    std::pair<double, double> best{end / 4, 3 * end / 4};
    if (!footprint_ || !footprint_->keeps_all() || rest.parts.size() > kMostToPlace) return best;
    const auto stored = [&](double from, double until) {
      double sum = 0;
      for (const RestPart& p : rest.parts) {
        if (p.until <= from || p.at >= until) continue;
        sum += footprint_->stored(p.block, p.position(from), p.position(until));
      }
      return sum;
    };
    const double mean = stored(0, end) / end;
    bool calm = false, busy = false;
    const auto places = static_cast<std::uint64_t>(std::clamp(kPlaces * end / cycles, 1.0, kMostPlaces));
    for (std::uint64_t i = 0; i < places; ++i) {
      const double at = end * (static_cast<double>(i) + 0.5) / static_cast<double>(places);
      if (at + kAbout * cycles > end) break;
      const auto nearer = [&](double to, double before) { return std::abs(at - to) < std::abs(before - to); };
      if ((!calm || nearer(end / 4, best.first)) && stored(at, at + kAbout * cycles) <= mean * kAbout * cycles)
        calm = true, best.first = at;
      if ((!busy || nearer(3 * end / 4, best.second)) &&
          stored(at + kFromStores * cycles, at + kToStores * cycles) >= mean * (kToStores - kFromStores) * cycles)
        busy = true, best.second = at;
    }
    return best;
  }

  /// So many seconds of the launch from a time of its schedule on.
  Window look_at(const RestTime& rest, const WorkInTime& work, double at, double most) {
    const std::size_t sms = gpu_.sms();
    std::vector<std::vector<RestPart>> of_sm(sms);  // what each did while a block takes: L1 may still hold it
    for (const RestPart& part : parts_between(rest.parts, at - block_time(rest), at)) of_sm[part.sm].push_back(part);
    std::vector<BlockProgress> placed;
    std::uint64_t next = gpu_.dispatcher().dispatched();
    for (const RestPart& part : rest.parts) {
      if (part.at > at) continue;
      next = std::max(next, part.block + 1);
      if (part.until > at) placed.push_back({part.block, part.sm, part.position(at)});
    }
    std::sort(placed.begin(), placed.end(),
              [](const BlockProgress& a, const BlockProgress& b) { return a.block < b.block; });
    std::vector<std::size_t> held(sms);
    std::vector<BlockUnderWay> blocks;
    for (const BlockProgress& p : placed) {
      const std::size_t rank = held[p.sm]++;
      const Leads none, &leads = rank < leads_[p.sm].size() ? leads_[p.sm][rank] : none;
      blocks.push_back({p.block, p.sm, cuts_.at(context_.classes.class_of(p.block), p.done, leads)});
    }
    LaunchContext context = context_;
    context.recorder = nullptr;
    Gpu gpu(context, &gpu_.memory(), options_.threads, {next, blocks_, 0, blocks});
    for (std::size_t sm = 0; sm < sms && footprint_; ++sm)
      footprint_->fill_l1(of_sm[sm], gpu.sm(static_cast<std::uint16_t>(sm)));
    Window window = run_for(gpu, most, kWarmUp * static_cast<double>(gpu_.now()) * most / seconds_of(gpu_.counters()));
    const Seen& seen = window.warm;
    const double first = work.by(at) + static_cast<double>(seen.from.instructions);
    const double done = first + static_cast<double>(seen.instructions());
    window.scheduled = std::max(
        1.0, done <= work.all() ? work.when(done) - work.when(first) : (done - first) / work.all() * rest.cycles);
    issued_aside_ += gpu.issued();
    return window;
  }

  /// Simulates so many seconds of it, or to its end. It warms up for half of them, or for so many cycles.
  Window run_for(Gpu& gpu, double most, double warm_up) {
    Window window;
    window.all.from = window.warm.from = brief_mark(gpu);
    while (!window.over) {
      window.over = gpu.run(~std::uint64_t{0}, gpu.now() + kSlice);
      gpu.advance_to(gpu.now() + kSlice);
      const double spent = seconds_of(gpu.counters()) / most;
      if (spent >= 1) break;
      if (spent < kWarmUp && static_cast<double>(gpu.now()) < warm_up) window.warm.from = brief_mark(gpu);
      if (window.warm.from.instructions == 0) window.all.from = window.warm.from;
    }
    window.all.to = window.warm.to = brief_mark(gpu);
    if (window.over) window.all.to.at = window.warm.to.at = std::max(gpu.last_end(), window.warm.from.at);
    aside_ += seconds_of(window.all.to.counters);
    return window;
  }

  /// That a block is in flight, in the mean.
  double block_time(const RestTime& rest) const {
    return rest.block_cycles * wave_instructions() / static_cast<double>(wave_) / std::max(1.0, left_instructions());
  }

  double left_instructions() const {
    return static_cast<double>(instructions_ - std::min(instructions_, gpu_.issued()));
  }

  struct Held {
    double blocks = 0;    ///< on an SM that holds any
    std::size_t sms = 0;  ///< that hold any
  };
  /// In the mean of what was seen: its rate is theirs, not that of the few that may be left. A place that is filled
  /// again counts as taken all the time.
  Held held_in(const Seen& seen) const {
    if (!gpu_.dispatcher().exhausted()) return {static_cast<double>(context_.blocks_per_sm), sms_in_use()};
    double blocks = 0, sms = 0, looks = 0;
    const auto add = [&](const Mark& mark) {
      blocks += static_cast<double>(mark.in_flight.size());
      sms += static_cast<double>(mark.sms());
      ++looks;
    };
    for (const Mark& mark : checkpoints_)
      if (mark.at >= seen.from.at) add(mark);
    add(seen.to);
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
    return sum;
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

  /// As at the end of the launch: as many SMs as a last wave leaves busy, up to an eighth of all. Those hardly share
  /// anything, and the fewer they are, the further their blocks come in the seconds of a look.
  FewSms few_sms() {
    const std::uint64_t begun = gpu_.dispatcher().exhausted() ? 0 : gpu_.dispatcher().dispatched();
    const std::uint64_t left = (blocks_ - begun) % wave_, last_wave = left == 0 ? wave_ : left;
    if (cluster() > 1) return {last_wave, rate_of_few(last_wave, 1), 0};
    const std::uint64_t sms = std::clamp<std::uint64_t>(last_wave, 1, std::max<std::size_t>(1, sms_in_use() / kFewOf));
    const double alone = rate_of_few(sms, 1);
    return {sms, alone, context_.blocks_per_sm > 1 ? rate_of_few(sms, context_.blocks_per_sm) : alone};
  }

  /// Warp instructions a cycle of an SM that holds so many blocks, when so many SMs do, as at the end of a launch.
  /// Nothing that was simulated shows it, so the next blocks are run so, for as long as is cheap: from one on that does
  /// no less than the mean, since those at the edges of a grid may have little to do. Where none is left it is the last
  /// ones.
  double rate_of_few(std::uint64_t sms, int blocks_per_sm) {
    sms = std::min(sms, static_cast<std::uint64_t>(context_.gpu.chip.sm_count));
    const std::uint64_t most = std::min(blocks_, sms * static_cast<std::uint64_t>(blocks_per_sm));
    const std::uint64_t count = std::max(cluster(), most / cluster() * cluster());
    std::uint64_t first = std::min(gpu_.dispatcher().dispatched(), blocks_ - count) / cluster() * cluster();
    while (first + count < blocks_ && instructions_of(first) < instructions_ / blocks_) first += cluster();
    LaunchContext context = context_;
    context.blocks_per_sm = blocks_per_sm;
    Gpu gpu(context, &gpu_.memory(), options_.threads,
            {first, first + count, cluster() > 1 ? 0 : static_cast<int>(sms)});
    const Window window = run_for(gpu, kFewSms * seconds_, std::numeric_limits<double>::infinity());
    const TimingCounters &all = window.all.to.counters,
                         since = window.over ? TimingCounters{} : window.warm.from.counters;
    return static_cast<double>(all.instructions_issued - since.instructions_issued) /
           static_cast<double>(std::max<std::uint64_t>(1, all.sm_active_cycles - since.sm_active_cycles));
  }

  std::uint64_t instructions_of(std::uint64_t block) const {
    return class_instructions_[context_.classes.class_of(block)];
  }

  RestTime schedule(const SmRate& rate) const {
    const auto rest_block = [&](std::uint64_t block, double done) {
      const auto all = static_cast<double>(instructions_of(block));
      return RestBlock{block, all, all * (1 - done)};
    };
    std::vector<std::vector<RestBlock>> left(static_cast<std::size_t>(context_.gpu.chip.sm_count));
    for (const BlockProgress& block : blocks_in_flight(gpu_, context_.trace))
      left[block.sm].push_back(rest_block(block.block, block.done));
    for (std::vector<RestBlock>& of_sm : left)
      std::sort(of_sm.begin(), of_sm.end(), [](const RestBlock& a, const RestBlock& b) { return a.block < b.block; });
    // SMs on which no cluster fits stay empty.
    for (std::size_t sm = left.size(); sm-- > 0 && left.size() > sms_in_use();)
      if (left[sm].empty()) left.erase(left.begin() + static_cast<std::ptrdiff_t>(sm));
    const std::uint64_t first = gpu_.dispatcher().dispatched();
    return schedule_rest(std::move(left), blocks_ - first, context_.blocks_per_sm, rate,
                         [&](std::uint64_t i) { return rest_block(first + i, 0); });
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
  std::vector<Mark> checkpoints_;          ///< the first is the launch's start
  std::vector<std::vector<Leads>> leads_;  ///< of the warps that were in flight when the start ended
  std::optional<BlockFootprint> footprint_;
  AccessSectors traced_;  ///< of all the launch, once its rest is extrapolated
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before) {
  return Sampler(context, options, before).run();
}

}  // namespace forewarp
