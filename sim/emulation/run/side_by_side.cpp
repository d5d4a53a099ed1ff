#include "emulation/run/side_by_side.h"

#include <algorithm>

#include "base/error.h"

namespace forewarp::emulation {
namespace {

constexpr std::uint64_t kMostPlaces = 4096, kBytes = 256 << 20;
/// Turns that the other warps of its block get before a warp that asks for the same word waits for another block.
constexpr std::uint32_t kFruitless = 16;

}  // namespace

void fail_waiting(const Kernel& kernel, const FirstBlock& first) {
  std::string place = "instruction " + std::to_string(first.pc);
  if (first.pc < kernel.text.size()) place += " `" + kernel.text[first.pc] + "`";
  if (first.pc < kernel.source.size() && !kernel.source[first.pc].empty()) place += " of " + kernel.source[first.pc];
  throw InputError("kernel " + kernel.demangled + ": its blocks wait for one another at " + place +
                       ", and have not ended when the budget is spent; of block (0,0,0)" + first.places,
                   "give more seconds by --budget, or fewer blocks or steps; if more blocks wait than a GPU holds at a "
                   "time, it never ends there either");
}

std::uint64_t places_side_by_side(const LaunchState& launch) {
  const std::uint64_t warps = (launch.block.count() + kWarpLanes - 1) / kWarpLanes;
  const std::uint64_t bytes = warps * launch.kernel->rows * sizeof(Row) + launch.shared_bytes;
  return std::clamp(kBytes / bytes, std::uint64_t{1}, std::min(launch.grid.count(), kMostPlaces));
}

FirstBlock run_first_block(const LaunchState& launch, std::uint64_t most_instructions) {
  const std::vector<Op>& ops = launch.kernel->ops;
  if (launch.grid.count() < 2 || launch.cluster_extent().count() > 1 ||
      std::none_of(ops.begin(), ops.end(), [](const Op& op) { return meets(op); }))
    return {};
  BlockExecutor executor(launch);
  executor.pause_at_meetings();
  executor.start({0, 0, 0});
  NoObserver observer;
  std::vector<bool> drawn(ops.size() * static_cast<std::size_t>(executor.warps()), false);
  while (!executor.advance(observer) && executor.executed() < most_instructions) {
    if (!executor.at_meeting()) continue;
    const std::uint32_t pc = executor.meeting_pc();
    if (asks(ops[pc])) {
      if (executor.asked_before() >= kFruitless) return {Meeting::Waits, pc, executor.places()};
      continue;
    }
    const std::size_t place = executor.meeting_warp() * ops.size() + pc;
    if (drawn[place]) return {Meeting::Draws, pc, {}};
    drawn[place] = true;
  }
  return {};
}

}  // namespace forewarp::emulation
