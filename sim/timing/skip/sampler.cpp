#include "timing/skip/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>

#include "timing/gpu/gpu.h"
#include "timing/skip/estimate.h"
#include "timing/skip/fluid.h"
#include "timing/skip/footprint.h"
#include "timing/skip/residency.h"
#include "timing/skip/scaled_counters.h"
#include "timing/skip/ways.h"

namespace forewarp {
namespace {

// Costs of the host, in what it takes to simulate a warp instruction (some eight million a second).
constexpr Cycle kSlice = 128;               // cycles between two looks at the progress
constexpr std::uint64_t kHostLookup = 1;    // a line in L1 and
constexpr std::uint64_t kHostRequest = 20;  // ... below it
constexpr double kWhole = 3;    // budgets up to which a launch costs hardly more than windows of it: a second
constexpr double kSampled = 12; // ... for windows
constexpr double kMost = 45;    // ... after which the rest is taken to go on as it did
constexpr double kWindows = 8;  // windows for a budget
constexpr double kMostWindows = 1000;
// Statistics.
constexpr double kLeastWindows = 8;  // of a launch: the gap between two is at most such a part of it
constexpr double kGrowth = 3;        // a gap is at most so many times what lies before it: transients fade in proportion
constexpr std::size_t kTrusted = 4;  // windows whose variance says how many more are needed
constexpr double kLeastGap = 2;      // windows; shorter gaps are not worth the warming after them
constexpr double kWarmed = 1.5;      // what a window costs with it
// Twice the standard deviation that is left between what was passed over and --full where the windows of a launch agree
// perfectly: what no window shows, such as blocks that fall behind one by one.
constexpr double kUnseen = 0.015;
constexpr double kOtherPhase = 0.1;   // of a window's work: the rest of it is what a gap consists of
constexpr double kInStep = 0.2;      // blocks of an SM whose rates differ by less are taken to keep step
// What was on its way has arrived, and what waits has found its place in the queues, after so many cycles: some five
// times as long as a read takes under load.
constexpr Cycle kSettle = 4096;

struct Work {
  double loop = 0, rest = 0;  ///< warp instructions of blocks' loops, and of what lies before and after them
  Work operator-(const Work& o) const { return {loop - o.loop, rest - o.rest}; }
  double all() const { return loop + rest; }
};

class Sampler {
 public:
  Sampler(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before)
      : context_(context),
        options_(options),
        gpu_(context, before, options.threads),
        ways_(context),
        footprint_(context, gpu_.crew()),
        full_(before != nullptr),
        budget_(static_cast<double>(options.detailed_instructions)) {
    blocks_ = context.trace.launch.grid.count();
    places_ = static_cast<std::uint64_t>(context.gpu.chip.sm_count) * static_cast<std::uint64_t>(context.blocks_per_sm);
    for (const BlockClass& cls : context.trace.classes) {
      double instructions = 0, lines = 0;
      for (const WarpTrace& warp : cls.warps) instructions += static_cast<double>(cls.paths[warp.path].instructions);
      for (const InstructionCount& count : cls.counts) lines += static_cast<double>(count.lines);
      const auto population = static_cast<double>(cls.population);
      instructions_ += instructions * population;
      cost_ += (instructions + lines * (kHostLookup + kHostRequest)) * population;
    }
    double loops = 0;
    for (std::uint32_t c = 0; c < context.trace.classes.size(); ++c)
      loops += ways_.way(c).in_loop * static_cast<double>(context.trace.classes[c].population);
    rest_share_ = 1 - loops / instructions_;
    wave_ = instructions_ / static_cast<double>(blocks_) * static_cast<double>(std::min(blocks_, places_));
  }

  TimingResult run() {
    TimingResult result;
    const bool whole = options_.full || cost_ <= kWhole * budget_;
    const bool over = whole ? gpu_.run(~std::uint64_t{0}, kNever - 1) : run_sampled();
    if (!over) pass_over_rest();
    result.counters = gpu_.counters();
    const double skipped = add_gaps(result.counters);
    result.elapsed_cycles = (over ? gpu_.last_end() : gpu_.now()) + static_cast<Cycle>(std::llround(skipped));
    if (!gaps_.empty()) set_sectors(result.counters, traced_sectors(context_.trace, context_.patterns), true);
    if (options_.caches == CacheState::Cold) {
      // Code comes from memory once, and so does what the front end reads to launch it.
      const std::uint64_t code =
          std::min(context_.program.code_lines() * static_cast<std::uint64_t>(context_.gpu.icache.line_bytes),
                   static_cast<std::uint64_t>(context_.gpu.icache.launch_bytes));
      result.counters.memory.dram_read_bytes += code + static_cast<std::uint64_t>(context_.gpu.launch.read_bytes);
    }
    result.elapsed_cycles += static_cast<Cycle>(context_.gpu.launch.end_cycles);
    put_on_the_clock(result);
    result.instruction_stalls = gpu_.instruction_stalls();
    describe(result, over);
    return result;
  }

 private:
  struct Mark {
    Cycle at = 0;
    Work done;
    TimingCounters counters;
    std::vector<std::uint64_t> issued;     ///< by SM
    std::vector<BlockProgress> in_flight;  ///< by SM
    std::vector<FineCycle> backlog;        ///< of L2's atomic units
    bool refilled = false;                 ///< places that come free are taken by others
  };
  struct Window {
    Mark from, to;
    Work work;
    std::vector<double> rate;  ///< warp instructions a cycle of an SM that holds one block, two, ...; 0: not seen
    std::size_t gap = 0;       ///< gaps before it
    double cycles() const { return static_cast<double>(to.at - from.at); }
  };
  struct Gap {
    std::size_t windows = 0;  ///< before it
    std::size_t first_window = 0;  ///< of its phase
    Cycle at = 0;             ///< on the simulation's own clock
    double cycles = 0;        ///< at the rate of the window before it
    Work work;
    L2Traffic traffic;
    bool ends_phase = false;  ///< what comes after it goes at another rate
    bool last = false;
    bool refilled = false;
    double block_cycles = 0, sm_cycles = 0;
  };

  // --- Progress --------------------------------------------------------------------------------------------------
  std::uint32_t class_of(std::uint64_t block) const { return context_.classes.class_of(block); }
  const BlockWay& way_of(std::uint64_t block) { return ways_.way(class_of(block)); }

  /// What a resident block has done.
  Work done_of(const ResidentBlock& block, bool* inside = nullptr) {
    Work done;
    const BlockClass& cls = context_.trace.classes[class_of(block.block)];
    const std::vector<PathShape>& shapes = ways_.shapes(class_of(block.block));
    for (std::size_t w = 0; w < cls.warps.size(); ++w) {
      const WarpPosition at = gpu_.sm(block.sm).position(block.slot, w);
      const PathShape& shape = shapes[cls.warps[w].path];
      std::uint64_t all = shape.before.back();
      if (at.alive) all = shape.before[at.run + 1] - at.left;
      const std::uint64_t loop = std::clamp(all, shape.loop_begin(), shape.loop_end()) - shape.loop_begin();
      done.loop += static_cast<double>(loop);
      done.rest += static_cast<double>(all - loop);
      if (inside != nullptr && !(at.alive && shape.in_loop(at.run))) *inside = false;
    }
    return done;
  }

  /// Of the launch, with what was passed over.
  Work done() {
    // Blocks that have been put off have not started, though later ones have.
    std::erase_if(put_off_, [&](std::uint64_t block) { return !is_put_off(block); });
    for (const std::uint64_t end = blocks_ - gpu_.dispatcher().waiting() + put_off_.size(); counted_ < end; ++counted_) {
      const BlockWay& way = way_of(counted_);
      handed_out_.loop += way.in_loop;
      handed_out_.rest += way.all - way.in_loop;
    }
    Work done = handed_out_;
    const auto take = [&](std::uint64_t block, const Work& so_far) {
      const BlockWay& way = way_of(block);
      done.loop -= way.in_loop - so_far.loop;
      done.rest -= way.all - way.in_loop - so_far.rest;
    };
    for (const ResidentBlock& block : gpu_.residents()) take(block.block, done_of(block));
    for (const std::uint64_t block : put_off_) take(block, {});
    return done;
  }
  bool is_put_off(std::uint64_t block) const {
    for (std::uint64_t i = 0; i < put_off_.size() && i < gpu_.dispatcher().waiting(); ++i)
      if (gpu_.dispatcher().upcoming(i) == block) return true;
    return false;
  }

  Mark mark() {
    Mark mark;
    mark.at = gpu_.now();
    mark.counters = gpu_.counters();
    mark.done = done();
    for (std::size_t sm = 0; sm < gpu_.sm_count(); ++sm) mark.issued.push_back(gpu_.sm(sm).issued());
    for (const ResidentBlock& block : gpu_.residents())
      mark.in_flight.push_back({block.block, block.sm, done_of(block).all() / way_of(block.block).all});
    mark.backlog = gpu_.memory().atomic_backlog(gpu_.now());
    mark.refilled = gpu_.dispatcher().waiting() > 0;
    return mark;
  }

  bool all_in_loops() {
    bool inside = true;
    for (const ResidentBlock& block : gpu_.residents()) {
      done_of(block, &inside);
      if (!inside) return false;
    }
    return true;
  }

  /// Of what has been simulated.
  double cost_so_far() const {
    const TimingCounters c = gpu_.counters();
    return static_cast<double>(c.instructions_issued + c.l1_tag_lookups * kHostLookup +
                               (c.memory.read_requests + c.memory.write_requests) * kHostRequest);
  }

  // --- Windows ---------------------------------------------------------------------------------------------------
  bool run_sampled() {
    Cycle since = 0;           // of the warming
    std::uint64_t issued = 0;  // then
    std::optional<Mark> begun;
    double target = 0, unit = 0;
    while (!gpu_.run(~std::uint64_t{0}, gpu_.now() + kSlice)) {
      gpu_.advance_to(gpu_.now() + kSlice);
      if (turnover_) {
        if (!see_turnover()) continue;
        since = gpu_.now();
        issued = gpu_.issued();
      }
      if (!begun) {
        if (!warmed(since, issued)) continue;
        begun = mark();
        unit = window_unit();
        target = unit > 0 ? std::ceil(window_cost() / unit) * unit : window_cost();
        continue;
      }
      if (static_cast<double>(gpu_.issued() - begun->counters.instructions_issued) < target) continue;
      if (gpu_.now() - begun->at < kSettle) {
        target += unit;
        continue;
      }
      end_window(*begun);
      begun.reset();
      if (cost_so_far() > kMost * budget_) return false;
      const double gap = next_gap();
      const bool passed = gap > 0 && pass_over(gap);
      since = passed ? gpu_.now() : 0;  // otherwise nothing was disturbed
      issued = passed ? gpu_.issued() : 0;
    }
    return true;
  }

  /// What blocks do before and after their loops costs what the first wave of them shows, all of which end together and
  /// make room for others; what was passed over before has brought them there. False: not seen yet.
  bool see_turnover() {
    const Work seen = done() - turnover_->done;
    if (seen.rest < rest_share_ * wave_ && cost_so_far() < kSampled * budget_) return false;
    const Window& window = windows_.back();
    const double by_loop = window.cycles() / std::max(1.0, window.work.loop);
    const double cycles = static_cast<double>(gpu_.now() - turnover_->at) - seen.loop * by_loop;
    if (seen.rest > 0) rest_weight_ = std::max(0.1, cycles / (seen.rest * by_loop));
    turnover_.reset();
    return true;
  }

  bool warmed(Cycle since, std::uint64_t issued) {
    if (gpu_.now() - since < kSettle || worst_backlog() > 2 * backlog_) return false;
    if (gaps_.empty() && gpu_.residents().size() < std::min(places_, blocks_) / 2 && !gpu_.dispatcher().exhausted())
      return false;
    const auto moved = static_cast<double>(gpu_.issued() - issued);
    if (moved < window_cost() / 2) return false;
    // Where loops are what blocks do, others than that begin and end together in the first wave.
    return moved > wave_ / 2 || loop_share() < 0.5 || all_in_loops();
  }

  /// Cycles of L2's busiest atomic unit.
  double worst_backlog() const {
    FineCycle most = 0;
    for (const FineCycle one : gpu_.memory().atomic_backlog(gpu_.now())) most = std::max(most, one);
    return std::max(static_cast<double>(kSettle), static_cast<double>(most) / 1024);
  }

  double loop_share() {
    double loop = 0, all = 0;
    for (const ResidentBlock& block : gpu_.residents()) {
      loop += way_of(block.block).in_loop;
      all += way_of(block.block).all;
    }
    return all > 0 ? loop / all : 0;
  }

  /// Warp instructions that are worth a window.
  double window_cost() const { return budget_ / kWindows * instructions_ / cost_; }

  /// Warp instructions of which a window has a whole number: of waves, or of iterations after which lines are whole,
  /// where they are short; 0: any.
  double window_unit() {
    if (all_in_loops()) {
      double unit = 0;
      std::uint32_t period = 1;
      for (const ResidentBlock& block : gpu_.residents()) {
        unit += way_of(block.block).iteration;
        period = std::max(period, way_of(block.block).line_period);
      }
      return unit * period <= 2 * window_cost() ? unit * period : unit;
    }
    return wave_ <= 4 * window_cost() ? wave_ : 0;
  }

  void end_window(const Mark& from) {
    Window window{from, mark(), {}, {}, gaps_.size()};
    window.work = window.to.done - from.done;
    // SMs by how many blocks they hold; those of which one ended in between count where others take its place.
    const auto most = static_cast<std::size_t>(context_.blocks_per_sm);
    std::vector<double> work(most + 1, 0), cycles(most + 1, 0);
    std::vector<std::size_t> before(gpu_.sm_count(), 0), after(gpu_.sm_count(), 0);
    for (const BlockProgress& block : from.in_flight) ++before[block.sm];
    for (const BlockProgress& block : window.to.in_flight) ++after[block.sm];
    for (std::size_t sm = 0; sm < before.size(); ++sm) {
      const std::size_t n = window.to.refilled ? most : after[sm];
      if (n == 0 || (!window.to.refilled && before[sm] != after[sm])) continue;
      work[n] += static_cast<double>(window.to.issued[sm] - from.issued[sm]);
      cycles[n] += window.cycles();
    }
    window.rate.assign(most, 0);
    for (std::size_t n = 1; n <= most; ++n)
      if (cycles[n] > 0) window.rate[n - 1] = work[n] / cycles[n];
    const std::vector<double> shares = observed_shares(window.to.in_flight, from.in_flight);
    shares_.resize(std::max(shares_.size(), shares.size()), 0);
    for (std::size_t i = 0; i < shares.size(); ++i) shares_[i] += shares[i];
    windows_.push_back(std::move(window));
    if (!full_) full_ = brought_since_start() >= static_cast<double>(context_.gpu.l2.bytes);
  }

  /// What work is worth: that outside loops costs so many times as much as that in them.
  double worth(const Work& work) const { return work.loop + rest_weight_ * work.rest; }
  double cycles_per_worth(const Window& window) const { return window.cycles() / std::max(1.0, worth(window.work)); }

  // --- L2 --------------------------------------------------------------------------------------------------------
  /// Bytes that have been put into L2, the copies in the other partition too.
  static double brought(const TimingCounters& c) {
    const MemoryCounters& m = c.memory;
    return static_cast<double>(m.miss_sectors + m.write_sectors + m.fabric_hit_sectors + m.fabric_miss_sectors) *
           kSectorBytes;
  }
  double brought_by(const Window& window) const {
    return (brought(window.to.counters) - brought(window.from.counters)) / std::max(1.0, window.work.all());
  }
  double brought_since_start() const {
    double bytes = brought(gpu_.counters());
    for (const Gap& gap : gaps_) bytes += gap.work.all() * brought_by(windows_[gap.windows - 1]);
    return bytes;
  }

  // --- Gaps ------------------------------------------------------------------------------------------------------
  /// Warp instructions to be passed over after the last window; 0: none.
  double next_gap() {
    const Window& window = windows_.back();
    const double so_far = window.to.done.all(), left = instructions_ - so_far, least = kLeastGap * window.work.all();
    double gap = std::min(kGrowth * (so_far - phase_began_), instructions_ / kLeastWindows);
    const double cost = kWarmed * cost_of(window), budget = kSampled * budget_ - cost_so_far();
    // Too few would come out of it.
    if (left < kLeastWindows * (least + window.work.all()) && left / window.work.all() * cost_of(window) < budget) return 0;
    if (windows_.size() - first_of_phase_ >= kTrusted) {
      // As many windows as their variance asks for, spread over what is left.
      const double more = windows_needed(left / instructions_) - static_cast<double>(windows_.size() - first_of_phase_);
      gap = more < 1 ? left : left / more;
      if (gap < least && left / window.work.all() * cost < budget) return 0;
    }
    // As many as can be afforded.
    gap = std::max({gap, least, budget < cost ? left : left * cost / budget});
    ends_phase_ = false;
    if (!full_) {
      const double until_full =
          (static_cast<double>(context_.gpu.l2.bytes) - brought_since_start()) / std::max(1e-9, brought_by(window));
      if (until_full < gap) {
        gap = until_full;
        ends_phase_ = true;
      }
    }
    return gap < least ? 0 : gap;
  }

  /// Windows of a systematic sample of a part of the launch that give it the precision asked for.
  double windows_needed(double part) const {
    std::vector<Neighbours> neighbours;
    sample(neighbours);
    const double deviation = 100 * part * relative_deviation(neighbours) / options_.precision;
    double windows = 2;
    while (windows < kMostWindows && student_975(windows - 1) * deviation > std::sqrt(windows)) ++windows;
    return windows;
  }

  static double cost_of(const Window& window) {
    const TimingCounters &l = window.to.counters, &e = window.from.counters;
    return static_cast<double>(l.instructions_issued - e.instructions_issued +
                                     (l.l1_tag_lookups - e.l1_tag_lookups) * kHostLookup +
                                     (l.memory.read_requests + l.memory.write_requests - e.memory.read_requests -
                                      e.memory.write_requests) * kHostRequest);
  }

  /// The rates of the last window, those that it did not show from earlier ones, or from what a queue would give.
  SmRate rates() {
    const Window& window = windows_.back();
    const SmShape shape{context_.warps_per_block, context_.blocks_per_sm, context_.gpu.issue.sub_partitions};
    double held = context_.blocks_per_sm;
    if (!window.to.refilled) {
      std::vector<bool> any(gpu_.sm_count());
      for (const BlockProgress& block : window.to.in_flight) any[block.sm] = true;
      held = static_cast<double>(window.to.in_flight.size()) /
             std::max(1.0, static_cast<double>(std::count(any.begin(), any.end(), true)));
    }
    SmRate rate = observed_rate(window.to.counters, window.from.counters, shape, held);
    for (std::size_t n = 0; n < rate.by_blocks.size(); ++n)
      for (auto w = windows_.rbegin(); w != windows_.rend(); ++w)
        if (w->rate[n] > 0) {
          rate.by_blocks[n] = w->rate[n];
          break;
        }
    const double by_instruction = worth(window.work) / std::max(1.0, window.work.all());
    for (double& one : rate.by_blocks) one *= by_instruction;
    rate.alone *= by_instruction;
    const auto [least, most] = std::minmax_element(shares_.begin(), shares_.end());
    if (!shares_.empty() && *least < (1 - kInStep) * *most) rate.shares = shares_;
    return rate;
  }

  FluidBlock fluid_block(std::uint64_t block) {
    const BlockWay& way = way_of(block);
    return {block, worth({way.in_loop, way.all - way.in_loop}), 0};
  }

  /// Blocks that began together have gone at rates of their own since: those whose data nobody else fetches are slower.
  /// What is known of that is how far they are, but for where in an iteration they are (James and Stein's shrinkage).
  void set_speeds(std::vector<std::vector<FluidBlock>>& in_flight) {
    if (!gpu_.dispatcher().exhausted() || gpu_.finished_blocks() > 0 || loop_share() < 0.5) return;
    struct Sum {
      double n = 0, done = 0, squares = 0, iteration = 0;
    };
    std::map<std::pair<std::uint32_t, std::size_t>, Sum> sums;  // of a class, on SMs that hold as many
    for (const std::vector<FluidBlock>& blocks : in_flight)
      for (const FluidBlock& block : blocks) {
        Sum& sum = sums[{class_of(block.block), blocks.size()}];
        sum.n += 1;
        sum.done += block.done;
        sum.squares += block.done * block.done;
        sum.iteration = way_of(block.block).iteration;
      }
    for (std::vector<FluidBlock>& blocks : in_flight)
      for (FluidBlock& block : blocks) {
        const Sum& sum = sums[{class_of(block.block), blocks.size()}];
        const double mean = sum.done / sum.n, variance = sum.squares / sum.n - mean * mean;
        const double known = std::max(0.0, 1 - sum.iteration * sum.iteration / 12 / std::max(1.0, variance));
        if (mean > 0) block.speed = 1 + known * (block.done / mean - 1);
      }
  }

  Fluid fluid(const std::vector<ResidentBlock>& residents) {
    std::vector<std::vector<FluidBlock>> in_flight(gpu_.sm_count());
    for (const ResidentBlock& resident : residents) {
      FluidBlock block = fluid_block(resident.block);
      block.done = std::min(block.all, worth(done_of(resident)));
      block.slot = resident.slot;
      in_flight[resident.sm].push_back(block);
    }
    set_speeds(in_flight);
    for (std::vector<FluidBlock>& blocks : in_flight)
      std::sort(blocks.begin(), blocks.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
    return Fluid(std::move(in_flight), gpu_.dispatcher().waiting(), context_.blocks_per_sm, rates(),
                 [this](std::uint64_t i) { return fluid_block(gpu_.dispatcher().upcoming(i)); });
  }

  /// A part of a block's work as a part of its instructions.
  double in_instructions(const BlockWay& way, double part) const {
    const double before = rest_weight_ * way.before_loop;
    double work = part * worth({way.in_loop, way.all - way.in_loop});
    double instructions = 0;
    if (work <= before) {
      instructions = work / rest_weight_;
    } else if (work <= before + way.in_loop) {
      instructions = way.before_loop + work - before;
    } else {
      instructions = way.before_loop + way.in_loop + (work - before - way.in_loop) / rest_weight_;
    }
    return way.all > 0 ? instructions / way.all : 0;
  }

  /// Sectors on their way from DRAM in the mean of the last window, by its rate and how long a read takes (Little).
  void expect_fetches() {
    const Window& window = windows_.back();
    const MemoryCounters &l = window.to.counters.memory, &e = window.from.counters.memory;
    const std::uint64_t replies = l.read_replies - e.read_replies;
    const double each = replies == 0 ? 0
                                     : static_cast<double>(l.read_latency_cycles - e.read_latency_cycles) /
                                           static_cast<double>(replies);
    gpu_.memory().expect_fetches(static_cast<double>(l.dram_read_bytes - e.dram_read_bytes) / kSectorBytes * each /
                                 std::max(1.0, window.cycles()));
  }

  /// False: nothing could be.
  bool pass_over(double instructions) {
    const std::vector<ResidentBlock> residents = gpu_.residents();
    const Window& window = windows_.back();
    Gap gap;
    gap.windows = windows_.size();
    gap.first_window = first_of_phase_;
    gap.at = gpu_.now();
    gap.refilled = gpu_.dispatcher().waiting() > 0;
    const Work before = done();
    // How long it takes, and whether the end comes first.
    Fluid trial = fluid(residents);
    double time = instructions / window.work.all() * window.cycles();
    trial.advance(time);
    if (gap.refilled) {
      if (trial.first_idle() >= 0 && trial.first_idle() < time) time = trial.first_idle();
    } else {
      Fluid rest = fluid(residents);
      rest.advance(std::numeric_limits<double>::infinity());
      double first = rest.now();
      if (rest.first_idle() >= 0) first = rest.first_idle();
      // The end is seen as it is, unless it is long.
      const double ahead = (instructions_ - before.all()) / window.work.all() * cost_of(window);
      if (ahead > kSampled * budget_) first = std::max(first, rest.now() / 4);
      time = std::min(time, first);
    }
    // What lies before and after loops has to be seen before it can be passed over.
    const bool unseen = gap.refilled && !turnover_seen_ && loop_share() >= 0.5;
    if (unseen) time = std::min(time, until_loops_end(residents));
    const double full_time = instructions / window.work.all() * window.cycles();
    if (unseen && time < full_time) {
      turnover_seen_ = true;
      if (time < window.cycles()) {
        turnover_ = mark();
        return false;
      }
    }
    Fluid fluid = this->fluid(residents);
    // Lines to touch.
    const double rate = full_time;
    const double lines = instructions / instructions_ * static_cast<double>(blocks_) * footprint_.lines_per_block();
    const double l2_lines = static_cast<double>(context_.gpu.l2.bytes) / kLineBytes;
    const double all_lines = lines * time / rate;
    double untouched = 0, warming = 0;
    if (all_lines > 3 * l2_lines) {
      untouched = time * (1 - 2 * l2_lines / all_lines);
      warming = time * (1 - l2_lines / all_lines);
    }
    std::vector<FluidPart> warm_parts, parts;
    if (untouched > 0) {
      fluid.advance(untouched);
      fluid.advance(warming, &warm_parts);
    }
    const double counted_from = fluid.work();
    fluid.advance(time, &parts);
    // Where blocks are then.
    std::unordered_map<std::uint64_t, double> ends;
    std::vector<std::uint64_t> put_off;
    place_blocks(fluid, residents, ends, put_off);
    std::sort(put_off.begin(), put_off.end());
    gpu_.dispatcher().skip(fluid.started());
    gpu_.dispatcher().put_first(put_off);
    put_off_.insert(put_off_.end(), put_off.begin(), put_off.end());
    gap.work = done() - before;
    const double actual = worth(gap.work);
    if (turnover_seen_ && !turnover_ && unseen) turnover_ = mark();
    gap.cycles = fluid.work() > 0 ? time * actual / fluid.work() : 0;
    gap.block_cycles = fluid.block_cycles();
    gap.sm_cycles = fluid.sm_cycles();
    gap.ends_phase = ends_phase_;
    expect_fetches();
    trim(warm_parts, nullptr);
    footprint_.follow(warm_parts, gpu_.memory());
    trim(parts, &ends);
    gap.traffic = footprint_.follow(parts, gpu_.memory());
    if (untouched > 0) gap.traffic = gap.traffic.scaled(actual / std::max(1.0, actual - counted_from));
    std::vector<FineCycle> piled_up = window.to.backlog;
    for (std::size_t i = 0; i < piled_up.size(); ++i)
      piled_up[i] = static_cast<FineCycle>(
          static_cast<double>(piled_up[i] - std::min(piled_up[i], window.from.backlog[i])) * gap.cycles /
          window.cycles());
    backlog_ = worst_backlog();
    gpu_.memory().add_atomic_backlog(piled_up);
    gaps_.push_back(gap);
    if (ends_phase_) {
      full_ = true;
      first_of_phase_ = windows_.size();
      phase_began_ = done().all();
    }
    return gap.work.all() > 0;
  }

  /// Cycles until the first block leaves its loop.
  double until_loops_end(const std::vector<ResidentBlock>& residents) {
    const SmRate rate = rates();
    std::vector<std::size_t> held(gpu_.sm_count(), 0);
    for (const ResidentBlock& block : residents) ++held[block.sm];
    double first = std::numeric_limits<double>::infinity();
    for (const ResidentBlock& block : residents) {
      const auto n = static_cast<double>(held[block.sm]);
      const BlockWay& way = way_of(block.block);
      first = std::min(first, (way.in_loop - done_of(block).loop) / (rate.with(held[block.sm]) / n));
    }
    return first;
  }

  /// Parts in instructions; those of some blocks go on to another point than the fluid's.
  void trim(std::vector<FluidPart>& parts, const std::unordered_map<std::uint64_t, double>* ends) {
    for (FluidPart& part : parts) {
      const BlockWay& way = way_of(part.block);
      part.from = in_instructions(way, part.from);
      part.to = part.to >= 1 ? 1 : in_instructions(way, part.to);
      if (ends == nullptr) continue;
      if (const auto end = ends->find(part.block); end != ends->end()) part.to = end->second;
    }
    std::erase_if(parts, [](const FluidPart& part) { return part.to <= part.from; });
  }

  /// Puts each resident block to where the fluid has it, or the block that has its place then. Those for which that
  /// cannot be done stay as near as they can, and those that would have started are put off.
  void place_blocks(const Fluid& fluid, const std::vector<ResidentBlock>& residents,
                    std::unordered_map<std::uint64_t, double>& ends, std::vector<std::uint64_t>& put_off) {
    std::vector<std::unordered_map<int, const FluidBlock*>> then(gpu_.sm_count());
    for (std::size_t sm = 0; sm < then.size(); ++sm) {
      for (const FluidBlock& block : fluid.in_flight()[sm]) {
        if (block.slot >= 0) {
          then[sm][block.slot] = &block;
        } else {
          put_off.push_back(block.block);
          ends[block.block] = 0;
        }
      }
    }
    for (const ResidentBlock& resident : residents) {
      const auto found = then[resident.sm].find(resident.slot);
      const FluidBlock* target = found == then[resident.sm].end() ? nullptr : found->second;
      if (target != nullptr) {
        const BlockWay& way = way_of(target->block);
        const double to = in_instructions(way, target->done / target->all) * way.all;
        if (const auto placed = place(resident, target->block, to)) {
          ends[target->block] = *placed / way.all;
          continue;
        }
        if (target->block != resident.block) {
          put_off.push_back(target->block);
          ends[target->block] = 0;
        }
      }
      const BlockWay& way = way_of(resident.block);
      const auto placed = place(resident, resident.block, way.all);
      ends[resident.block] = (placed ? *placed : done_of(resident).all()) / way.all;
    }
  }

  /// A resident block goes on as a block of the grid that has done so many instructions, or as near to it as it can:
  /// whole iterations from where its warps are in their loops. What it has done then; none: their ways differ.
  std::optional<double> place(const ResidentBlock& resident, std::uint64_t as, double instructions) {
    const std::uint32_t from_class = class_of(resident.block), to_class = class_of(as);
    const std::vector<PathShape>&from = ways_.shapes(from_class), &to = ways_.shapes(to_class);
    const BlockClass& cls = context_.trace.classes[to_class];
    std::vector<WarpPlace> places(cls.warps.size());
    std::vector<WarpPosition> at(cls.warps.size());
    bool loops = true, same = true;
    std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
    double done = 0, by_iteration = 0;
    for (std::size_t w = 0; w < at.size(); ++w) {
      at[w] = gpu_.sm(resident.sm).position(resident.slot, w);
      const PathShape &old = from[at[w].path], &next = to[cls.warps[w].path];
      same = same && old.whole == next.whole;
      if (!at[w].alive || !old.in_loop(at[w].run) || old.body != next.body) {
        loops = false;
        continue;
      }
      const std::int64_t iteration = old.loop.iteration_of(at[w].run);
      least = std::max(least, -iteration);
      most = std::min(most, static_cast<std::int64_t>(next.loop.iterations) - 1 - iteration);
      const std::uint64_t in_iteration =
          old.before[at[w].run + 1] - at[w].left - old.loop_begin() - old.loop.instructions * old.loop.iteration_of(at[w].run);
      done += static_cast<double>(next.loop_begin() + in_iteration) +
              static_cast<double>(next.loop.instructions) * static_cast<double>(iteration);
      by_iteration += static_cast<double>(next.loop.instructions);
    }
    if (loops && least <= most) {
      const std::int64_t by = std::clamp(std::llround((instructions - done) / by_iteration), static_cast<long long>(least),
                                         static_cast<long long>(most));
      for (std::size_t w = 0; w < at.size(); ++w) {
        const PathLoop &old = from[at[w].path].loop, &next = to[cls.warps[w].path].loop;
        const auto iteration = static_cast<std::uint32_t>(old.iteration_of(at[w].run) + by);
        places[w].run = next.first_run + iteration * next.period + (at[w].run - old.first_run) % old.period;
        places[w].access = next.accesses_before + iteration * next.accesses +
                           (at[w].access - old.accesses_before - old.iteration_of(at[w].run) * old.accesses);
      }
      gpu_.sm(resident.sm).go_on_as(resident.slot, static_cast<std::uint32_t>(as), places);
      return done + static_cast<double>(by) * by_iteration;
    }
    if (!same) return std::nullopt;
    if (as == resident.block) return done_of(resident).all();
    for (std::size_t w = 0; w < at.size(); ++w) places[w] = {at[w].run, at[w].access};
    gpu_.sm(resident.sm).go_on_as(resident.slot, static_cast<std::uint32_t>(as), places);
    ResidentBlock renamed = resident;
    renamed.block = static_cast<std::uint32_t>(as);
    return done_of(renamed).all();
  }

  /// The rest runs at the rates that were seen; what it moves is found by touching L2.
  void pass_over_rest() {
    if (windows_.empty()) {
      Mark start;
      start.issued.assign(gpu_.sm_count(), 0);
      start.refilled = true;
      start.backlog.assign(gpu_.memory().atomic_backlog(0).size(), 0);
      end_window(start);
    }
    gpu_.drain();
    const std::vector<ResidentBlock> residents = gpu_.residents();
    Gap gap;
    gap.windows = windows_.size();
    gap.first_window = first_of_phase_;
    gap.at = gpu_.now();
    gap.last = true;
    const Work before = done();
    Fluid rest = fluid(residents);
    rest.advance(std::numeric_limits<double>::infinity());
    gap.cycles = rest.now();
    gap.block_cycles = rest.block_cycles();
    gap.sm_cycles = rest.sm_cycles();
    const double lines = rest.work() / instructions_ * static_cast<double>(blocks_) * footprint_.lines_per_block();
    const double most = 4 * static_cast<double>(context_.gpu.l2.bytes) / kLineBytes;
    Fluid again = fluid(residents);
    std::vector<FluidPart> parts;
    double from = 0;
    if (lines > most) {
      again.advance(gap.cycles * (1 - most / lines));
      from = again.work();
    }
    again.advance(std::numeric_limits<double>::infinity(), &parts);
    trim(parts, nullptr);
    expect_fetches();
    gap.traffic = footprint_.follow(parts, gpu_.memory()).scaled(rest.work() / std::max(1.0, rest.work() - from));
    for (std::uint64_t i = 0; i < gpu_.dispatcher().waiting(); ++i) {
      const BlockWay& way = way_of(gpu_.dispatcher().upcoming(i));
      gap.work.loop += way.in_loop;
      gap.work.rest += way.all - way.in_loop;
    }
    for (const ResidentBlock& block : residents) {
      const BlockWay& way = way_of(block.block);
      const Work so_far = done_of(block);
      gap.work.loop += way.in_loop - so_far.loop;
      gap.work.rest += way.all - way.in_loop - so_far.rest;
    }
    gaps_.push_back(gap);
  }

  // --- Estimate --------------------------------------------------------------------------------------------------
  /// How much slower SMs were in one window than in another, where they held as many blocks.
  double slower(const Window& earlier, const Window& later) const {
    if (earlier.to.refilled && later.to.refilled) return cycles_per_worth(later) / cycles_per_worth(earlier);
    double seen = 0, reckoned = 0;
    const double a = worth(earlier.work) / std::max(1.0, earlier.work.all()),
                 b = worth(later.work) / std::max(1.0, later.work.all());
    for (std::size_t n = 0; n < later.rate.size(); ++n) {
      if (earlier.rate[n] <= 0 || later.rate[n] <= 0) continue;
      seen += 1 / (later.rate[n] * b);
      reckoned += 1 / (earlier.rate[n] * a);
    }
    return reckoned > 0 ? seen / reckoned : 1;
  }

  /// Neighbours of one phase; cycles of gaps for which only the windows before them stand.
  double sample(std::vector<Neighbours>& neighbours) const {
    double open = 0;
    std::vector<double> closed(windows_.size() + 1, 0);
    std::vector<bool> phase(windows_.size() + 1, false);
    for (const Gap& gap : gaps_) {
      if (stands_between(gap)) {
        closed[gap.windows] += gap.cycles;
      } else {
        open += gap.cycles / std::sqrt(static_cast<double>(gap.windows - first_of_mean(gap)));
        phase[gap.windows] = true;
      }
    }
    for (std::size_t w = 1; w < windows_.size(); ++w)
      if (!phase[w] && (turnover_seen_ || windows_[w].work.rest / windows_[w].work.all() <
                                              windows_[w - 1].work.rest / windows_[w - 1].work.all() + kOtherPhase))
        neighbours.push_back({slower(windows_[w - 1], windows_[w]) - 1, windows_[w].cycles() + closed[w], closed[w]});
    return open;
  }

  /// The window after a gap tells of it, too, if it is of the same phase: not where blocks have come to their ends in it,
  /// unless it is known what that costs.
  bool stands_between(const Gap& gap) const {
    if (gap.last || gap.ends_phase || gap.windows == windows_.size()) return false;
    const Work &passed = gap.work, &after = windows_[gap.windows].work;
    return turnover_seen_ || after.rest / after.all() < passed.rest / passed.all() + kOtherPhase;
  }

  /// For a gap after which there is no window of its phase stands the mean of those before it, the later half of them.
  std::size_t first_of_mean(const Gap& gap) const { return gap.windows - (gap.windows - gap.first_window + 1) / 2; }

  /// Adds what was passed over; the cycles that it took.
  double add_gaps(TimingCounters& counters) {
    double cycles = 0;
    for (Gap& gap : gaps_) {
      const Window& before = windows_[gap.windows - 1];
      const bool both = stands_between(gap);
      const MemoryCounters so_far = counters.memory;
      const auto add = [&](const Window& window, double share) {
        add_scaled(counters, window.to.counters, window.from.counters, share * worth(gap.work) / worth(window.work));
      };
      const TimingCounters earlier = counters;
      const std::size_t first = both ? gap.windows - 1 : first_of_mean(gap), end = gap.windows + (both ? 1 : 0);
      double slower_by = 0;
      for (std::size_t w = first; w < end; ++w) {
        add(windows_[w], 1 / static_cast<double>(end - first));
        slower_by += slower(before, windows_[w]) / static_cast<double>(end - first);
      }
      gap.cycles *= slower_by;
      set_traffic(counters.memory, so_far, gap.traffic);
      if (!gap.refilled) set_residence(counters, earlier, gap.block_cycles, gap.sm_cycles);
      cycles += gap.cycles;
    }
    return cycles;
  }

  /// `counters` holds `before` and a gap's events in proportion to its work: the fluid's cycles of SMs and warps come in
  /// place of those.
  void set_residence(TimingCounters& counters, const TimingCounters& before, double block_cycles, double sm_cycles) {
    const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
    const auto sms = static_cast<double>(counters.sm_active_cycles - before.sm_active_cycles);
    const auto warps = static_cast<double>(counters.warp_cycles - before.warp_cycles);
    if (sms <= 0 || warps <= 0) return;
    const auto put = [&](std::uint64_t& now, std::uint64_t then, double by) {
      now = then + whole(static_cast<double>(now - then) * by);
    };
    put(counters.sm_active_cycles, before.sm_active_cycles, sm_cycles / sms);
    put(counters.smsp_active_cycles, before.smsp_active_cycles, sm_cycles / sms);
    const double by = block_cycles * context_.warps_per_block / warps;
    put(counters.warp_cycles, before.warp_cycles, by);
    for (std::size_t s = 0; s < kStallReasons; ++s) put(counters.stalls[s], before.stalls[s], by);
  }

  /// Spans as if nothing had been skipped, and where something was.
  void put_on_the_clock(TimingResult& result) const {
    result.spans = gpu_.spans();
    const auto moved = [&](Cycle at) {
      double by = 0;
      for (const Gap& gap : gaps_)
        if (gap.at < at) by += gap.cycles;
      return at + static_cast<Cycle>(by);
    };
    if (!gaps_.empty())
      for (BlockSpan& span : result.spans) {
        span.start = moved(span.start);
        span.end = moved(span.end);
      }
    double before = 0;
    for (const Gap& gap : gaps_) {
      result.skipped.push_back({gap.at + static_cast<Cycle>(before), gap.at + static_cast<Cycle>(before + gap.cycles)});
      before += gap.cycles;
    }
  }

  void describe(TimingResult& result, bool over) const {
    Coverage& coverage = result.coverage;
    coverage.warp_instructions = static_cast<std::uint64_t>(std::llround(instructions_));
    coverage.simulated_warp_instructions = gpu_.issued();
    coverage.extrapolated = !gaps_.empty();
    coverage.method = "every instruction simulated";
    const auto all = static_cast<double>(result.elapsed_cycles);
    coverage.cycles_low = coverage.cycles_high = all;
    if (gaps_.empty()) return;
    coverage.method = std::to_string(windows_.size()) + " windows simulated, the rest extrapolated from them";
    std::vector<Neighbours> neighbours;
    double passed = 0;
    for (const Gap& gap : gaps_) passed += gap.cycles;
    const double open = sample(neighbours), half = std::hypot(half_interval(neighbours, open), kUnseen * passed);
    coverage.cycles_low = std::max(static_cast<double>(gpu_.now()), all - half);
    coverage.cycles_high = std::min(2 * all, all + half);
    if (!over)
      result.warnings.push_back(
          "the budget was spent before the end of the launch was seen; its rest was taken to go on at the rate of the "
          "last part that was");
    if (getenv("FW_TRACE") != nullptr) {
      for (const Window& w : windows_)
        fprintf(stderr, "window gaps %zu at %ld..%ld work %.0f + %.0f cpw %.6f refilled %d\n", w.gap, long(w.from.at),
                long(w.to.at), w.work.loop, w.work.rest, cycles_per_worth(w) * 1e3, w.to.refilled);
      for (const Gap& g : gaps_)
        fprintf(stderr, "gap after %zu at %ld work %.0f + %.0f cycles %.0f phase %d last %d\n", g.windows, long(g.at),
                g.work.loop, g.work.rest, g.cycles, g.ends_phase, g.last);
      fprintf(stderr, "cost %.1f budgets, interval %.2f %%, weight %.2f\n", cost_so_far() / budget_,
              coverage.uncertainty_pct(), rest_weight_);
      fprintf(stderr, "shares");
      for (double x : shares_) fprintf(stderr, " %.3f", x);
      fprintf(stderr, "\n");
    }
  }

  LaunchContext context_;
  SimulateOptions options_;
  Gpu gpu_;
  Ways ways_;
  Footprint footprint_;
  std::uint64_t blocks_ = 0, places_ = 0;
  double instructions_ = 0, cost_ = 0, wave_ = 0;
  std::uint64_t counted_ = 0;
  Work handed_out_;                     ///< of blocks up to counted_
  std::vector<std::uint64_t> put_off_;  ///< blocks of those that have not started
  bool full_ = false;                   ///< everything in L2 has been replaced
  bool ends_phase_ = false, turnover_seen_ = false;
  std::optional<Mark> turnover_;  ///< blocks are about to end and to be followed by others for the first time
  double rest_weight_ = 1, rest_share_ = 0, backlog_ = static_cast<double>(kSettle), phase_began_ = 0, budget_ = 0;
  std::size_t first_of_phase_ = 0;
  std::vector<double> shares_;
  std::vector<Window> windows_;
  std::vector<Gap> gaps_;
};

}  // namespace

TimingResult replay(const LaunchContext& context, const SimulateOptions& options, const MemorySystem* before) {
  return Sampler(context, options, before).run();
}

}  // namespace forewarp
