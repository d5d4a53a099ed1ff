// From a launch to its trace: the first block that no class holds is emulated, its class takes in whatever satisfies
// its conditions, until every block of the grid has its class.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "emulation/emulation.h"
#include "emulation/run/launch_order.h"
#include "emulation/run/launch_setup.h"
#include "emulation/run/side_by_side.h"
#include "emulation/tracing/block_counter.h"
#include "emulation/tracing/trace_observer.h"
#include "program/traits.h"
#include "trace/class_index.h"

namespace forewarp {
namespace {

using namespace emulation;

/// Says which blocks of the grid have a class.
class Cover {
 public:
  explicit Cover(const KernelTrace& trace) : trace_(trace), grid_(trace.launch.grid), finder_(trace) {}

  /// A class whose conditions tell exactly who belongs to it: later blocks find it by themselves.
  void add(std::uint32_t index) {
    if (!trace_.classes[index].single) finder_.add(index);
  }
  void forget() { finder_.clear(); }
  /// The class from add() that a block belongs to, or kNone.
  static constexpr std::uint32_t kNone = ClassFinder::kNone;
  std::uint32_t find(const BlockPlace& place) {
    ++asked_;
    return finder_.find(place);
  }
  /// Blocks asked for and conditions looked at so far.
  std::uint64_t work() const { return asked_ + finder_.tests(); }

  /// Whether a block was given to a class by take().
  bool taken(std::uint64_t linear) const { return !taken_.empty() && taken_[linear]; }
  bool any_taken() const { return !taken_.empty(); }
  /// Sampled blocks stand for these.
  void take_all(const std::vector<std::uint64_t>& members) {
    if (taken_.empty()) taken_.resize(grid_.count(), false);
    for (const std::uint64_t linear : members) taken_[linear] = true;
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
  ClassFinder finder_;
  std::uint64_t asked_ = 0;
  std::vector<bool> taken_;  ///< made when the first block is taken
};

/// Follows blocks, each with its cluster, whose other blocks are kept for when their turn comes.
class BlockFollower {
 public:
  BlockFollower(const KernelTrace& trace, const LaunchSetup& setup, TracePools& pools,
                std::vector<BlockQuotient>& quotients, const TraceOptions& options)
      : trace_(trace), executor_(setup.state()), classes_(options.block_classes) {
    const Dim3 extent = setup.state().cluster_extent();
    for (std::size_t rank = 0; rank < executor_.size(); ++rank) {
      Part& part = parts_.emplace_back(setup.decoded(), trace, extent, executor_.warps(), pools, quotients);
      part.builder.limit_bytes(options.emulation.block_trace_bytes);
    }
  }

  /// The class of a block, and what follows about it.
  struct Followed {
    BlockClass own;
    bool depends_on_data = false;
    bool met_places = false;
  };

  Followed follow(std::uint64_t linear) {
    executed_ = followed_ = 0;
    if (const auto kept = kept_.find(linear); kept != kept_.end()) {
      Followed result = std::move(kept->second);
      kept_.erase(kept);
      return result;
    }
    const Dim3 block = trace_.block_index(linear);
    const std::size_t asked = executor_.rank_of(block);
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) parts_[rank].shadow.start(executor_.block_at(block, rank));
    executor_.run(block, [&](std::size_t rank) -> TraceObserver& { return parts_[rank].observer; });
    executed_ = executor_.executed();
    followed_ = 0;
    for (Part& part : parts_) {
      followed_ += part.shadow.followed() - part.followed;
      part.followed = part.shadow.followed();
    }
    if (kept_.size() > kMostKept) kept_.clear();
    Followed result;
    for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
      const Dim3 at = executor_.block_at(block, rank);
      Followed one = finish(parts_[rank], at);
      if (rank == asked)
        result = std::move(one);
      else
        kept_.insert_or_assign((std::uint64_t{at.z} * trace_.launch.grid.y + at.y) * trace_.launch.grid.x + at.x,
                               std::move(one));
    }
    return result;
  }

  /// Warp instructions that this took; none for a block that was kept.
  /// What the last block cost, as instructions of which nothing moves with the block.
  std::uint64_t work() const {
    constexpr auto kEach = static_cast<std::uint64_t>(Effort::kTraced / Effort::kFollowed);
    return executed_ + followed_ * kEach;
  }
  void follow_places() {
    kept_.clear();
    for (Part& part : parts_) part.shadow.follow_places();
  }
  bool places_hold() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.shadow.places_hold(); });
  }

 private:
  struct Part {
    Part(const DecodedKernel& kernel, const KernelTrace& trace, const Dim3& cluster, int warps, TracePools& pools,
         std::vector<BlockQuotient>& quotients)
        : shadow(kernel, trace.launch.grid, warps, quotients, cluster),
          builder(*trace.kernel, warps, pools),
          observer(builder, shadow) {}
    Shadow shadow;
    std::uint64_t followed = 0;  ///< by it, up to the last block
    BlockTraceBuilder builder;
    TraceObserver observer;
  };
  static constexpr std::size_t kMostKept = 256;

  Followed finish(Part& part, const Dim3& block) const {
    Followed result;
    result.own = part.builder.finish();
    result.own.representative = block;
    result.own.conditions = part.shadow.conditions().list();
    result.own.single |= part.shadow.conditions().single() || !classes_;
    if (result.own.single) result.own.conditions.clear();
    result.depends_on_data = part.shadow.conditions().data_dependent() && !result.own.single;
    result.met_places = part.shadow.met_places();
    return result;
  }

  const KernelTrace& trace_;
  ClusterExecutor executor_;
  bool classes_;
  std::deque<Part> parts_;  ///< by rank
  std::map<std::uint64_t, Followed> kept_;
  std::uint64_t executed_ = 0, followed_ = 0;
};

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

// Blocks that stand for others where not all can be followed.
constexpr std::uint64_t kLargestSample = 512, kSmallestSample = 3;
// Fewer blocks than this show no trend along a grid, so that time is overdrawn for them, but not memory.
constexpr std::uint64_t kWorthwhile = 16;
// Of a launch's share for following, what one class whose blocks differ by their data may take.
constexpr std::uint64_t kClassShare = 4;

std::uint64_t bytes_of(const BlockClass& c) {
  std::uint64_t bytes = sizeof c + c.conditions.size() * sizeof(BlockCondition) + c.warps.size() * sizeof(WarpTrace);
  for (const WarpPath& path : c.paths) bytes += sizeof path + path.runs.size() * sizeof(Run);
  for (const WarpTrace& warp : c.warps) bytes += warp.accesses.size() * sizeof(Access);
  return bytes;
}

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
      : launch_(launch), threads_(options.threads), in_order_(in_order) {}

  /// Instructions that have been counted.
  std::uint64_t spent() const { return spent_; }
  /// Sectors that asynchronous copies moved meanwhile, since something depends on their bytes.
  std::uint64_t copied() const {
    std::uint64_t sectors = 0;
    for (std::size_t i = 0; i < counted_.size(); ++i) {
      const Op& op = launch_.kernel->ops[i];
      if (op.kind == OpKind::Copy && op.value_needed) sectors += counted_[i].ideal_sectors;
    }
    return sectors;
  }

  /// `sample` has its populations; its blocks executed `instructions` together. `left`: instructions that may be
  /// counted yet. False if that is not enough.
  bool count(const KernelTrace& trace, const std::vector<std::uint64_t>& members, const std::vector<BlockClass>& sample,
             std::uint64_t instructions, std::uint64_t left) {
    const std::uint64_t expected = instructions / sample.size() * members.size();
    if (expected > left) {
      missed_ = true;
      return false;
    }
    spent_ += expected;
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
    return true;
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
  std::uint64_t spent_ = 0;
  bool missed_ = false;
  std::vector<InstructionCount> estimated_, counted_;
};

/// An order of the blocks of a grid: by a form of their place (the row of a triangle, say), and by linear index where
/// that is the same.
class BlockOrder {
 public:
  /// None where a key could overflow.
  static std::optional<BlockOrder> by(const KernelTrace& trace, const BlockSlope& form) {
    BlockOrder order(trace);
    const auto blocks = static_cast<BlockSlope::Wide>(trace.launch.grid.count());
    const auto add = [&](std::int64_t& to, std::int64_t leading) {
      const BlockSlope::Wide sum = to + blocks * leading;
      to = static_cast<std::int64_t>(sum);
      return sum == to && std::abs(leading) < kFarthest;
    };
    BlockSlope& key = order.key_;
    bool fits = add(key.x, form.x) && add(key.y, form.y) && add(key.z, form.z);
    for (std::size_t i = 0; i < key.quotients.size(); ++i) fits &= add(key.quotients[i], form.quotients[i]);
    const Dim3& grid = trace.launch.grid;
    for (unsigned corner = 0; corner < 8; ++corner) {
      const Dim3 block{(corner & 1) != 0 ? grid.x - 1 : 0, (corner & 2) != 0 ? grid.y - 1 : 0,
                       (corner & 4) != 0 ? grid.z - 1 : 0};
      const BlockSlope::Wide at = key.exactly_over(trace.place(block));
      fits &= at < kFarthest && at > -kFarthest;
    }
    return fits ? std::optional(order) : std::nullopt;
  }
  explicit BlockOrder(const KernelTrace& trace) : trace_(&trace), key_(linear_slope(trace.launch.grid)) {}

  bool natural() const { return key_ == linear_slope(trace_->launch.grid); }
  std::int64_t key(const Dim3& block) const {
    return static_cast<std::int64_t>(key_.exactly_over(trace_->place(block)));
  }
  std::int64_t key(std::uint64_t linear) const { return key(trace_->block_index(linear)); }

  /// The blocks from `first` to `last`, said by how far they lie from `representative`.
  BlockCondition stretch(const Dim3& representative, std::uint64_t first, std::uint64_t last) const {
    BlockCondition between;
    between.coefficient = key_;
    between.low = key(first) - key(representative);
    between.high = key(last) - key(representative);
    return between;
  }

  void sort(std::vector<std::uint64_t>& blocks) const {
    std::vector<std::pair<std::int64_t, std::uint64_t>> keyed;
    keyed.reserve(blocks.size());
    for (const std::uint64_t b : blocks) keyed.emplace_back(key(b), b);
    std::sort(keyed.begin(), keyed.end());
    std::transform(keyed.begin(), keyed.end(), blocks.begin(), [](const auto& one) { return one.second; });
  }
  static constexpr std::uint64_t kBytesToSort = sizeof(std::pair<std::int64_t, std::uint64_t>);

 private:
  static constexpr std::int64_t kFarthest = std::int64_t{1} << 58;  // the difference of two keys fits, too

  const KernelTrace* trace_;
  BlockSlope key_;
};

/// The order in which blocks that follow each other differ least in what they execute, by those that are known: by
/// what their conditions ask for, by a coordinate, a quotient or a remainder of coordinates, or as they are. The more
/// alike neighbours are, the more one says of those beside it.
BlockOrder smoothest_order(const KernelTrace& trace, const std::vector<const BlockClass*>& known) {
  std::vector<BlockSlope> forms{{1, 0, 0, {}}, {0, 1, 0, {}}, {0, 0, 1, {}}};
  for (std::size_t i = 0; i < trace.quotients.size(); ++i) {
    BlockSlope quotient, remainder = trace.quotients[i].numerator;
    quotient.quotients[i] = 1;
    remainder.quotients[i] = -trace.quotients[i].divisor;
    forms.push_back(quotient);
    forms.push_back(remainder);
  }
  for (const BlockClass* c : known) {
    for (const BlockCondition& condition : c->conditions) {
      if (std::find(forms.begin(), forms.end(), condition.coefficient) == forms.end())
        forms.push_back(condition.coefficient);
    }
  }
  std::vector<std::pair<std::int64_t, std::uint64_t>> keyed(known.size());
  const auto variation = [&](const BlockOrder& order) {
    for (std::size_t i = 0; i < known.size(); ++i)
      keyed[i] = {order.key(known[i]->representative), executed(*known[i])};
    std::sort(keyed.begin(), keyed.end());
    std::uint64_t sum = 0;
    for (std::size_t i = 1; i < keyed.size(); ++i) {
      const auto [low, high] = std::minmax(keyed[i - 1].second, keyed[i].second);
      sum += high - low;
    }
    return sum;
  };
  BlockOrder best(trace);
  std::uint64_t least = variation(best);
  for (const BlockSlope& form : forms) {
    const std::optional<BlockOrder> order = BlockOrder::by(trace, form);
    if (!order) continue;
    if (const std::uint64_t sum = variation(*order); sum < least) {
      least = sum;
      best = *order;
    }
  }
  return best;
}

/// The i-th place of `count`. Golden-ratio steps leave gaps of at most three lengths, however many there are.
std::size_t golden_step(std::uint64_t i, std::uint64_t count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>(Wide{i * 0x9E3779B97F4A7C15ull} * count >> 64);
}

/// Follows blocks spread evenly over `members`, as many as `affordable` says. Each stands for its neighbours up to
/// halfway to the next one, so that what changes along their order (the rows of a triangle) is followed in steps. If
/// all of a class go one way, its `first` block stands for all, and nothing of them is kept.
class Sample {
 public:
  /// The members are in this order.
  Sample(const BlockOrder& order, KernelTrace& trace, const std::vector<std::uint64_t>& members)
      : order_(order), trace_(trace), members_(members) {}

  template <class Follow, class Affordable>
  void follow(const Follow& follow_block, const Affordable& affordable) {
    while (chosen_.size() < members_.size() && affordable(chosen_.size())) {
      const std::size_t at = golden_step(++tried_, members_.size());
      if (chosen_.contains(at)) {
        if (tried_ > 8 * kLargestSample) break;
        continue;
      }
      BlockClass c = follow_block(members_[at]);
      instructions_ += executed(c);
      chosen_.emplace(at, std::move(c));
    }
  }

  std::uint64_t size() const { return chosen_.size(); }
  std::uint64_t instructions() const { return instructions_; }
  bool alike(const BlockClass& first) const {
    return std::all_of(chosen_.begin(), chosen_.end(), [&](const auto& c) { return same_way(first, c.second); });
  }

  /// The classes, each with the stretch of members it stands for. What they need to hold besides is in `conditions`.
  std::vector<BlockClass> strata(const std::vector<BlockCondition>& conditions, const BlockClass* home) {
    std::vector<BlockClass> classes;
    std::size_t begin = 0;
    for (auto it = chosen_.begin(); it != chosen_.end(); ++it) {
      const std::size_t end = end_of_stratum(it);
      BlockClass& c = it->second;
      c.single = false;
      c.population = end - begin;
      c.conditions = moved(conditions, home, c.representative);
      c.conditions.push_back(order_.stretch(c.representative, members_[begin], members_[end - 1]));
      classes.push_back(std::move(c));
      begin = end;
    }
    return classes;
  }

  /// Half of the 95 % interval of the executed instructions, in percent of them: neighbours show how blocks scatter.
  double error_pct() const {
    double variance = 0, sum = 0;
    std::size_t begin = 0;
    for (auto it = chosen_.begin(); it != chosen_.end(); ++it) {
      const std::size_t end = end_of_stratum(it);
      const auto share = static_cast<double>(end - begin), own = static_cast<double>(executed(it->second));
      begin = end;
      sum += share * own;
      const auto next = std::next(it);
      const auto other = next != chosen_.end() ? next : it == chosen_.begin() ? it : std::prev(it);
      const double apart = own - static_cast<double>(executed(other->second));
      variance += share * (share - 1) * apart * apart / 2;
    }
    return sum > 0 ? 196 * std::sqrt(variance) / sum : 0;
  }

 private:
  using Chosen = std::map<std::size_t, BlockClass>;
  /// Halfway to the next one that was chosen.
  std::size_t end_of_stratum(Chosen::const_iterator it) const {
    const auto next = std::next(it);
    return next == chosen_.end() ? members_.size() : (it->first + next->first) / 2 + 1;
  }
  /// Conditions relative to another member.
  std::vector<BlockCondition> moved(std::vector<BlockCondition> conditions, const BlockClass* home,
                                    const Dim3& to) const {
    if (home == nullptr) return conditions;
    const BlockDistance d = trace_.distance(home->representative, to);
    for (BlockCondition& c : conditions) {
      const auto by = static_cast<std::int64_t>(c.coefficient.exactly_over(d));
      if (c.low != std::numeric_limits<std::int64_t>::min()) c.low -= by;
      if (c.high != std::numeric_limits<std::int64_t>::max()) c.high -= by;
    }
    return conditions;
  }

  BlockOrder order_;
  KernelTrace& trace_;
  const std::vector<std::uint64_t>& members_;
  Chosen chosen_;  ///< by place among the members
  std::uint64_t tried_ = 0, instructions_ = 0;
};

/// Each block that runs side by side with others is a class of its own.
constexpr std::uint64_t kMostDrawingBlocks = 1 << 16;

/// False: that takes too long.
bool trace_side_by_side(KernelTrace& trace, const LaunchSetup& setup, const TraceOptions& options) {
  struct Running {
    Running(const LaunchState& launch, const Kernel& kernel, TracePools& pools)
        : executor(launch), builder(kernel, executor.warps(), pools), observer(builder) {}
    BlockExecutor executor;
    BlockTraceBuilder builder;
    CountObserver observer;
    std::uint64_t block = 0, began = 0;
  };
  const std::uint64_t blocks = trace.launch.grid.count();
  if (blocks > kMostDrawingBlocks) return false;
  const LaunchState& state = setup.state();
  TracePools pools(trace);
  trace.classes.assign(blocks, {});
  std::uint64_t done = 0;
  const bool all = run_side_by_side<Running>(
      state, options.traced_instructions,
      [&](std::deque<Running>& slots) { slots.emplace_back(state, *trace.kernel, pools); },
      [&](Running& one) {
        BlockClass& own = trace.classes[one.block];
        own = one.builder.finish();
        own.representative = trace.block_index(one.block);
        own.single = true;
        own.population = 1;
        trace.launch.blocks_wait |= one.executor.waited();
        if (options.progress) options.progress(++done, blocks);
      });
  if (all) trace.launch.side_by_side = places_side_by_side(state);
  return all;
}

/// Gives every block of the grid its class. Unless this is to be `in_order`, blocks may be counted in any order; if
/// that turns out to have been wrong, or one of them fails, something is thrown while GlobalMemory::any_order() holds.
class GridTracer {
 public:
  GridTracer(KernelTrace& trace, const LaunchSetup& setup, const TraceOptions& options, bool in_order,
             bool follow_places)
      : trace_(trace),
        options_(options),
        pools_(trace),
        follower_(trace, setup, pools_, trace.quotients, options),
        counter_(setup.state(), options, in_order),
        cover_(trace),
        most_work_(kExactShares * options.traced_instructions),
        may_follow_places_(follow_places) {}

  void trace_all() {
    const std::uint64_t blocks = trace_.launch.grid.count();
    for (std::uint64_t b = 0; b < blocks; ++b) {
      if (cover_.taken(b)) continue;
      const std::uint32_t known = cover_.find(trace_.place(trace_.block_index(b)));
      if (known != Cover::kNone) {
        ++trace_.classes[known].population;
        continue;
      }
      if (b > 0 && over_budget()) {
        if (most_work_ == kExactShares * options_.traced_instructions && find_large_classes()) {
          b = ~std::uint64_t{0};  // populations are counted from the first block on
          continue;
        }
        sample_rest();
        break;
      }
      BlockClass next = follow(b);
      bool by_data = depends_on_data_;
      const bool alone = next.single && may_share();
      if (alone || (by_data && !add_data_dependent(next))) {
        follower_.follow_places();
        next = follow(b);
        by_data = depends_on_data_;
        if (by_data) add_data_dependent(next);
      }
      if (!by_data) {
        const bool all_alike = !next.single && next.conditions.empty() && !cover_.any_taken();
        next.population = all_alike ? blocks - b : 1;
        own_.push_back(static_cast<std::uint32_t>(trace_.classes.size()));
        keep(std::move(next));
        if (all_alike) break;
        cover_.add(own_.back());
      }
      if (options_.progress) options_.progress(b + 1, blocks);
    }
    counter_.finish(trace_);
  }

  bool places_hold() const { return follower_.places_hold(); }

  /// Processor seconds at nominal speed.
  double seconds() const {
    return static_cast<double>(spent_) / Effort::kTraced + static_cast<double>(counter_.spent()) / Effort::kCounted +
           static_cast<double>(counter_.copied()) / Effort::kCopied;
  }

 private:
  /// What all of following and counting may cost, as instructions that are followed.
  std::uint64_t most_in_all() const {
    const double all = static_cast<double>(options_.counted_instructions) * Effort::kTraced / Effort::kCounted;
    return all >= 1e19 ? ~std::uint64_t{0} : std::max(most_work_, static_cast<std::uint64_t>(all));
  }
  /// Instructions that may be counted yet.
  std::uint64_t left_to_count() const {
    const double cost = static_cast<double>(spent_) * Effort::kCounted / Effort::kTraced;
    const std::uint64_t gone = counter_.spent() + static_cast<std::uint64_t>(cost);
    return options_.counted_instructions - std::min(options_.counted_instructions, gone);
  }
  /// Whether the block just followed found data at places, which other blocks may share with it.
  bool may_share() const { return may_follow_places_ && met_places_; }
  BlockClass follow(std::uint64_t b) {
    BlockFollower::Followed result = follower_.follow(b);
    spent_ += follower_.work();
    depends_on_data_ = result.depends_on_data;
    met_places_ = result.met_places;
    return std::move(result.own);
  }
  void keep(BlockClass&& c) {
    bytes_ += bytes_of(c);
    trace_.classes.push_back(std::move(c));
  }
  bool over_budget() const {
    // Without classes, for checks, every block is wanted.
    const std::uint64_t work = spent_ + cover_.work() / kTestsPerInstruction;
    return options_.block_classes && (work > most_work_ || bytes_ > options_.trace_bytes);
  }
  /// Classes whose conditions tell who belongs to them are exact, a sample is not: where the blocks met first do not
  /// stand for many, those at golden-ratio steps may, since large classes are met soon. They may take what counting
  /// blocks one by one would, as long as that seems to reach for the rest of the grid. Whether it did; if not, some
  /// blocks from all over the grid are known, which show along what they differ.
  bool find_large_classes() {
    const std::uint64_t blocks = trace_.launch.grid.count(), begun = spent_, held = bytes_, most = most_in_all();
    const double share_before = covered();
    std::uint64_t followed = 0, known = 0;
    for (std::uint64_t i = 1; known < kKnownInARow; ++i) {
      const std::uint64_t b = golden_step(i, blocks);
      if (cover_.taken(b) || cover_.find(trace_.place(trace_.block_index(b))) != Cover::kNone) {
        ++known;
        continue;
      }
      known = 0;
      BlockClass next = follow(b);
      if (depends_on_data_) return false;
      const bool alone = next.single;
      own_.push_back(static_cast<std::uint32_t>(trace_.classes.size()));
      keep(std::move(next));
      cover_.add(own_.back());
      ++followed;
      if (alone && (followed >= kWorthwhile || spent_ - begun > options_.traced_instructions / 2)) return false;
      if (followed % kWorthwhile != 0) continue;
      const double share = covered(), ahead = (1 - share) / std::max(share - share_before, 1e-9);
      const double work = static_cast<double>(spent_) + ahead * static_cast<double>(spent_ - begun);
      const double bytes = static_cast<double>(bytes_) + ahead * static_cast<double>(bytes_ - held);
      if (work > static_cast<double>(most) || bytes > static_cast<double>(options_.trace_bytes)) return false;
    }
    most_work_ = most;
    for (const std::uint32_t own : own_) trace_.classes[own].population = 0;
    return true;
  }
  /// Share of the grid's blocks that have a class, by probes at golden-ratio steps.
  double covered() {
    const std::uint64_t blocks = trace_.launch.grid.count(), probes = std::min(blocks, kProbes);
    std::uint64_t known = 0;
    for (std::uint64_t i = 0; i < probes; ++i) {
      const std::uint64_t b = probes == blocks ? i : golden_step(i, blocks);
      known += cover_.taken(b) || cover_.find(trace_.place(trace_.block_index(b))) != Cover::kNone ? 1 : 0;
    }
    return static_cast<double>(known) / static_cast<double>(probes);
  }

  /// Follows blocks of the sample for so many instructions, but at least `worthwhile` of them as far as all of the time
  /// and the memory reach.
  template <class Progress>
  void take(Sample& sample, std::uint64_t instructions, std::uint64_t worthwhile, std::uint64_t most,
            const Progress& progress) {
    const std::uint64_t until = spent_ + instructions;
    std::uint64_t held = bytes_;
    sample.follow(
        [&](std::uint64_t b) {
          BlockClass c = follow(b);
          held += bytes_of(c);
          progress();
          return c;
        },
        [&](std::uint64_t n) {
          const bool in_time = (n < worthwhile && spent_ < most_in_all()) || spent_ < until;
          return n < kSmallestSample || (n < most && in_time && held < options_.trace_bytes);
        });
  }

  /// Too many blocks are like no other. The classes of most blocks stay; of the rest a sample is followed.
  void sample_rest() {
    const std::uint64_t blocks = trace_.launch.grid.count();
    if (blocks > kMostListed)
      throw InputError("kernel " + trace_.kernel->name + ": its blocks differ, and of " + std::to_string(blocks) +
                           " there are too many to choose from",
                       "a smaller grid shows the same");
    std::vector<const BlockClass*> followed;
    for (const std::uint32_t i : own_) followed.push_back(&trace_.classes[i]);
    BlockOrder order = smoothest_order(trace_, followed);
    keep_largest(kMostTests / blocks);
    std::vector<std::uint64_t> members;
    for (std::uint64_t b = 0; b < blocks; ++b) {
      if (cover_.taken(b)) continue;
      const std::uint32_t known = cover_.find(trace_.place(trace_.block_index(b)));
      if (known == Cover::kNone)
        members.push_back(b);
      else
        ++trace_.classes[known].population;
    }
    if (!order.natural() && members.size() <= options_.trace_bytes / BlockOrder::kBytesToSort)
      order.sort(members);
    else
      order = BlockOrder(trace_);
    // What was spent so far is gone; the sample gets half a share.
    Sample sample(order, trace_, members);
    take(sample, options_.traced_instructions / 2, kWorthwhile, kLargestSample, [&] {
      if (options_.progress) options_.progress(sample.size(), members.size());
    });
    add_strata(sample, members, {}, nullptr);
  }

  /// A class whose blocks may differ by their data: a small one is followed block by block, a large one by a sample.
  /// False, and `first` as it was: they differ, but may do so by a place that several share.
  bool add_data_dependent(BlockClass& first) {
    const bool shares = may_share();
    std::vector<std::uint64_t> members = cover_.members(first);
    const std::uint64_t left = options_.traced_instructions - std::min(options_.traced_instructions, spent_);
    const std::uint64_t budget = std::min(options_.traced_instructions / kClassShare, left);
    const std::uint64_t each = std::max<std::uint64_t>(1, executed(first)), size = bytes_of(first);
    const bool all = members.size() <= kSmallestSample ||
                     (members.size() <= budget / each && bytes_ + members.size() * size < options_.trace_bytes);
    if (all) {
      const std::size_t before = trace_.classes.size();
      follow_all(trace_, cover_, std::move(first), members, [&](std::uint64_t b) { return follow(b); });
      for (std::size_t i = before; i < trace_.classes.size(); ++i) bytes_ += bytes_of(trace_.classes[i]);
      return true;
    }
    Sample sample(BlockOrder(trace_), trace_, members);
    take(sample, budget, kSmallestSample, kLargestDataSample, [] {});
    if (!sample.alike(first)) {
      if (shares) return false;
      const std::vector<BlockCondition> conditions = first.conditions;
      add_strata(sample, members, conditions, &first);
      return true;
    }
    trace_.launch.sampled_blocks += sample.size();
    trace_.launch.inferred_blocks += members.size() - sample.size();
    first.population = cover_.take(first, members);
    keep(std::move(first));
    return true;
  }

  /// Of the classes whose conditions tell who belongs to them, those with most blocks so far stay, without their
  /// populations: as many as half of the room and `most` allow.
  void keep_largest(std::uint64_t most) {
    std::vector<std::uint32_t> shared;
    for (const std::uint32_t i : own_)
      if (!trace_.classes[i].single && trace_.classes[i].population > 1) shared.push_back(i);
    std::stable_sort(shared.begin(), shared.end(), [&](std::uint32_t a, std::uint32_t b) {
      return trace_.classes[a].population > trace_.classes[b].population;
    });
    std::vector<bool> stays(trace_.classes.size(), true);
    for (const std::uint32_t i : own_) stays[i] = false;
    std::uint64_t bytes = 0;
    for (const std::uint32_t i : shared) {
      bytes += bytes_of(trace_.classes[i]);
      if (most-- == 0 || bytes > options_.trace_bytes / 2) break;
      stays[i] = true;
    }
    cover_.forget();
    std::vector<BlockClass> classes;
    std::vector<std::uint32_t> kept;
    for (std::uint32_t i = 0, own = 0; i < trace_.classes.size(); ++i) {
      const bool is_own = own < own_.size() && own_[own] == i;
      own += is_own ? 1 : 0;
      if (!stays[i]) continue;
      if (is_own) {
        trace_.classes[i].population = 0;
        kept.push_back(static_cast<std::uint32_t>(classes.size()));
      }
      classes.push_back(std::move(trace_.classes[i]));
    }
    trace_.classes = std::move(classes);
    own_ = kept;
    for (const std::uint32_t i : own_) cover_.add(i);
    bytes_ = 0;
    for (const BlockClass& c : trace_.classes) bytes_ += bytes_of(c);
  }

  void add_strata(Sample& sample, std::vector<std::uint64_t>& members, const std::vector<BlockCondition>& conditions,
                  const BlockClass* home) {
    LaunchInfo& info = trace_.launch;
    info.sampled_blocks += sample.size();
    info.inferred_blocks += members.size() - sample.size();
    info.samples_differ = true;
    const double error = sample.error_pct();
    const std::uint64_t instructions = sample.instructions();
    std::vector<BlockClass> strata = sample.strata(conditions, home);
    // Blocks are counted in the order in which they run.
    if (!std::is_sorted(members.begin(), members.end())) std::sort(members.begin(), members.end());
    cover_.take_all(members);
    if (!counter_.count(trace_, members, strata, instructions, left_to_count()) &&
        options_.emulation.warnings != nullptr) {
      char text[32];
      std::snprintf(text, sizeof text, "%.2g %%", error);
      options_.emulation.warnings->push_back("counts are estimates from a sample of the blocks, within " +
                                             std::string(text) + " at 95 % confidence; --budget or --exact counts all");
    }
    for (BlockClass& c : strata) keep(std::move(c));
  }

  static constexpr std::uint64_t kLargestDataSample = 24;
  // Classes whose conditions tell who belongs to them are exact, a sample is not: they may take so many shares.
  static constexpr std::uint64_t kExactShares = 2;
  // Blocks asked whether they have a class, so that their share is known to 2 %; so many in a row that have one say
  // that at most 1 % have none.
  static constexpr std::uint64_t kProbes = 1024, kKnownInARow = 300;
  // What classes cost that are looked through for a block: a few comparisons each.
  static constexpr std::uint64_t kTestsPerInstruction = 8, kMostTests = 100'000'000;
  static constexpr std::uint64_t kMostListed = std::uint64_t{1} << 27;

  KernelTrace& trace_;
  const TraceOptions& options_;
  TracePools pools_;
  BlockFollower follower_;
  SampleCounter counter_;
  Cover cover_;
  std::vector<std::uint32_t> own_;  ///< classes whose conditions tell exactly who belongs to them
  std::uint64_t spent_ = 0, bytes_ = 0, most_work_ = 0;
  bool depends_on_data_ = false, met_places_ = false;  ///< of the block just followed
  bool may_follow_places_;
};

void forget_classes(KernelTrace& trace, const LaunchInfo& launch) {
  trace.classes.clear();
  trace.patterns.clear();
  trace.slopes.clear();
  trace.quotients.clear();
  trace.launch = launch;
}

/// Returns the processor seconds that it took, at nominal speed.
double trace_grid(KernelTrace& trace, const LaunchSetup& setup, const TraceOptions& options, bool in_order) {
  GlobalMemory& global = *setup.state().global;
  global.forget_touches();
  // What the followed blocks write is taken back: later launches find what the whole launch leaves.
  global.keep_writes_undoable();
  const FirstBlock first = run_first_block(setup.state(), options.traced_instructions / kClassShare);
  global.undo_writes();
  const std::vector<Op>& ops = setup.decoded().ops;
  if (setup.state().cluster_extent().count() > 1)
    trace.launch.draws_unfollowed = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return draws(op); });
  const LaunchInfo launch = trace.launch;
  if (first.meeting != Meeting::None) {
    global.keep_writes_undoable();
    const bool done = trace_side_by_side(trace, setup, options);
    global.undo_writes();
    if (done) {
      trace.launch.blocks_wait |= first.meeting == Meeting::Waits;
      std::uint64_t executed = 0;
      for (const InstructionCount& count : trace.totals()) executed += count.executed;
      return static_cast<double>(executed) / Effort::kCounted;
    }
    if (first.meeting == Meeting::Waits) fail_waiting(*trace.kernel, first);
    forget_classes(trace, launch);
    trace.launch.draws_unfollowed = true;
  }
  global.forget_touches();
  global.keep_writes_undoable();
  double seconds = 0;
  for (const bool places : {true, false}) {
    GridTracer tracer(trace, setup, options, in_order, places);
    tracer.trace_all();
    seconds += tracer.seconds();
    if (tracer.places_hold()) break;
    // A later block writes what earlier ones have taken for constant.
    global.undo_writes();
    global.forget_touches();
    global.keep_writes_undoable();
    forget_classes(trace, launch);
  }
  global.undo_writes();
  return seconds;
}

double trace_in_any_order(KernelTrace& trace, const LaunchSetup& setup, const TraceOptions& options) {
  GlobalMemory& global = *setup.state().global;
  const KernelTrace begun = trace;
  try {
    return trace_grid(trace, setup, options, false);
  } catch (const StoresMatter&) {
    throw;
  } catch (...) {
    if (!global.any_order()) throw;
    // In order, the counts are right, or the first block that fails says so.
    global.undo_writes();
    trace = begun;
    return trace_grid(trace, setup, options, true);
  }
}

/// Guards that are not followed leave open which threads an instruction counts for, and who would take a slow path.
void warn_of_guards(const KernelTrace& trace, const ProgramSlice& slice, const EmulationOptions& options) {
  if (options.warnings == nullptr) return;
  const std::vector<InstructionCount> totals = trace.totals();
  std::uint64_t all = 0, taken = 0, instructions = 0, branches = 0;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    all += totals[i].enabled_lanes;
    if (slice.unfollowed[i] == GuardTaken::Followed || totals[i].executed == 0) continue;
    if (is_control(trace.kernel->instructions[i].opcode)) {
      ++branches;
    } else if (totals[i].enabled_lanes != 0) {
      taken += totals[i].enabled_lanes;
      ++instructions;
    }
  }
  if (branches != 0)
    options.warnings->push_back(std::to_string(branches) +
                                " branches to the slow path of a division, reciprocal or root hang on products of "
                                "matrices; none is taken to go there, as with operands far from the ends of their "
                                "range (--exact follows them)");
  if (taken == 0) return;
  char share[32];
  std::snprintf(share, sizeof share, "%.2g", 100.0 * static_cast<double>(taken) / static_cast<double>(all));
  options.warnings->push_back("the guards of " + std::to_string(instructions) +
                              " instructions decide nothing but which threads these count for, and hang on products of "
                              "matrices; they are taken "
                              "to hold: smsp__thread_inst_executed_pred_on and the counts by operation (..._pred_on) "
                              "may be too high, by up to " +
                              share + " % of all (--exact follows them); no other counter depends on them");
}

/// A GPU starts about a block a cycle.
constexpr std::uint64_t kMostBlocks = std::uint64_t{1} << 40;

}  // namespace

void TraceOptions::limit(const Effort& effort) {
  emulation.instruction_limit = effort.block_instructions();
  emulation.block_trace_bytes = effort.trace_bytes();
  value_instructions = effort.value_instructions();
  counted_instructions = effort.counted_instructions();
  traced_instructions = effort.traced_instructions();
  trace_bytes = effort.trace_bytes();
  every_guard = effort.exact;
}

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
    global.forget_touches();  // those of a trace whose stores were left out: here all are carried out
    spent += run_all_blocks(setup);
  }
};

namespace {

/// Whether its tensor maps may lie in global memory, where an earlier launch may have put them.
bool reads_maps_in_memory(const Kernel& kernel, const Case& item, const Launch& launch) {
  const bool copies = std::any_of(kernel.instructions.begin(), kernel.instructions.end(), [](const Instruction& in) {
    return in.opcode == Opcode::UTMALDG || in.opcode == Opcode::UTMASTG || in.opcode == Opcode::UTMAREDG ||
           in.opcode == Opcode::UTMAPF;
  });
  return copies && (std::any_of(item.buffers.begin(), item.buffers.end(),
                                [](const Buffer& b) { return std::holds_alternative<FillTensorMaps>(b.fill); }) ||
                    std::all_of(launch.arguments.begin(), launch.arguments.end(),
                                [](const Argument& a) { return a.maps.empty(); }));
}

}  // namespace

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
  if (std::uint64_t{launch.grid.x} * launch.grid.y > kMostBlocks / launch.grid.z)
    throw InputError("case " + item.id + ": a grid of " + std::to_string(launch.grid.x) + " x " +
                         std::to_string(launch.grid.y) + " x " + std::to_string(launch.grid.z) +
                         " blocks keeps a GPU busy for hours even if they do nothing",
                     "give a grid of at most " + std::to_string(kMostBlocks) + " blocks");
  trace->launch.case_id = item.id;
  trace->launch.launch_index = launch_index;
  trace->launch.grid = launch.grid;
  trace->launch.block = launch.block;
  trace->launch.cluster = launch.cluster;
  trace->launch.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  trace->kernel = kernel;
  trace->sm = program.sm;

  const std::uint64_t before = state_->spent;
  SliceOptions sliced{not_computed, options.every_guard ? Guards::Every : Guards::Known, Stores::Left};
  ProgramSlice slice = control_slice(*kernel, sliced);
  if (slice.needs_global_values || options.all_values || reads_maps_in_memory(*kernel, item, launch)) {
    run_launches_before(launch_index);
    trace->launch.inputs_incomplete = state_->incomplete;
  }
  const KernelTrace begun = *trace;
  std::vector<std::string>* warnings = options.emulation.warnings;
  const std::size_t warned = warnings != nullptr ? warnings->size() : 0;
  double seconds = static_cast<double>(state_->spent - before) / Effort::kCounted;
  const auto follow = [&] {
    const LaunchSetup setup(program, *kernel, launch, state_->global, options.emulation,
                            options.all_values ? nullptr : &slice);
    seconds += trace_in_any_order(*trace, setup, options);
    setup.warn_of_calls(options.emulation);
  };
  try {
    follow();
  } catch (const StoresMatter&) {
    state_->global.undo_writes();
    if (warnings != nullptr) warnings->resize(warned);
    *trace = begun;
    sliced.stores = Stores::Followed;
    slice = control_slice(*kernel, sliced);
    follow();
  }
  if (!options.all_values) warn_of_guards(*trace, slice, options.emulation);
  trace->launch.traced_ms = static_cast<std::uint64_t>(std::ceil(1000 * seconds));
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
