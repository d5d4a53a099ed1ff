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
constexpr std::size_t kVerdicts = 3;       ///< causes whose gain alone is found

/// Processor seconds of a simulation at nominal speed, from what it counted (forewarp bench: warp instructions of a
/// product, requests of a copy). Nominal, so that a report does not depend on the machine.
double host_seconds(const TimingResult& r, const Prediction& p) {
  constexpr double kInstructions = 8e6, kRequests = 600e3;
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, r.coverage.warp_instructions));
  const double part = std::min(1.0, static_cast<double>(r.counters.instructions_issued) / all);
  auto requests = static_cast<double>(r.counters.memory.read_requests + r.counters.memory.write_requests);
  for (const MemoryRow& row : p.memory)
    if (row.kind == MemoryKind::Atomic || row.kind == MemoryKind::Reduction)
      requests += static_cast<double>(row.requests);
  return static_cast<double>(r.counters.instructions_issued) / kInstructions + part * requests / kRequests;
}

/// Instructions that all warps of the classes execute, one by one: what leaving some of them out has to look at.
std::uint64_t followed_instructions(const KernelTrace& trace) {
  std::uint64_t sum = 0;
  for (const BlockClass& cls : trace.classes)
    for (const WarpTrace& warp : cls.warps) sum += cls.paths[warp.path].instructions;
  return sum;
}
constexpr std::uint64_t kMostFollowed = 16'000'000;

double stall_share(const Prediction& p, std::initializer_list<Stall> reasons) {
  double share = 0;
  for (const StallShare& s : p.stalls)
    if (std::find(reasons.begin(), reasons.end(), s.reason) != reasons.end()) share += s.share_pct / 100;
  return share;
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
  std::uint64_t wasted = 0, sectors = 0, conflicts = 0, wavefronts = 0, atomics = 0, local = 0;
  for (const MemoryRow& row : p.memory) {
    const bool global = row.space == MemorySpace::Global || row.space == MemorySpace::Generic;
    const bool atomic = row.kind == MemoryKind::Atomic || row.kind == MemoryKind::Reduction;
    if (global && atomic) atomics += row.sectors;
    if (global && !atomic) wasted += row.wasted_sectors();
    if (row.space == MemorySpace::Local) local += row.sectors;
    sectors += row.sectors;
    conflicts += row.conflicts;
    wavefronts += row.wavefronts;
  }
  const auto part = [](std::uint64_t some, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(some) / static_cast<double>(all);
  };
  add(CauseKind::Uncoalesced, part(wasted, sectors));
  add(CauseKind::BankConflicts, part(conflicts, wavefronts));
  add(CauseKind::Atomics, part(atomics, sectors));
  add(CauseKind::LocalMemory, part(local, sectors));
  add(CauseKind::Fetch, stall_share(p, {Stall::NoInstruction, Stall::ImcMiss}));
  if (followed_instructions(*scene.trace) <= kMostFollowed) {
    add(CauseKind::Divergence, p.divergence.idle_lane_pct / 100);
    add(CauseKind::Barrier, stall_share(p, {Stall::Barrier, Stall::Membar}));
  }
  // Only what does not fit L2 can leave it.
  const MemoryCounters& m = timing.counters.memory;
  const auto moved = static_cast<double>((m.read_sectors + m.write_sectors) * kSectorBytes);
  if (fresh_l2) add(CauseKind::L2Capacity, 1 - static_cast<double>(scene.model.l2.bytes) / std::max(1.0, moved));
  const Occupancy& o = scene.occupancy;
  const auto resident =
      static_cast<std::uint64_t>(o.blocks_per_sm) * static_cast<std::uint64_t>(scene.model.chip.sm_count);
  if (p.grid.count() > resident) {
    const auto limits = [&](CauseKind kind, int limit) {
      if (limit == o.blocks_per_sm) add(kind, 1 - static_cast<double>(limit) / std::max(1, o.limit_warps));
    };
    limits(CauseKind::Registers, o.limit_registers);
    limits(CauseKind::SharedSize, o.limit_shared);
    limits(CauseKind::BlockSlots, o.limit_blocks);
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

/// Elapsed cycles of the launch without some causes, each set simulated once, in as much detail as the launch itself.
class Trials {
 public:
  Trials(const Scene& scene, const SimulateOptions& options, const CacheHistory* before, const TimingResult& timing,
         double base)
      : scene_(scene), options_(options), before_(before) {
    options_.full = timing.coverage.detailed_instructions == Coverage::kAll;
    if (!options_.full) options_.detailed_instructions = timing.coverage.detailed_instructions;
    options_.effort.precision = std::numeric_limits<double>::infinity();
    known_.emplace(0, base);
  }
  double operator()(const Removed& removed) {
    const auto [place, fresh] = known_.try_emplace(removed.to_ulong(), 0.0);
    if (fresh) {
      const Scene other = without(scene_, removed);
      const TimingResult result = simulate(other.model, *other.trace, other.occupancy, options_, before_);
      place->second = static_cast<double>(result.elapsed_cycles);
      ++made_;
    }
    return place->second;
  }
  int made() const { return made_; }

 private:
  const Scene& scene_;
  SimulateOptions options_;
  const CacheHistory* before_;
  std::map<unsigned long, double> known_;
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
  const std::array<double, kCauses> demand = report::demands(in, p);
  const std::vector<CauseKind> resources = resources_of(demand);

  // What the effort pays for: faults, alone and in sequence, and latency; then resources, and what is gained alone.
  const double affordable = options.effort.seconds / host_seconds(timing, p) - 1;
  const auto left_over = [&](std::size_t made) { return affordable - static_cast<double>(made); };
  std::vector<CauseKind> faults;
  for (const Suspect& suspect : suspected)
    if (left_over(2 * (faults.size() + 1)) >= 1) faults.push_back(suspect.kind);
  if (left_over(0) < 2 || (faults.empty() && !suspected.empty())) {
    p.accounting.method = "the counters of the one run: to simulate it again takes more than --budget";
    return;
  }
  const std::size_t for_faults = 2 * faults.size() + 1;
  const bool by_trial = left_over(for_faults) >= static_cast<double>(2 * resources.size() + 1 + kVerdicts);

  const double elapsed = in.cycles;
  Trials trials(scene, options, before, timing, elapsed);
  CauseSizes sizes = report::outside_sizes(in);
  const double launch = sizes[CauseKind::Launch], body = elapsed - launch;
  const double scale = body > 0 ? (body - sizes[CauseKind::Tail]) / body : 0;  // SMs idle in all that is left alike
  const auto body_without = [&](const Removed& removed) { return std::max(0.0, trials(removed) - launch); };

  const auto gain_alone = [&](CauseKind kind) { return elapsed - trials(only(kind)); };
  for (const CauseKind fault : faults) sizes.gain(fault) = gain_alone(fault);
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

  // Of the resources, what all of them save together.
  std::vector<double> weights;
  double least = left, all = 0;
  if (by_trial) {
    Removed free = removed;
    for (const CauseKind resource : resources) free |= only(resource);
    least = std::min(left, body_without(free));
    for (const CauseKind resource : resources) {
      const double first = std::max(0.0, left - body_without(removed | only(resource)));
      const double last = std::max(0.0, body_without(free & ~only(resource)) - least);
      weights.push_back(first + last);
      all += weights.back();
    }
  }
  double executed = 0;
  for (const InstructionCount& t : in.totals) executed += static_cast<double>(t.executed);
  const double issue_alone = executed / in.sub_partitions;
  if (all == 0) {  // nothing tells them apart but how busy they are
    least = std::min(left, issue_alone / std::max(scale, 1e-9));
    weights.clear();
    for (const CauseKind resource : resources) {
      weights.push_back(demand[static_cast<std::size_t>(resource)]);
      all += weights.back();
    }
  }
  if (all == 0) least = left;
  for (std::size_t i = 0; i < resources.size() && all > 0; ++i)
    sizes[resources[i]] += scale * (left - least) * weights[i] / all;
  const double issue = std::min(scale * least, issue_alone);
  sizes[CauseKind::Issue] += issue;
  sizes[CauseKind::Latency] += scale * least - issue;

  std::vector<CauseKind> order;
  for (std::size_t k = 0; k < kCauses; ++k)
    if (sizes.cycles[k] > 0) order.push_back(static_cast<CauseKind>(k));
  std::stable_sort(order.begin(), order.end(), [&](CauseKind a, CauseKind b) { return sizes[a] > sizes[b]; });
  for (std::size_t i = 0; i < std::min(kVerdicts, order.size()); ++i) {
    const bool first = i == 0 || left_over(static_cast<std::size_t>(trials.made())) >= 1;
    if (first && removable(order[i]) && !sizes.gain(order[i])) sizes.gain(order[i]) = gain_alone(order[i]);
  }
  for (std::optional<double>& gain : sizes.gains)
    if (gain) gain = std::max(0.0, *gain);

  p.accounting.simulated = true;
  p.accounting.simulations = trials.made();
  p.accounting.method = "the launch simulated again without its causes";
  if (!by_trial) p.accounting.method += "; resources by how busy they are, since more takes longer than --budget";
  report::fill_accounting(in, p, sizes, p.accounting);
  p.bottleneck = report::verdict(in, p.accounting);
}

}  // namespace forewarp::accounting
