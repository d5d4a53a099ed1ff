#include "timing/skip/block_cuts.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace forewarp {
namespace {

constexpr std::size_t kKept = 1'000'000;  // meetings (24 MB)

/// An instruction by which warps wait for others or others for them.
struct Meeting {
  std::uint64_t at = 0;  ///< instructions before it
  std::uint32_t pc = 0;
  const Access* records = nullptr;
};
using Meetings = std::vector<std::vector<Meeting>>;  ///< by warp

bool is_meeting(Path path) {
  return path == Path::Barrier || path == Path::BarrierArrive || path == Path::Phase || path == Path::Box ||
         path == Path::GroupMeet;
}

Meetings meetings_of(const BlockClass& cls, const TimedProgram& program) {
  std::vector<std::uint32_t> pcs;
  for (std::uint32_t pc = 0; pc < program.size(); ++pc)
    if (is_meeting(program[pc].path)) pcs.push_back(pc);
  Meetings meetings;
  for (const WarpTrace& warp : cls.warps) {
    std::vector<Meeting>& found = meetings.emplace_back();
    const Access* records = warp.accesses.data();
    std::uint64_t at = 0;
    for (const Run& run : cls.paths[warp.path].runs) {
      const std::uint32_t end = run.first + run.count;
      for (auto pc = std::lower_bound(pcs.begin(), pcs.end(), run.first); pc != pcs.end() && *pc < end; ++pc)
        found.push_back({at + *pc - run.first, *pc, records + program.events().records({run.first, *pc - run.first})});
      records += program.events().records(run);
      at += run.count;
    }
  }
  return meetings;
}

}  // namespace

/// A block whose warps pass one meeting after another, without time.
class BlockCuts::Walk {
 public:
  Walk(const LaunchContext& context, const Meetings& meetings)
      : context_(&context),
        meetings_(&meetings),
        warps_(meetings.size()),
        groups_((meetings.size() + kGroupWarps - 1) / kGroupWarps),
        live_(static_cast<int>(meetings.size())) {
    for (std::size_t w = 0; w < warps_.size(); ++w) ++groups_[w / kGroupWarps].live;
    state_.behind.resize(meetings.size());
    for (std::size_t w = 0; w < warps_.size(); ++w) leave_if_over(w);
  }

  /// Each warp goes on until it has so many instructions behind it, no fewer than before, or has to wait for others.
  void go(std::span<const std::uint64_t> targets) {
    state_.behind.assign(targets.begin(), targets.end());
    for (bool any = true; std::exchange(any, false);)
      for (std::size_t w = 0; w < warps_.size(); ++w)
        for (const Meeting* next = next_of(w); next != nullptr && pass(w, *next); next = next_of(w)) {
          ++warps_[w].passed;
          leave_if_over(w);
          any = true;
        }
  }

  /// Warps that have arrived where they wait are to do so again.
  BlockState state() const {
    BlockState now = state_;
    for (std::size_t w = 0; w < warps_.size(); ++w) {
      const Meeting* next = next_of(w);
      if (next == nullptr) continue;
      now.behind[w] = next->at;
      if (warps_[w].waits && program(*next).path == Path::Barrier)
        --now.barriers[BarrierArrival::of(*next->records).id].arrived;
    }
    return now;
  }

 private:
  struct Warp {
    std::size_t passed = 0;        ///< meetings
    bool waits = false;            ///< it has arrived at its next one
    std::uint32_t generation = 0;  ///< of that, then
  };
  struct Group {
    int live = 0, arrived = 0;
    std::uint32_t generation = 0;
  };

  const TimedInstruction& program(const Meeting& meeting) const { return context_->program[meeting.pc]; }

  /// What the warp is to pass yet.
  const Meeting* next_of(std::size_t w) const {
    const std::vector<Meeting>& of_warp = (*meetings_)[w];
    const std::size_t passed = warps_[w].passed;
    return passed < of_warp.size() && of_warp[passed].at < state_.behind[w] ? &of_warp[passed] : nullptr;
  }

  /// Nobody waits for a warp that comes to its end without meeting others.
  void leave_if_over(std::size_t w) {
    if (warps_[w].passed < (*meetings_)[w].size()) return;
    --live_;
    --groups_[w / kGroupWarps].live;
  }

  /// False: the warp has to wait.
  bool pass(std::size_t w, const Meeting& meeting) {
    const TimedInstruction& in = program(meeting);
    switch (in.path) {
      case Path::Barrier:
      case Path::BarrierArrive:
        return meet_all(warps_[w], BarrierArrival::of(*meeting.records), in.path == Path::Barrier);
      case Path::GroupMeet:
        return meet_group(warps_[w], groups_[w / kGroupWarps]);
      case Path::Phase:
        return operate(in, PhaseRecord::of(meeting.records->base));
      default:
        copy_box(meeting.records);
        return true;
    }
  }

  bool meet_all(Warp& warp, const BarrierArrival& arrival, bool waits) {
    if (!arrival.complete) return true;
    BlockBarrier& barrier = state_.barriers[arrival.id];
    std::uint32_t& generation = generations_[arrival.id];
    if (!std::exchange(warp.waits, waits)) {
      ++barrier.arrived;
      barrier.warps = static_cast<std::uint16_t>((arrival.threads + kWarpLanes - 1) / kWarpLanes);
      warp.generation = generation;
    }
    if (barrier.full(live_)) {
      barrier = {};
      ++generation;
    }
    return goes_on(warp, generation);
  }

  static bool meet_group(Warp& warp, Group& group) {
    if (!std::exchange(warp.waits, true)) {
      ++group.arrived;
      warp.generation = group.generation;
    }
    if (group.arrived >= group.live) {
      group.arrived = 0;
      ++group.generation;
    }
    return goes_on(warp, group.generation);
  }

  static bool goes_on(Warp& warp, std::uint32_t generation) {
    warp.waits = warp.waits && warp.generation == generation;
    return !warp.waits;
  }

  bool operate(const TimedInstruction& in, const PhaseRecord& record) {
    switch (record.action) {
      case PhaseRecord::Action::Init:
        state_.phases.init(record.barrier, record.arrivals);
        return true;
      case PhaseRecord::Action::Arrive:
        change(record);
        return true;
      case PhaseRecord::Action::Await:
        return in.write_barrier == kNoScoreboard || state_.phases.over(record.barrier, record.phase);
      default:
        return true;
    }
  }

  void copy_box(const Access* records) {
    const BoxTarget target = BoxTarget::of(records[1]);
    if (target.bytes == 0 || context_->patterns.effect(records->pattern).request != RequestKind::Read) return;
    PhaseRecord record;
    record.barrier = target.barrier;
    record.bytes = -static_cast<std::int32_t>(target.bytes);
    change(record);
  }
  void change(const PhaseRecord& record) {
    state_.phases.change(record, 0, [](const PhaseBarriers::Waiter&, Cycle) {});
  }

  const LaunchContext* context_;
  const Meetings* meetings_;
  BlockState state_;  ///< behind: where warps are to go
  std::vector<Warp> warps_;
  std::array<std::uint32_t, std::tuple_size_v<BlockBarriers>> generations_{};
  std::vector<Group> groups_;
  int live_;
};

/// A class's block, and how far a walk has come that others begin from.
struct BlockCuts::Way {
  Way(const LaunchContext& context, const BlockClass& cls)
      : meetings(meetings_of(cls, context.program)), walk(context, meetings) {
    for (const WarpTrace& warp : cls.warps) instructions.push_back(cls.paths[warp.path].instructions);
  }

  /// Where warps are that have such parts of their ways behind them.
  template <class Part>
  std::vector<std::uint64_t> targets(Part&& part) const {
    std::vector<std::uint64_t> targets;
    for (std::size_t w = 0; w < instructions.size(); ++w)
      targets.push_back(
          std::min(instructions[w] - 1, static_cast<std::uint64_t>(part(w) * static_cast<double>(instructions[w]))));
    return targets;
  }

  std::vector<std::uint64_t> instructions;  ///< by warp
  Meetings meetings;
  Walk walk;
  double walked = 0;
};

BlockCuts::BlockCuts(const LaunchContext& context) : context_(context) {}
BlockCuts::~BlockCuts() = default;

BlockCuts::Way& BlockCuts::way(std::uint32_t cls) {
  if (const auto known = ways_.find(cls); known != ways_.end()) return *known->second;
  if (kept_ >= kKept) ways_.clear(), kept_ = 0;
  Way& way = *ways_.emplace(cls, std::make_unique<Way>(context_, context_.trace.classes[cls])).first->second;
  for (const std::vector<Meeting>& meetings : way.meetings) kept_ += meetings.size();
  return way;
}

BlockState BlockCuts::at(std::uint32_t cls, double done, std::span<const double> leads) {
  Way& of = way(cls);
  const bool lead = leads.size() == of.instructions.size();
  const auto part = [&](std::size_t w) { return std::clamp(done + (lead ? leads[w] : 0), 0.0, 1.0); };
  double least = 1;
  for (std::size_t w = 0; w < of.instructions.size(); ++w) least = std::min(least, part(w));
  if (least < of.walked) of.walk = Walk(context_, of.meetings);
  of.walk.go(of.targets([&](std::size_t) { return least; }));
  of.walked = least;
  Walk walk = of.walk;
  walk.go(of.targets(part));
  return walk.state();
}

}  // namespace forewarp
