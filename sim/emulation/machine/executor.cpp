#include "emulation/machine/executor.h"

#include <algorithm>
#include <limits>

namespace forewarp::emulation {

BlockExecutor::BlockExecutor(const LaunchState& launch, GlobalView::Writes writes)
    : global_(*launch.global, writes),
      limit_(launch.instruction_limit != 0 ? launch.instruction_limit : std::numeric_limits<std::uint64_t>::max()) {
  const Kernel& kernel = *launch.kernel->kernel;
  state_.block = launch.block;
  state_.grid = launch.grid;
  state_.sm = launch.sm;
  state_.shared_base = kernel.shared_base;
  state_.shared.resize(launch.shared_bytes);
  state_.local_bytes = (kernel.local_bytes + kDefaultStackBytes + 15) / 16 * 16;
  state_.global = &global_;
  state_.kernel = launch.kernel;
  state_.constants = launch.constants;
  state_.outside = launch.outside;
  const auto threads = static_cast<std::uint32_t>(launch.block.count());
  const std::uint32_t warps = (threads + kWarpLanes - 1) / kWarpLanes;
  state_.rows.resize(std::size_t{warps} * launch.kernel->rows);
  state_.warps.resize(warps);
  for (std::uint32_t w = 0; w < warps; ++w) {
    Warp& warp = state_.warps[w];
    warp.index = static_cast<int>(w);
    warp.rows = state_.rows.data() + std::size_t{w} * launch.kernel->rows;
    const std::uint32_t lanes = std::min<std::uint32_t>(kWarpLanes, threads - w * kWarpLanes);
    warp.lanes = lanes == kWarpLanes ? ~LaneMask{0} : (LaneMask{1} << lanes) - 1;
  }
  state_.cluster = &alone_;
  alone_.blocks.push_back(&state_);
  x_.block = &state_;
  x_.base[1] = reinterpret_cast<std::uintptr_t>(launch.kernel->literals.data()) - kLiteralBit;
  for (std::uint32_t i = 0; i < kWarpLanes; ++i) x_.lane_bit.lane[i] = 1u << i;
}

void BlockExecutor::reset(const Dim3& block) {
  state_.index = block;
  state_.clock = 0;
  state_.barriers = {};
  state_.phase_barriers.clear();
  state_.written_by_others = false;
  // Memory and registers a real block finds are undefined; zeros make every run the same.
  std::fill(state_.rows.begin(), state_.rows.end(), Row{});
  std::fill(state_.shared.begin(), state_.shared.end(), std::uint8_t{0});
  state_.left.clear();
  for (Warp& warp : state_.warps) {
    warp.predicates.fill(0);
    warp.predicates[kPredicateTrue] = ~LaneMask{0};
    warp.predicates[kUniformPredicates + kPredicateTrue] = ~LaneMask{0};
    warp.live = warp.lanes;
    warp.barrier = {};
    warp.arrived = {};
    warp.cluster_arrived = 0;
    warp.barrier_result = 0;
    warp.asked = {};
    warp.resume.clear();
    warp.local.clear();
    warp.splits.assign(1, Split{warp.lanes, 0, Wait::Ready, 0, 0});
  }
}

void BlockExecutor::enter(Warp& warp) {
  x_.warp = &warp;
  x_.base[0] = reinterpret_cast<std::uintptr_t>(warp.rows);
  x_.predicates = warp.predicates.data();
}

void BlockExecutor::end_turn(Warp& warp, std::size_t current) {
  if (warp.splits.size() < 2) return;
  const auto begin = warp.splits.begin();
  if (++warp.turns < kPatience) {  // the last is chosen first
    std::rotate(begin + static_cast<std::ptrdiff_t>(current), begin + static_cast<std::ptrdiff_t>(current) + 1,
                warp.splits.end());
  } else {
    warp.turns = 0;
    std::rotate(begin, warp.splits.end() - 1, warp.splits.end());
  }
}

bool BlockExecutor::ended() const {
  return std::all_of(state_.warps.begin(), state_.warps.end(), [](const Warp& warp) { return warp.splits.empty(); });
}

std::string BlockExecutor::describe_waits() const {
  std::string waits;
  for (const Warp& warp : state_.warps)
    if (!warp.splits.empty()) waits += describe_wait(state_, warp);
  return waits;
}

std::string BlockExecutor::waiting_place() const {
  const auto first =
      std::find_if(state_.warps.begin(), state_.warps.end(), [](const Warp& w) { return !w.splits.empty(); });
  const Split& split = first->splits.front();
  return place_text(state_, *first, std::countr_zero(split.mask), split.pc);
}

void BlockExecutor::check_finished() const {
  if (ended()) return;
  throw InputError(waiting_place() + ": deadlock, every warp that is left waits" + describe_waits(),
                   "a barrier is not reached by all the threads it waits for");
}

void ClusterExecutor::check_finished() const {
  const auto first = std::find_if(blocks_.begin(), blocks_.end(), [](const BlockExecutor& b) { return !b.ended(); });
  if (first == blocks_.end()) return;
  std::string waits;
  for (std::size_t rank = 0; rank < blocks_.size(); ++rank)
    if (!blocks_[rank].ended())
      waits += "\n block " + std::to_string(rank) + " of the cluster:" + blocks_[rank].describe_waits();
  throw InputError(first->waiting_place() + ": deadlock, every warp that is left in the cluster waits" + waits,
                   "a barrier is not reached by all the threads it waits for");
}

std::string BlockExecutor::places() const {
  constexpr int kMostTold = 8;
  std::string text;
  int left = 0;
  for (const Warp& warp : state_.warps)
    if (!warp.splits.empty() && ++left <= kMostTold) text += describe_wait(state_, warp);
  if (left > kMostTold) text += "\n  and " + std::to_string(left - kMostTold) + " more warps";
  return text;
}

void BlockExecutor::fail_runaway(const Warp& warp, std::uint32_t pc) const {
  throw InputError(place_text(state_, warp, warp.live != 0 ? std::countr_zero(warp.live) : 0, pc) + ": warp " +
                       std::to_string(warp.index) + " of the block goes on after " + std::to_string(state_.clock) +
                       " warp instructions of the block" + places(),
                   "if the kernel needs as many, give more seconds by --budget; a loop that waits for what no other "
                   "block writes never ends");
}

void BlockExecutor::fail_end(const Warp& warp, std::uint32_t pc) const {
  throw InputError(place_text(state_, warp, std::countr_zero(x_.active), pc) + ": runs past the end of the code");
}

}  // namespace forewarp::emulation
