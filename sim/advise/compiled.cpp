#include "advise/compiled.h"

#include <algorithm>
#include <map>
#include <optional>

#include "advise/block_order.h"
#include "advise/fewer_bytes.h"
#include "advise/fusion.h"
#include "advise/launch_shapes.h"
#include "advise/mendings.h"
#include "advise/whole_waves.h"
#include "advise/wide_accesses.h"
#include "base/error.h"
#include "report/accounting.h"
#include "report/format.h"

namespace forewarp::advise {

namespace {

using accounting::only;
using accounting::Removed;
using accounting::Scene;
using accounting::without;

/// A simulation with everything that is said about it.
struct Run {
  TimingResult timing;
  Outcome outcome;
  const Prediction& prediction() const { return outcome.launches.front(); }
};

Run run(const Scene& scene, const LaunchTask& task, const SimulateOptions& options) {
  Run r;
  r.timing = simulate(scene.model, *scene.trace, scene.occupancy, options, task.before);
  std::vector<Prediction> one;
  one.push_back(
      build_prediction(scene.model, *scene.trace->kernel, *scene.trace, scene.occupancy, r.timing, options.caches));
  r.outcome = outcome_of(std::move(one));
  return r;
}

struct Candidate {
  std::string group;  ///< of several in a group the best is kept
  Suggestion suggestion;
  std::function<std::optional<Scene>()> make;  ///< nothing: it does not work
  std::optional<CauseKind> kind;
  std::function<Scene(const Scene&)> limit;  ///< without a kind: the same once faults are mended
  bool fault = true;
  double of_work = 1;        ///< part of the launch's blocks that the scene holds
  std::optional<Case> item;  ///< launched otherwise: to be proven

  std::optional<Run> tried;
};

std::string place_text(const std::optional<CausePlace>& place) {
  if (!place) return "";
  return (place->source.empty() ? "" : place->source + ", ") + report::address(place->instruction) + " " + place->text;
}

std::uint64_t stored_bytes(const Prediction& p) {
  std::uint64_t bytes = 0;
  for (const MemoryRow& row : p.memory)
    if (row.kind != MemoryKind::Load && row.space != MemorySpace::Shared && row.space != MemorySpace::Local)
      bytes += row.bytes;
  return bytes;
}

/// Everything that is tried on one launch.
class LaunchTrials {
 public:
  LaunchTrials(const LaunchTask& task, const ForEach& each)
      : task_(task), each_(each), quick_options_(quick(task.options)), base_(run(task.scene, task, task.options)) {
    rough_ = base_.timing.coverage.extrapolated ? run(task.scene, task, quick_options_) : base_;
    find_causes();
  }

  Advice advise(std::size_t top) {
    add_mendings();
    add_fewer_bytes();
    add_wide_accesses();
    add_whole_waves();
    add_block_orders();
    add_fewer_blocks();
    add_shapes();
    each_(candidates_.size(), [&](std::size_t i) { look_at(candidates_[i]); });
    for (const Candidate& c : candidates_) ++(c.tried ? advice_.tried : advice_.refused);
    std::erase_if(candidates_, [](const Candidate& c) { return !c.tried; });
    rank(top);
    const Prediction& p = base_.prediction();
    advice_.case_id = p.case_id;
    advice_.kernel = p.kernel;
    advice_.gpu = p.gpu;
    advice_.launch = p.launch;
    advice_.cycles = base_.outcome.cycles;
    advice_.low = base_.outcome.low;
    advice_.high = base_.outcome.high;
    advice_.time_ns = base_.outcome.time_ns;
    return std::move(advice_);
  }

 private:
  const Launch& launch() const { return task_.item->launches[static_cast<std::size_t>(task_.launch)]; }

  /// Counters and places of every cause, whatever its size.
  void find_causes() {
    const Scene& s = task_.scene;
    const report::Inputs in(s.model, *s.trace->kernel, *s.trace, s.occupancy, base_.timing);
    report::CauseSizes sizes;
    for (double& size : sizes.cycles) size = in.cycles;
    Accounting all;
    report::describe_causes(in, base_.prediction(), sizes, all);
    for (Cause& cause : all.causes) causes_.emplace(cause.kind, std::move(cause));
    tail_cycles_ = report::tail_cycles(in);
  }

  void add_mendings() {
    for (const Mending& m : mendings()) {
      if (!worth_trying(m, base_.prediction(), task_.scene)) continue;
      Candidate c;
      c.group = cause_name(m.kind);
      c.kind = m.kind;
      c.fault = m.fault;
      c.suggestion.change = cause_name(m.kind);
      c.suggestion.what = m.what;
      c.suggestion.cost = m.cost;
      c.suggestion.basis = Basis::AtMost;
      if (const auto cause = causes_.find(m.kind); cause != causes_.end()) {
        c.suggestion.why = cause->second.evidence;
        c.suggestion.where = place_text(cause->second.place);
      }
      c.make = [this, kind = m.kind] { return std::optional(without(task_.scene, only(kind))); };
      candidates_.push_back(std::move(c));
    }
  }

  static Candidate named(const char* change, std::string what) {
    Candidate c;
    c.group = c.suggestion.change = change;
    c.suggestion.what = std::move(what);
    return c;
  }

  /// Where a way of global memory is busy.
  void add_fewer_bytes() {
    const std::vector<CauseKind> limits = limits_of(base_.prediction());
    const auto is_way = [](CauseKind kind) {
      return kind == CauseKind::Dram || kind == CauseKind::L2 || kind == CauseKind::L1;
    };
    if (std::none_of(limits.begin(), limits.end(), is_way) || half_the_bytes(*task_.scene.trace) == nullptr) return;
    Candidate c = named("half_the_bytes", "move half as many bytes: values of half the size, or half of them");
    c.suggestion.cost = "precision, and conversions where it computes in the wider type";
    c.suggestion.basis = Basis::AtMost;
    if (const auto cause = causes_.find(CauseKind::Dram); cause != causes_.end()) {
      c.suggestion.why = cause->second.evidence;
      c.suggestion.where = place_text(cause->second.place);
    }
    c.fault = false;
    c.limit = [](const Scene& scene) { return Scene{scene.model, half_the_bytes(*scene.trace), scene.occupancy}; };
    c.make = [this, limit = c.limit] { return std::optional(limit(task_.scene)); };
    candidates_.push_back(std::move(c));
  }

  /// Where the way of memory instructions through an SM is busy.
  void add_wide_accesses() {
    const std::vector<CauseKind> limits = limits_of(base_.prediction());
    const auto is_way = [](CauseKind kind) { return kind == CauseKind::L1 || kind == CauseKind::Shared; };
    if (std::none_of(limits.begin(), limits.end(), is_way) || !accounting::can_be_followed(*task_.scene.trace)) return;
    const auto wide = widened(*task_.scene.trace);
    if (wide == nullptr) return;
    Candidate c = named("vector", "access four words a lane by one instruction (float4) instead of four");
    c.suggestion.cost = "words of a lane must be neighbours, from a 16-byte boundary on; registers in fours";
    c.suggestion.basis = Basis::AtMost;
    const bool shared = std::find(limits.begin(), limits.end(), CauseKind::Shared) != limits.end();
    if (const auto cause = causes_.find(shared ? CauseKind::Shared : CauseKind::L1); cause != causes_.end()) {
      c.suggestion.why = cause->second.evidence;
      c.suggestion.where = place_text(cause->second.place);
    }
    c.make = [this, wide] { return std::optional(Scene{task_.scene.model, wide, task_.scene.occupancy}); };
    candidates_.push_back(std::move(c));
  }

  std::uint64_t blocks_per_wave() const {
    return static_cast<std::uint64_t>(task_.scene.occupancy.blocks_per_sm) *
           static_cast<std::uint64_t>(task_.scene.model.chip.sm_count);
  }

  void add_whole_waves() {
    const auto whole = whole_waves(*task_.scene.trace, blocks_per_wave());
    if (whole == nullptr) return;
    Candidate c =
        named("whole_waves", "divide the same work into blocks that fill whole waves of " +
                                 report::count(blocks_per_wave()) + ", or let one wave of blocks loop over it");
    c.suggestion.cost = "blocks of another size; a loop over tiles";
    c.suggestion.basis = Basis::AtMost;
    if (const auto cause = causes_.find(CauseKind::Tail); cause != causes_.end())
      c.suggestion.why = cause->second.evidence;
    c.of_work =
        static_cast<double>(whole->launch.grid.count()) / static_cast<double>(task_.scene.trace->launch.grid.count());
    c.make = [this, whole] { return std::optional(Scene{task_.scene.model, whole, task_.scene.occupancy}); };
    candidates_.push_back(std::move(c));
  }

  void add_block_orders() {
    if (task_.scene.trace->launch.grid.count() <= blocks_per_wave()) return;  // all are there at once
    for (const BlockOrder& order : block_orders(*task_.scene.trace)) {
      Candidate c = named("block_order", "let blocks follow one another " + order.text());
      c.suggestion.cost = "the kernel's block index from blockIdx, by a few instructions a block";
      c.make = [this, order] {
        return std::optional(Scene{task_.scene.model, reordered(*task_.scene.trace, order), task_.scene.occupancy});
      };
      candidates_.push_back(std::move(c));
    }
  }

  /// Half as many blocks on an SM, by shared memory that nobody uses: more of L1 and L2 for each.
  void add_fewer_blocks() {
    const Occupancy& now = task_.scene.occupancy;
    const LaunchInfo& l = task_.scene.trace->launch;
    if (now.blocks_per_sm < 2 || l.grid.count() <= blocks_per_wave()) return;
    constexpr std::uint32_t kStep = 1024;
    for (std::uint32_t bytes = l.dynamic_shared_bytes + kStep; bytes < 256 * kStep; bytes += kStep) {
      Occupancy fewer;
      try {
        fewer = compute_occupancy(task_.scene.model, *task_.scene.trace->kernel, l.grid, l.block, bytes);
      } catch (const InputError&) {
        return;
      }
      if (fewer.blocks_per_sm > now.blocks_per_sm / 2) continue;
      Candidate c = named("fewer_blocks", "launch it with dynamic_shared_bytes: " + std::to_string(bytes) +
                                              ", so that fewer blocks share an SM's caches");
      c.suggestion.where = launch().where.text();
      c.suggestion.cost = resources_text(now, fewer);
      c.make = [this, fewer, bytes] {
        auto trace = std::make_shared<KernelTrace>(*task_.scene.trace);
        trace->launch.dynamic_shared_bytes = bytes;
        return std::optional(Scene{task_.scene.model, std::move(trace), fewer});
      };
      candidates_.push_back(std::move(c));
      return;
    }
  }

  void add_shapes() {
    std::uint64_t bytes = 0;
    for (const Buffer& b : task_.item->buffers) bytes += b.bytes;
    const Effort& effort = task_.options.effort;
    if (task_.emulated > effort.value_instructions() || bytes > effort.memory_bytes / 4) {
      advice_.notes.push_back(
          "other blocks and grids: whether the kernel computes the same with them takes more than --budget or --memory "
          "to find out");
      return;
    }
    for (const Shape& shape : other_shapes(launch(), blocks_per_wave())) {
      Candidate c = named(
          shape.other_blocks ? "block" : "grid",
          shape.other_blocks
              ? "launch it in blocks of " + report::extent(shape.block) + " (grid " + report::extent(shape.grid) + ")"
              : "launch it in a grid of " + report::count(shape.grid.count()) + " blocks, whole waves of them");
      c.suggestion.where = launch().where.text();
      c.item = reshaped(*task_.item, task_.launch, shape);
      c.make = [this, item = *c.item]() -> std::optional<Scene> {
        try {
          const auto trace = trace_launch(*task_.program, item, task_.launch, task_.tracing);
          const LaunchInfo& l = trace->launch;
          return Scene{task_.scene.model, trace,
                       compute_occupancy(task_.scene.model, *trace->kernel, l.grid, l.block, l.dynamic_shared_bytes)};
        } catch (const InputError&) {
          return std::nullopt;
        }
      };
      candidates_.push_back(std::move(c));
    }
  }

  void look_at(Candidate& c) {
    const std::optional<Scene> scene = c.make();
    if (!scene) return;
    Run tried = run(*scene, task_, quick_options_);
    if (c.item) {
      if (stored_bytes(tried.prediction()) != stored_bytes(base_.prediction())) return;
      c.suggestion.cost = resources_text(task_.scene.occupancy, scene->occupancy);
    }
    c.tried = std::move(tried);
  }

  /// Cycles of the whole launch at the rate of a part of its blocks.
  double of_all(const Candidate& c, double cycles) const {
    const LaunchSpec& l = task_.scene.model.launch;
    const double outside = std::min<double>(cycles, l.start_cycles + l.end_cycles);
    return outside + (cycles - outside) / c.of_work;
  }

  double gain_cycles(const Candidate& c) const { return rough_.outcome.cycles - of_all(c, c.tried->outcome.cycles); }

  void rank(std::size_t top) {
    const double noticeable = kNoticeablePct / 100 * rough_.outcome.cycles;
    // Of faults what each gains alone; limits count on top of them.
    Removed faults;
    for (const Candidate& c : candidates_)
      if (c.kind && c.fault && gain_cycles(c) >= noticeable) faults |= only(*c.kind);
    const double mended =
        faults.none() ? rough_.outcome.cycles : run(without(task_.scene, faults), task_, quick_options_).outcome.cycles;
    std::vector<double> gains(candidates_.size());
    each_(candidates_.size(), [&](std::size_t i) {
      Candidate& c = candidates_[i];
      gains[i] = gain_cycles(c);
      if (c.fault || faults.none()) return;
      c.suggestion.mended = true;
      const Scene rest = without(task_.scene, c.kind ? faults | only(*c.kind) : faults);
      gains[i] = mended - run(c.limit ? c.limit(rest) : rest, task_, quick_options_).outcome.cycles;
    });
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      if (gains[i] >= noticeable) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return gains[a] > gains[b]; });

    SameResults same(*task_.program, *task_.item, task_.tracing.emulation);
    std::vector<std::string> groups;
    std::vector<std::size_t> kept;
    for (const std::size_t i : order) {
      Candidate& c = candidates_[i];
      if (kept.size() >= top || std::find(groups.begin(), groups.end(), c.group) != groups.end()) continue;
      if (c.item && !same.of(*c.item)) {
        ++advice_.refused;
        --advice_.tried;
        continue;
      }
      groups.push_back(c.group);
      kept.push_back(i);
    }
    each_(kept.size(), [&](std::size_t k) { settle(candidates_[kept[k]], gains[kept[k]]); });
    for (const std::size_t i : kept) advice_.suggestions.push_back(std::move(candidates_[i].suggestion));
    add_tail();
    std::erase_if(advice_.suggestions, [](const Suggestion& s) { return s.gain.pct < kNoticeablePct; });
    std::stable_sort(advice_.suggestions.begin(), advice_.suggestions.end(),
                     [](const Suggestion& a, const Suggestion& b) { return a.gain.pct > b.gain.pct; });
  }

  /// As precise as the launch itself.
  void settle(Candidate& c, double gain) const {
    Suggestion& s = c.suggestion;
    SimulateOptions options = task_.options;
    options.threads = 1;
    if (c.tried->timing.coverage.extrapolated && options.effort.precision < quick_options_.effort.precision &&
        !s.mended)
      c.tried = run(*c.make(), task_, options);
    const Outcome& o = c.tried->outcome;
    s.cycles =
        s.mended ? base_.outcome.cycles - gain / rough_.outcome.cycles * base_.outcome.cycles : of_all(c, o.cycles);
    s.time_ns = base_.outcome.time_ns * s.cycles / base_.outcome.cycles;
    const double scale = o.cycles > 0 ? s.cycles / o.cycles : 1;
    s.gain = gain_between(base_.outcome, s.cycles, scale * o.low, scale * o.high);
    s.evidence = evidence_of(base_.outcome, o);
  }

  /// Where no part of the grid shows it: by how long SMs have no block.
  void add_tail() {
    const auto is_waves = [](const Suggestion& s) { return s.change == "whole_waves" || s.change == "grid"; };
    const std::vector<Suggestion>& found = advice_.suggestions;
    if (std::any_of(found.begin(), found.end(), is_waves)) return;
    Suggestion s;
    s.change = cause_name(CauseKind::Tail);
    s.what = "divide the work so that all SMs have blocks to the end: more, smaller or more even ones";
    s.cost = "less reuse in a block, and more blocks to start";
    s.basis = Basis::Counted;
    const auto cause = causes_.find(CauseKind::Tail);
    if (cause != causes_.end()) s.why = cause->second.evidence;
    const Outcome& o = base_.outcome;
    s.cycles = o.cycles - tail_cycles_;
    s.time_ns = o.time_ns * s.cycles / o.cycles;
    s.gain = gain_between(o, s.cycles, s.cycles, s.cycles);
    const double idle = base_.prediction().waves.idle_sm_pct / 100 * o.cycles;
    s.evidence = {"SMs without a block", idle, std::max(0.0, idle - tail_cycles_)};
    advice_.suggestions.push_back(std::move(s));
  }

  const LaunchTask& task_;
  const ForEach& each_;
  SimulateOptions quick_options_;
  Run base_, rough_;
  std::map<CauseKind, Cause> causes_;
  double tail_cycles_ = 0;
  std::vector<Candidate> candidates_;
  Advice advice_;
};

std::string times_text(double read, double written) {
  const double times = written > 0 ? read / written : 0;
  if (times < 1.01) return "each element is read once: a block of both can hand it over in registers or shared memory";
  return "it is read " + report::fixed(times, 1) +
         " times over: it must be computed as often, or a block must hold all that it reads";
}

}  // namespace

Advice advise_launch(const LaunchTask& task, const ForEach& each, std::size_t top) {
  return LaunchTrials(task, each).advise(top);
}

Advice advise_fusion(const std::vector<LaunchTask>& launches, const ForEach& each, std::size_t top) {
  Advice advice;
  std::vector<std::shared_ptr<const KernelTrace>> traces;
  for (const LaunchTask& task : launches) traces.push_back(task.scene.trace);
  const Case& item = *launches.front().item;
  const std::vector<Fusion> found = fusions(item, traces);
  std::vector<std::optional<Run>> as_is(launches.size());
  each(launches.size(), [&](std::size_t i) { as_is[i] = run(launches[i].scene, launches[i], launches[i].options); });
  std::vector<Prediction> all;
  for (const auto& one : as_is) all.push_back(one->prediction());
  const Outcome before = outcome_of(std::move(all));
  advice.case_id = item.id;
  advice.gpu = before.launches.front().gpu;
  advice.cycles = before.cycles;
  advice.low = before.low;
  advice.high = before.high;
  advice.time_ns = before.time_ns;

  std::vector<Suggestion> suggestions(found.size());
  each(found.size(), [&](std::size_t f) {
    const Fusion& fusion = found[f];
    const auto first = static_cast<std::size_t>(fusion.first), last = static_cast<std::size_t>(fusion.last);
    std::vector<Prediction> with = before.launches;
    double saved = 0;
    for (std::size_t i = first; i <= last; ++i) {
      const LaunchTask& task = launches[i];
      SimulateOptions options = task.options;
      options.threads = 1;
      with[i] =
          run({task.scene.model, fused(task.scene.trace, fusion), task.scene.occupancy}, task, options).prediction();
      const LaunchSpec& l = task.scene.model.launch;
      if (i > first) saved += l.start_cycles + l.end_cycles + gap_cycles(with[i]);
    }
    const Outcome after = outcome_of(std::move(with));
    Suggestion& s = suggestions[f];
    s.change = "fuse";
    std::string names;
    double written = 0, read = 0;
    bool stored = false;
    for (const Intermediate& one : fusion.handed_over) {
      const Buffer& buffer = item.buffers[static_cast<std::size_t>(one.buffer)];
      names += (names.empty() ? "" : ", ") + buffer.name;
      written += one.written;
      read += one.read;
      stored = stored || one.needed_later;
    }
    s.what = "make one kernel of launches " + std::to_string(first) + " to " + std::to_string(last) + ": " + names +
             (fusion.handed_over.size() > 1 ? " stay on chip" : " stays on chip");
    s.where = item.launches[last].where.text();
    s.why = "of " + names + ", " + report::bytes_text(written) + " are written and " + report::bytes_text(read) +
            " read by these launches";
    s.cost = times_text(read, written) + (stored ? "; a later launch reads it, so it is stored" : "");
    s.basis = Basis::AtMost;
    s.cycles = std::max(0.0, after.cycles - saved);
    s.time_ns = before.time_ns * s.cycles / before.cycles;
    s.gain = gain_between(before, s.cycles, after.low - saved, after.high - saved);
    s.evidence = evidence_of(before, after);
  });
  advice.tried = static_cast<int>(found.size());
  std::erase_if(suggestions, [](const Suggestion& s) { return s.gain.pct < kNoticeablePct; });
  std::stable_sort(suggestions.begin(), suggestions.end(),
                   [](const Suggestion& a, const Suggestion& b) { return a.gain.pct > b.gain.pct; });
  if (suggestions.size() > top) suggestions.resize(top);
  advice.suggestions = std::move(suggestions);
  return advice;
}

}  // namespace forewarp::advise
