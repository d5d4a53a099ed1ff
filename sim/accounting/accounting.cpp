#include "accounting/accounting.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <vector>

#include "report/accounting.h"
#include "report/analysis.h"

namespace forewarp::accounting {

namespace {

using report::CauseSizes;
using report::Inputs;
using report::kNoticeable;

constexpr std::size_t kMostResources = 4;  ///< resources told apart: those with the largest demands
constexpr double kMostlyBusy = 0.5;        ///< a rate below this part of its most hardly delays anything
constexpr std::size_t kVerdicts = 3;       ///< causes whose gain alone is found
constexpr double kLeastDetail = 0.1;       ///< of what the launch's own simulation had, for a trial

/// Of the slots for blocks in all waves, the part that has none.
double unused_slots(std::uint64_t blocks, std::uint64_t wave) {
  if (blocks <= wave) return 0;
  const auto slots = static_cast<double>((blocks + wave - 1) / wave * wave);
  return 1 - static_cast<double>(blocks) / slots;
}

/// Schedulers of an SM without a warp, for each that has one.
double schedulers_without_warps(const Inputs& in) {
  const double schedulers = in.sub_partitions / in.sms;
  const double blocks = std::clamp(static_cast<double>(in.trace.launch.grid.count()) / in.sms, 1.0,
                                   static_cast<double>(in.occupancy.blocks_per_sm));
  const double warps = blocks * in.occupancy.warps_per_block;
  return std::max(0.0, schedulers / std::max(1.0, warps) - 1);
}

/// A fault that the counters do not rule out, and the largest part of what it is measured in that it can be.
struct Suspect {
  CauseKind kind;
  double bound;
};

/// Largest bound first.
std::vector<Suspect> suspects(const Scene& scene, const TimingResult& timing, const Prediction& p, bool fresh_l2) {
  std::vector<Suspect> found;
  const auto add = [&](CauseKind kind, double bound) {
    if (bound >= kNoticeable) found.push_back({kind, bound});
  };
  const report::Traffic t(p);
  add(CauseKind::Uncoalesced, report::part_of(t.wasted, t.sectors));
  add(CauseKind::BankConflicts, report::part_of(t.conflicts, t.wavefronts));
  add(CauseKind::Atomics, report::part_of(t.atomic_sectors, t.sectors));
  add(CauseKind::LocalMemory, report::part_of(t.local, t.sectors));
  add(CauseKind::Fetch, report::stalled_part(p, {Stall::NoInstruction, Stall::ImcMiss}));
  if (can_be_followed(*scene.trace)) {
    add(CauseKind::Divergence, p.divergence.lost_lane_pct / 100);
    add(CauseKind::Barrier, report::stalled_part(p, {Stall::Barrier, Stall::Membar}));
  }
  // Only what does not fit L2 can leave it. What it took in came from memory, the SMs or its other half, and each
  // sector may have taken a line.
  const MemoryCounters& m = timing.counters.memory;
  const std::uint64_t taken = m.dram_read_bytes / static_cast<std::uint64_t>(scene.model.l2.fetch_bytes) +
                              m.fabric_sectors + m.write_sectors + m.atomic_sectors + m.reduction_sectors;
  const auto moved =
      static_cast<double>(std::min((m.read_sectors + m.write_sectors) * kSectorBytes, taken * kLineBytes));
  if (fresh_l2) add(CauseKind::L2Capacity, 1 - static_cast<double>(scene.model.l2.bytes) / std::max(1.0, moved));
  const Occupancy& o = scene.occupancy;
  const auto resident =
      static_cast<std::uint64_t>(o.blocks_per_sm) * static_cast<std::uint64_t>(scene.model.chip.sm_count);
  if (p.grid.count() > resident) {
    const auto limits = [&](CauseKind kind, int limit) {
      if (limit == o.blocks_per_sm) add(kind, 1 - static_cast<double>(limit) / std::max(1, o.limit_warps));
    };
    limits(CauseKind::Registers, o.limit_registers);
    if (uses_shared(*scene.trace)) limits(CauseKind::SharedSize, o.limit_shared);
    // Small blocks fill the slots, or keep the GPU busy handing them out and taking them back.
    const LaunchSpec& launch = scene.model.launch;
    const double rate = std::min(launch.blocks_per_cycle_x16, launch.blocks_back_per_cycle_x16) / 16.0;
    const double turnover = static_cast<double>(p.grid.count()) / rate / static_cast<double>(timing.elapsed_cycles);
    const bool full = o.limit_blocks == o.blocks_per_sm && o.limit_blocks < o.limit_warps;
    const double slots = full ? 1 - static_cast<double>(o.limit_blocks) / o.limit_warps : 0;
    if (turnover > kMostlyBusy || full) add(CauseKind::BlockSlots, std::max(slots, std::min(1.0, turnover)));
  }
  std::stable_sort(found.begin(), found.end(), [](const Suspect& a, const Suspect& b) { return a.bound > b.bound; });
  return found;
}

/// The resources with the largest demands.
std::vector<CauseKind> resources_of(const std::array<double, kCauses>& demand) {
  std::vector<CauseKind> found;
  for (std::size_t k = static_cast<std::size_t>(CauseKind::PipeAlu); k < static_cast<std::size_t>(CauseKind::Issue);
       ++k)
    if (demand[k] > 0) found.push_back(static_cast<CauseKind>(k));
  std::stable_sort(found.begin(), found.end(), [&](CauseKind a, CauseKind b) {
    return demand[static_cast<std::size_t>(a)] > demand[static_cast<std::size_t>(b)];
  });
  if (found.size() > kMostResources) found.resize(kMostResources);
  return found;
}

/// Elapsed cycles of the launch without some causes, each set simulated once. In as much detail as the launch itself,
/// or in so many `seconds`, unless these are 0: then the launch is simulated so as well. What its cycles lack is made
/// up for in proportion to what is left out, since seconds come further where there is less work.
class Trials {
 public:
  Trials(const Scene& scene, const SimulateOptions& options, const CacheHistory* before, const TimingResult& timing,
         double base, double seconds)
      : scene_(scene), options_(options), before_(before), dearest_(timing.host_seconds) {
    options_.full = timing.coverage.detailed_instructions == Coverage::kAll;
    if (!options_.full) options_.detailed_instructions = timing.coverage.detailed_instructions;
    options_.effort.precision = std::numeric_limits<double>::infinity();
    if (seconds > 0) {
      const double detail = seconds / timing.host_seconds;
      const std::uint64_t most =
          options_.full ? timing.coverage.simulated_warp_instructions : options_.detailed_instructions;
      options_.full = false;
      options_.detailed_instructions =
          std::max<std::uint64_t>(1, static_cast<std::uint64_t>(detail * static_cast<double>(most)));
      options_.effort.seconds = scene.trace->launch.traced_seconds() + seconds;
      options_.effort.for_verdict = 0;
      const TimingResult again = run(scene, 0);
      dearest_ = again.host_seconds;
      lacking_ = base / static_cast<double>(again.elapsed_cycles) - 1;
      left_out_ = left_out(timing);
      more_left_out_ = left_out(again) - left_out_;
      detail_ = static_cast<double>(again.coverage.simulated_warp_instructions) /
                static_cast<double>(timing.coverage.simulated_warp_instructions);
    }
    known_.emplace(0, base);
  }
  double operator()(const Removed& removed) {
    const auto [place, fresh] = known_.try_emplace(removed.to_ulong(), 0.0);
    if (fresh) {
      latest_ = without(scene_, removed);
      result_ = run(latest_, 0);
      place->second = cycles(result_);
    }
    return place->second;
  }
  /// `blocks`: only so many of them; 0: all.
  TimingResult run(const Scene& scene, std::uint64_t blocks) {
    ++made_;
    SimulateOptions options = options_;
    options.blocks = blocks;
    TimingResult result = simulate(scene.model, *scene.trace, scene.occupancy, options, before_);
    spent_ += result.host_seconds;
    dearest_ = std::max(dearest_, result.host_seconds);
    return result;
  }
  /// How long each resource is busy without the causes that were removed last.
  std::array<double, kCauses> demands_of_latest() const {
    const Inputs in(latest_.model, *latest_.trace->kernel, *latest_.trace, latest_.occupancy, result_);
    std::array<double, kCauses> all =
        report::demands(in, build_prediction(in.model, in.kernel, in.trace, in.occupancy, result_, options_.caches));
    for (double& demand : all) demand *= scale(result_);
    return all;
  }
  double cycles(const TimingResult& result) const { return scale(result) * static_cast<double>(result.elapsed_cycles); }
  /// Of what the launch's own simulation had.
  double detail() const { return detail_; }
  int made() const { return made_; }
  double spent() const { return spent_; }  ///< seconds
  /// What one takes, as far as is known: as much as the dearest so far.
  double of_one() const { return dearest_; }

 private:
  /// Share of the instructions.
  static double left_out(const TimingResult& result) {
    const Coverage& c = result.coverage;
    return 1 - static_cast<double>(c.simulated_warp_instructions) /
                   static_cast<double>(std::max<std::uint64_t>(1, c.warp_instructions));
  }
  double scale(const TimingResult& result) const {
    const double more = left_out(result) - left_out_;
    return 1 + lacking_ * (more_left_out_ > 0 ? std::clamp(more / more_left_out_, 0.0, 1.0) : 1);
  }

  const Scene& scene_;
  SimulateOptions options_;
  const CacheHistory* before_;
  std::map<unsigned long, double> known_;
  Scene latest_;
  TimingResult result_;                      ///< of it
  double lacking_ = 0;                       ///< of the launch's cycles in less detail, to those in its own
  double left_out_ = 0, more_left_out_ = 0;  ///< in its own detail, and in less besides
  double detail_ = 1, spent_ = 0, dearest_ = 0;
  int made_ = 0;
};

}  // namespace

void account(const Scene& scene, const TimingResult& timing, const SimulateOptions& options, const CacheHistory* before,
             Prediction& p) {
  if (options.caches != CacheState::Cold) {  // to fill caches again for each costs as much as the launch
    p.accounting.method = "the counters of the one run: it is simulated again from cold caches alone";
    return;
  }
  const Inputs in(scene.model, *scene.trace->kernel, *scene.trace, scene.occupancy, timing);
  const std::vector<Suspect> suspected = suspects(scene, timing, p, before == nullptr);
  const std::vector<CauseKind> resources = resources_of(report::demands(in, p));

  const auto wave =
      static_cast<std::uint64_t>(scene.occupancy.blocks_per_sm) * static_cast<std::uint64_t>(scene.model.chip.sm_count);
  const std::uint64_t blocks = p.grid.count(), whole = blocks / wave * wave;
  const std::size_t for_tail = unused_slots(blocks, wave) >= kNoticeable ? 1 : 0;
  // What the effort pays for: faults, alone and in sequence, and latency; then resources, and what is gained alone.
  // Where it does not reach for the faults, each simulation has less detail, and the launch is simulated so as well.
  const auto of_faults = [&](std::size_t n) { return static_cast<double>(for_tail + std::max<std::size_t>(1, 2 * n)); };
  const auto of_resources = static_cast<double>(2 * resources.size() + 1 + kVerdicts);
  const double spent = scene.trace->launch.traced_seconds() + timing.host_seconds;
  const double left_over = options.effort.seconds - spent;
  // A simulation lists the lines of what it leaves out, however little detail it has.
  const double lines = timing.host_seconds_of_lines, detailed = timing.host_seconds - lines;
  const auto detail_of = [&](double made) {
    return left_over >= made * timing.host_seconds ? 1 : (left_over / (1 + made) - lines) / detailed;
  };
  std::size_t told_apart = suspected.size();
  while (told_apart > 1 && detail_of(of_faults(told_apart)) < kLeastDetail) --told_apart;
  const double detail = detail_of(of_faults(told_apart));
  const auto too_little = [&] {
    p.accounting.method = "the counters of the one run: to simulate it again takes more than --budget";
  };
  if (detail < kLeastDetail) return too_little();
  const double elapsed = in.cycles;
  Trials trials(scene, options, before, timing, elapsed, detail < 1 ? lines + detail * detailed : 0);
  if (trials.detail() < kLeastDetail) return too_little();
  const auto affords = [&](double made) { return left_over - trials.spent() >= made * trials.of_one(); };
  CauseSizes sizes = report::outside_sizes(in);
  const double launch = sizes[CauseKind::Launch], body = elapsed - launch;
  if (for_tail > 0) {
    const TimingResult waves = trials.run(scene, whole);
    // All blocks at the rate of whole waves, which may have idle SMs of their own where blocks are unequal.
    const double times = static_cast<double>(blocks) / static_cast<double>(whole);
    const double idle = waves.spans.size() == whole ? report::idle_cycles(scene.model, waves.spans) : 0;
    const double busy = trials.cycles(waves) - launch - idle;
    sizes[CauseKind::Tail] = std::clamp(body - times * busy, 0.0, body);
    sizes.gain(CauseKind::Tail) = sizes[CauseKind::Tail];
  }
  const double scale = body > 0 ? (body - sizes[CauseKind::Tail]) / body : 0;  // SMs idle in all that is left alike
  const auto body_without = [&](const Removed& removed) { return std::max(0.0, trials(removed) - launch); };

  const auto gain_alone = [&](CauseKind kind) { return elapsed - trials(only(kind)); };
  // The most suspected first; each must leave enough for the rest of what its own removal needs.
  std::vector<CauseKind> faults;
  for (std::size_t i = 0; i < told_apart; ++i) {
    if (i > 0 && !affords(static_cast<double>(i + 2))) break;
    const CauseKind fault = suspected[i].kind;
    sizes.gain(fault) = gain_alone(fault);
    faults.push_back(fault);
  }
  std::stable_sort(faults.begin(), faults.end(),
                   [&](CauseKind a, CauseKind b) { return *sizes.gain(a) > *sizes.gain(b); });
  Removed removed;
  double left = body;
  const auto remove = [&](CauseKind kind) {
    removed |= only(kind);
    const double now = std::min(left, body_without(removed));
    sizes[kind] += scale * (left - now);
    left = now;
  };
  for (const CauseKind fault : faults) remove(fault);
  remove(CauseKind::Latency);
  const bool by_trial = detail >= 1 && affords(of_resources);
  const std::array<double, kCauses> demand = trials.demands_of_latest();  // without the work that faults make

  // Of what is left, the resource that alone keeps the launch busy longest has that time, or issue if none does so
  // longer. What all of them save beyond it is divided.
  double executed = 0;
  for (const InstructionCount& t : in.totals) executed += static_cast<double>(t.executed);
  const double issue_alone = executed / in.sub_partitions;
  CauseKind longest = CauseKind::Issue;
  std::vector<double> weights;
  double least = left, all = 0;
  const auto demand_of = [&](CauseKind kind) { return demand[static_cast<std::size_t>(kind)]; };
  const auto alone = [&](CauseKind resource, double body_alone) {
    if (body_alone <= least * (1 + kNoticeable) || demand_of(resource) <= demand_of(CauseKind::Issue)) return;
    least = body_alone;
    longest = resource;
  };
  if (by_trial) {
    Removed free = removed;
    for (const CauseKind resource : resources) free |= only(resource);
    const double none = least = std::min(left, body_without(free));
    for (const CauseKind resource : resources) {
      const double first = std::max(0.0, left - body_without(removed | only(resource)));
      const double last = std::clamp(body_without(free & ~only(resource)), none, left);
      alone(resource, last);
      weights.push_back(first + last - none);
      all += weights.back();
    }
  }
  if (all == 0) {  // nothing tells them apart but how busy they are
    longest = CauseKind::Issue;
    least = std::min(left, issue_alone / std::max(scale, 1e-9));
    weights.clear();
    for (const CauseKind resource : resources) {
      weights.push_back(demand[static_cast<std::size_t>(resource)]);
      alone(resource, std::min(left, weights.back() / std::max(scale, 1e-9)));
      all += weights.back();
    }
  }
  if (all == 0) least = left;
  for (std::size_t i = 0; i < resources.size() && all > 0; ++i)
    sizes[resources[i]] += scale * (left - least) * weights[i] / all;
  if (longest != CauseKind::Issue) {
    sizes[longest] += scale * least;
  } else {
    const double issue = std::min(scale * least, issue_alone);
    // With fewer warps than schedulers, some have none; the others wait for nothing that is known.
    const double no_warps = std::min(scale * least - issue, issue_alone * schedulers_without_warps(in));
    sizes[CauseKind::Issue] += issue;
    sizes[CauseKind::Tail] += no_warps;
    *sizes.gain(CauseKind::Tail) += no_warps;
    sizes[CauseKind::Latency] += scale * least - issue - no_warps;
  }

  const std::vector<CauseKind> order = report::named_order(sizes, elapsed);
  for (std::size_t i = 0; i < std::min(kVerdicts, order.size()); ++i) {
    std::optional<double>& gain = sizes.gain(order[i]);
    if ((i > 0 && !affords(1)) || !removable(order[i])) continue;
    if (!gain) gain = gain_alone(order[i]);
    // The launch's first instructions and arguments come from memory, too.
    if (order[i] == CauseKind::Launch) gain = std::max(*gain, gain_alone(order[i]));
  }
  for (std::optional<double>& gain : sizes.gains)
    if (gain) gain = std::max(0.0, *gain);

  p.accounting.simulated = true;
  p.accounting.simulations = trials.made();
  p.accounting.method = "the launch simulated again without its causes";
  if (detail < 1) p.accounting.method += ", each in a part of its seconds";
  if (!by_trial) p.accounting.method += "; resources by how busy they are, since more takes longer than --budget";
  report::fill_accounting(in, p, sizes, p.accounting);
  p.bottleneck = report::verdict(in, p.accounting);
}

}  // namespace forewarp::accounting
