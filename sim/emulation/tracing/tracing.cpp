// From a launch to its trace: the first block that no class holds is emulated, its class takes in whatever satisfies
// its conditions, until every block of the grid has its class.
#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "emulation/emulation.h"
#include "emulation/run/launch_order.h"
#include "emulation/run/launch_setup.h"
#include "emulation/tracing/block_counter.h"
#include "emulation/tracing/trace_observer.h"

namespace forewarp {
namespace {

using namespace emulation;

/// Says which blocks of the grid have a class.
class Cover {
 public:
  explicit Cover(const KernelTrace& trace) : trace_(trace), grid_(trace.launch.grid) {}

  /// A class whose conditions tell exactly who belongs to it: later blocks find it by themselves.
  void add(std::uint32_t index) {
    const BlockClass& c = trace_.classes[index];
    if (!c.single) classes_.push_back({index, trace_.place(c.representative)});
  }
  /// Whether a block was given to a class by take().
  bool taken(std::uint64_t linear) const { return !taken_.empty() && taken_[linear]; }
  /// The class from add() that a block belongs to, or kNone.
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t find(const BlockPlace& place) {
    const auto holds = [&](std::size_t i) {
      return trace_.classes[classes_[i].index].contains({classes_[i].representative, place});
    };
    // Neighbours mostly behave alike, and a block that two classes describe is the same in both.
    if (classes_.size() > kMostInOrder && holds(latest_)) return classes_[latest_].index;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      if (!holds(i)) continue;
      latest_ = i;
      return classes_[i].index;
    }
    return kNone;
  }

  /// Blocks without a class that satisfy the conditions of this one, the representative first.
  std::vector<std::uint64_t> members(const BlockClass& c) {
    std::vector<std::uint64_t> found;
    each(c, [&](std::uint64_t linear, const BlockPlace& place) {
      if (find(place) == kNone) found.push_back(linear);
    });
    return found;
  }

  /// Gives a class those of `members` that satisfy its conditions and have none yet; returns how many.
  std::uint64_t take(const BlockClass& c, const std::vector<std::uint64_t>& members) {
    if (taken_.empty()) taken_.resize(grid_.count(), false);
    const BlockPlace representative = trace_.place(c.representative);
    std::uint64_t population = 0;
    for (const std::uint64_t linear : members) {
      if (taken_[linear] || !c.contains({representative, trace_.place(trace_.block_index(linear))})) continue;
      taken_[linear] = true;
      ++population;
    }
    return population;
  }

 private:
  static constexpr std::size_t kMostInOrder = 16;
  struct Known {
    std::uint32_t index;
    BlockPlace representative;
  };

  template <class Visit>
  void each(const BlockClass& c, const Visit& visit) const {
    Dim3 first{0, 0, 0}, last{grid_.x - 1, grid_.y - 1, grid_.z - 1};
    for (const BlockCondition& condition : c.conditions) narrow(condition, c.representative, first, last);
    const BlockPlace representative = trace_.place(c.representative);
    for (std::uint32_t z = first.z; z <= last.z; ++z) {
      for (std::uint32_t y = first.y; y <= last.y; ++y) {
        for (std::uint32_t x = first.x; x <= last.x; ++x) {
          const std::uint64_t linear = (std::uint64_t{z} * grid_.y + y) * grid_.x + x;
          if (taken(linear)) continue;
          const BlockPlace place = trace_.place({x, y, z});
          if (c.contains({representative, place})) visit(linear, place);
        }
      }
    }
  }

  /// Conditions along one dimension bound the box that has to be searched.
  static void narrow(const BlockCondition& c, const Dim3& at, Dim3& first, Dim3& last) {
    const BlockSlope axis = c.coefficient;
    if (axis == BlockSlope{1, 0, 0, {}}) clip(c, at.x, first.x, last.x);
    if (axis == BlockSlope{0, 1, 0, {}}) clip(c, at.y, first.y, last.y);
    if (axis == BlockSlope{0, 0, 1, {}}) clip(c, at.z, first.z, last.z);
  }
  static void clip(const BlockCondition& c, std::uint32_t at, std::uint32_t& first, std::uint32_t& last) {
    const std::int64_t low = c.low < -std::int64_t{at} ? 0 : at + c.low;
    const std::int64_t high = c.high > std::int64_t{last} - at ? last : at + c.high;
    first = std::max(first, static_cast<std::uint32_t>(low));
    last = std::min(last, static_cast<std::uint32_t>(high));
  }

  const KernelTrace& trace_;
  Dim3 grid_;
  std::vector<Known> classes_;
  std::size_t latest_ = 0;
  std::vector<bool> taken_;  ///< made when the first block is taken
};

BlockClass trace_block(BlockExecutor& executor, Shadow& shadow, BlockTraceBuilder& builder, const Dim3& block,
                       bool classes) {
  shadow.start(block);
  TraceObserver observer(builder, shadow);
  executor.run(block, observer);
  BlockClass result = builder.finish();
  result.representative = block;
  result.conditions = shadow.conditions().list();
  result.single |= shadow.conditions().single() || !classes;
  if (result.single) result.conditions.clear();
  return result;
}

/// Blocks that execute the same instructions and touch as much memory; where the data lies may differ.
bool same_way(const BlockClass& a, const BlockClass& b) {
  if (a.counts != b.counts || a.warps.size() != b.warps.size()) return false;
  for (std::size_t w = 0; w < a.warps.size(); ++w)
    if (a.paths[a.warps[w].path] != b.paths[b.warps[w].path]) return false;
  return true;
}

std::uint64_t executed(const BlockClass& c) {
  std::uint64_t sum = 0;
  for (const InstructionCount& count : c.counts) sum += count.executed;
  return sum;
}

/// Whether block `b` accesses what block `a` does, moved by the slopes: with same_way, the same trace.
bool same_accesses(const KernelTrace& trace, const BlockClass& a, const BlockClass& b) {
  const BlockDistance distance = trace.distance(a.representative, b.representative);
  for (std::size_t w = 0; w < a.warps.size(); ++w) {
    const std::vector<Access>&p = a.warps[w].accesses, &q = b.warps[w].accesses;
    if (p.size() != q.size()) return false;
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i].pattern != q[i].pattern || p[i].slope != q[i].slope) return false;
      const std::uint64_t moved = p[i].base + static_cast<std::uint64_t>(trace.slopes[p[i].slope].over(distance));
      if (trace.patterns[p[i].pattern].lanes != 0 && moved != q[i].base) return false;
    }
  }
  return true;
}

// Warp instructions that are executed to follow every block of a class whose way depends on data, and of all classes of
// a launch; beyond them a sample stands for all.
constexpr std::uint64_t kFollowClass = 6'000'000, kFollowLaunch = 24'000'000;
constexpr std::uint64_t kLargestSample = 24, kSmallestSample = 3;

/// Follows every member. Those that go the way of the first stay one class; the others are classes of their own, listed
/// before it, so that they are found first.
template <class Follow>
void follow_all(KernelTrace& trace, Cover& cover, BlockClass first, const std::vector<std::uint64_t>& members,
                const Follow& follow) {
  for (const std::uint64_t b : members) {
    if (b == members.front()) continue;
    BlockClass own = follow(b);
    if (same_way(first, own) && same_accesses(trace, first, own)) continue;
    own.single = true;
    own.conditions.clear();
    own.population = cover.take(own, {b});
    trace.classes.push_back(std::move(own));
  }
  first.population = cover.take(first, members);
  trace.classes.push_back(std::move(first));
}

/// Counts block by block what the classes of a sample only stand for.
class SampleCounter {
 public:
  /// With `in_order`, blocks never run side by side.
  SampleCounter(const LaunchState& launch, const TraceOptions& options, bool in_order)
      : launch_(launch), threads_(options.threads), in_order_(in_order), left_(options.counted_instructions) {}

  /// `sample` has its populations; its blocks executed `instructions` together.
  void count(const KernelTrace& trace, const std::vector<std::uint64_t>& members, const std::vector<BlockClass>& sample,
             std::uint64_t instructions) {
    const std::uint64_t expected = instructions / sample.size() * members.size();
    if (expected > left_) {
      missed_ = true;
      return;
    }
    left_ -= expected;
    for (const BlockClass& c : sample) {
      estimated_.resize(c.counts.size());
      for (std::size_t i = 0; i < c.counts.size(); ++i) estimated_[i].add(c.counts[i], c.population);
    }
    GlobalMemory& global = *launch_.global;
    if (in_order_ || !global.allow_any_order()) {
      // Blocks that were followed must not find what they wrote themselves.
      global.undo_writes();
      global.keep_writes_undoable();
    }
    count_blocks(launch_, trace, members, threads_, counted_);
  }

  /// The launch's totals, if every sample whose blocks differ was counted.
  void finish(KernelTrace& trace) const {
    if (missed_ || counted_.empty()) return;
    std::vector<InstructionCount> totals = trace.totals();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      totals[i].add(estimated_[i], ~std::uint64_t{0});  // less once: modulo 2^64
      totals[i].add(counted_[i]);
    }
    trace.launch.counted = std::move(totals);
  }

 private:
  const LaunchState& launch_;
  unsigned threads_;
  bool in_order_;
  std::uint64_t left_;
  bool missed_ = false;
  std::vector<InstructionCount> estimated_, counted_;
};

/// Follows a sample spread over the class. If all go one way, so do the others; if not, each sampled block stands for
/// an equal share of the grid, a residue of the block index along x.
template <class Follow>
void follow_sample(KernelTrace& trace, Cover& cover, BlockClass first, const std::vector<std::uint64_t>& members,
                   std::uint64_t size, SampleCounter& counter, const Follow& follow) {
  LaunchInfo& info = trace.launch;
  std::vector<BlockClass> sample;
  sample.push_back(std::move(first));
  std::uint64_t instructions = executed(sample.front());
  bool alike = true;
  for (std::uint64_t i = 1; i < size; ++i) {
    // Golden-ratio steps: spread over the class without a rhythm of their own.
    const std::uint64_t at = (i * 0x9E3779B97F4A7C15ull >> 32) * members.size() >> 32;
    sample.push_back(follow(members[at]));
    instructions += executed(sample.back());
    alike = alike && same_way(sample.front(), sample.back());
  }
  info.sampled_blocks += size;
  info.inferred_blocks += members.size() - size;
  info.samples_differ |= !alike;
  if (alike) sample.resize(1);
  for (std::size_t i = 0; i < sample.size(); ++i) {
    if (!alike) {
      BlockCondition share;
      share.coefficient = {1, 0, 0};
      share.modulus = static_cast<std::int64_t>(size);
      // The representatives need not lie in different residues; the last class takes what is left.
      if (i + 1 < sample.size()) sample[i].conditions.push_back(share);
    }
    sample[i].population = cover.take(sample[i], members);
  }
  if (!alike) counter.count(trace, members, sample, instructions);
  for (BlockClass& c : sample)
    if (c.population > 0) trace.classes.push_back(std::move(c));
}

/// A class whose blocks may differ by their data: a small one is followed block by block, a large one by a sample.
/// `spent` is what following has cost so far in this launch.
template <class Follow>
void add_data_dependent(KernelTrace& trace, Cover& cover, BlockClass first, std::uint64_t instructions,
                        std::uint64_t spent, SampleCounter& counter, const Follow& follow) {
  const std::vector<std::uint64_t> members = cover.members(first);
  const std::uint64_t budget = std::min(kFollowClass, kFollowLaunch - std::min(kFollowLaunch, spent));
  const std::uint64_t affordable = budget / std::max<std::uint64_t>(1, instructions);
  const std::uint64_t size = std::clamp(affordable, kSmallestSample, kLargestSample);
  if (members.size() <= std::max(size, affordable)) {
    follow_all(trace, cover, std::move(first), members, follow);
  } else {
    follow_sample(trace, cover, std::move(first), members, size, counter, follow);
  }
}

/// Gives every block of the grid its class. Unless this is to be `in_order`, blocks may be counted in any order; if
/// that turns out to have been wrong, or one of them fails, something is thrown while GlobalMemory::any_order() holds.
void trace_grid(KernelTrace& trace, const LaunchSetup& setup, const TraceOptions& options, bool in_order) {
  GlobalMemory& global = *setup.state().global;
  global.forget_touches();
  // What the followed blocks write is taken back: later launches find what the whole launch leaves.
  global.keep_writes_undoable();
  BlockExecutor executor(setup.state());
  Shadow shadow(setup.decoded(), trace.launch.grid, executor.warps(), trace.quotients);
  TracePools pools(trace);
  BlockTraceBuilder builder(*trace.kernel, executor.warps(), pools);
  SampleCounter counter(setup.state(), options, in_order);
  Cover cover(trace);
  const std::uint64_t blocks = trace.launch.grid.count();
  std::uint64_t spent = 0;
  const auto follow = [&](std::uint64_t b) {
    BlockClass result = trace_block(executor, shadow, builder, trace.block_index(b), options.block_classes);
    spent += executor.executed();
    return result;
  };
  for (std::uint64_t b = 0; b < blocks; ++b) {
    if (cover.taken(b)) continue;
    const std::uint32_t known = cover.find(trace.place(trace.block_index(b)));
    if (known != Cover::kNone) {
      ++trace.classes[known].population;
      continue;
    }
    BlockClass next = follow(b);
    if (shadow.conditions().data_dependent() && !next.single) {
      add_data_dependent(trace, cover, std::move(next), executor.executed(), spent, counter, follow);
    } else {
      next.population = 1;
      trace.classes.push_back(std::move(next));
      cover.add(static_cast<std::uint32_t>(trace.classes.size() - 1));
    }
    if (options.progress) options.progress(b + 1, blocks);
  }
  counter.finish(trace);
  global.undo_writes();
}

}  // namespace

struct CaseTracer::State {
  const Program& program;
  const Case& item;
  TraceOptions options;
  GlobalMemory global;
  LaunchOrder order;
  std::vector<std::optional<std::uint64_t>> lengths;  ///< of the launches that have been traced, warp instructions
  std::uint64_t spent = 0;                            ///< on launches that were run for their values
  bool incomplete = false;

  State(const Program& p, const Case& c, const TraceOptions& o)
      : program(p),
        item(c),
        options(o),
        global(c, p.module_data),
        order(c, global.addresses(), p.module_data.size()),
        lengths(c.launches.size()) {}

  void run(int launch_index) {
    const Launch& launch = item.launches[static_cast<std::size_t>(launch_index)];
    const LaunchSetup setup(program, program.kernel(launch.kernel), launch, global, options.emulation);
    spent += run_all_blocks(setup);
  }
};

void CaseTracer::run_launches_before(int launch_index) {
  State& s = *state_;
  for (const int before : s.order.run_before(launch_index)) {
    if (s.incomplete) return;
    std::optional<std::uint64_t>& length = s.lengths[static_cast<std::size_t>(before)];
    if (!length) trace(before);
    // A part of a launch is no use: who reads what of it is not known.
    s.incomplete = *length > s.options.value_instructions - s.spent;
    if (!s.incomplete) s.run(before);
  }
}

CaseTracer::CaseTracer(const Program& program, const Case& item, const TraceOptions& options)
    : state_(std::make_unique<State>(program, item, options)) {}
CaseTracer::~CaseTracer() = default;

std::shared_ptr<KernelTrace> CaseTracer::trace(int launch_index) {
  const Program& program = state_->program;
  const TraceOptions& options = state_->options;
  const Case& item = state_->item;
  FW_CHECK(launch_index >= 0 && static_cast<std::size_t>(launch_index) < item.launches.size(), "no such launch");
  const Launch& launch = item.launches[static_cast<std::size_t>(launch_index)];
  const auto kernel = std::make_shared<const Kernel>(program.kernel(launch.kernel));
  const auto trace = std::make_shared<KernelTrace>();
  trace->launch.case_id = item.id;
  trace->launch.launch_index = launch_index;
  trace->launch.grid = launch.grid;
  trace->launch.block = launch.block;
  trace->launch.cluster = launch.cluster;
  trace->launch.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  trace->kernel = kernel;
  trace->sm = program.sm;

  const ProgramSlice slice = control_slice(*kernel);
  if (slice.needs_global_values || options.all_values) {
    run_launches_before(launch_index);
    trace->launch.inputs_incomplete = state_->incomplete;
  }
  GlobalMemory& global = state_->global;
  const LaunchSetup setup(program, *kernel, launch, global, options.emulation, options.all_values ? nullptr : &slice);
  const KernelTrace begun = *trace;
  try {
    trace_grid(*trace, setup, options, false);
  } catch (...) {
    if (!global.any_order()) throw;
    // In order, the counts are right, or the first block that fails says so.
    global.undo_writes();
    *trace = begun;
    trace_grid(*trace, setup, options, true);
  }
  state_->order.traced(launch_index, *trace);
  std::uint64_t& length = state_->lengths[static_cast<std::size_t>(launch_index)].emplace(0);
  for (const InstructionCount& count : trace->totals()) length += count.executed;
  return trace;
}

std::shared_ptr<KernelTrace> trace_launch(const Program& program, const Case& item, int launch_index,
                                          const TraceOptions& options) {
  return CaseTracer(program, item, options).trace(launch_index);
}

}  // namespace forewarp
