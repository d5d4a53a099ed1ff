// Tables by instruction: memory accesses, branches and stalls.
#include <algorithm>

#include "program/traits.h"
#include "report/analysis.h"

namespace forewarp {

double lost_lanes(const InstructionCount& t) {
  if (t.executed == 0) return 0;
  const auto executed = static_cast<double>(t.executed);
  const double active = static_cast<double>(t.active_lanes) / executed;
  return executed * kWarpLanes - static_cast<double>(t.enabled_lanes) -
         static_cast<double>(t.executed - t.executed_on) * active;
}

namespace report {

namespace {

std::uint64_t sum_of(const StallCycles& stalls) {
  std::uint64_t sum = 0;
  for (const std::uint64_t cycles : stalls) sum += cycles;
  return sum;
}

}  // namespace

std::string instruction_text(const Kernel& kernel, std::size_t instruction) {
  return instruction < kernel.text.size() ? kernel.text[instruction]
                                          : opcode_text(kernel.instructions[instruction].opcode);
}

std::vector<MemoryRow> memory_rows(const Inputs& in) {
  std::vector<MemoryRow> rows;
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    const InstructionCount& t = in.totals[i];
    const Instruction& instruction = in.kernel.instructions[i];
    if (t.requests == 0 && t.shared_requests == 0) continue;
    MemoryRow row;
    row.instruction = static_cast<std::uint32_t>(i);
    row.text = instruction_text(in.kernel, i);
    row.space = instruction.space;
    row.kind = instruction.memory;
    row.executed = t.executed;
    row.requests = t.requests + t.shared_requests;
    row.bytes = t.bytes;
    row.sectors = t.sectors;
    row.ideal_sectors = t.ideal_sectors;
    row.wavefronts = t.wavefronts;
    row.conflicts = t.bank_conflicts;
    rows.push_back(std::move(row));
  }
  return rows;
}

Divergence make_divergence(const Inputs& in) {
  Divergence d;
  double executed = 0, active = 0, enabled = 0, lost = 0;
  for (std::size_t i = 0; i < in.totals.size(); ++i) {
    const InstructionCount& t = in.totals[i];
    executed += static_cast<double>(t.executed);
    active += static_cast<double>(t.active_lanes);
    enabled += static_cast<double>(t.enabled_lanes);
    lost += lost_lanes(t);
    if (t.executed == 0 || !is_branch(in.kernel.instructions[i].opcode)) continue;
    BranchRow row;
    row.instruction = static_cast<std::uint32_t>(i);
    row.text = instruction_text(in.kernel, i);
    row.executed = t.executed;
    row.divergent = t.divergent;
    row.active_lanes = ratio(static_cast<double>(t.active_lanes), static_cast<double>(t.executed));
    d.executed += row.executed;
    d.divergent += row.divergent;
    d.branches.push_back(std::move(row));
  }
  d.active_lanes = ratio(active, executed);
  d.enabled_lanes = ratio(enabled, executed);
  d.idle_lane_pct = executed == 0 ? 0 : 100 - percent(enabled, executed * kWarpLanes);
  d.lost_lane_pct = percent(lost, executed * kWarpLanes);
  return d;
}

std::vector<StallShare> stall_shares(const Inputs& in) {
  const TimingCounters& c = in.timing.counters;
  std::vector<StallShare> shares;
  const auto all = static_cast<double>(sum_of(c.stalls));
  for (std::size_t r = 0; r < kStallReasons; ++r) {
    if (c.stalls[r] == 0) continue;
    const auto cycles = static_cast<double>(c.stalls[r]);
    shares.push_back(
        {static_cast<Stall>(r), ratio(cycles, static_cast<double>(c.issue_active_cycles)), percent(cycles, all)});
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.share_pct > b.share_pct; });
  return shares;
}

std::vector<HotSpot> hot_spots(const Inputs& in) {
  constexpr std::size_t kMost = 20;
  std::vector<HotSpot> spots;
  double all = 0;
  const std::size_t known = std::min(in.timing.instruction_stalls.size(), in.kernel.instructions.size());
  for (std::size_t i = 0; i < known; ++i) {
    StallCycles stalls = in.timing.instruction_stalls[i];
    const std::uint64_t cycles = sum_of(stalls);
    all += static_cast<double>(cycles);
    if (cycles == 0) continue;
    // Issuing is not a stall: name the largest other reason, if any.
    stalls[static_cast<std::size_t>(Stall::Selected)] = 0;
    const auto largest = std::max_element(stalls.begin(), stalls.end());
    HotSpot spot;
    spot.instruction = static_cast<std::uint32_t>(i);
    spot.text = instruction_text(in.kernel, i);
    spot.warp_cycles = cycles;
    spot.reason = *largest == 0 ? Stall::Selected : static_cast<Stall>(largest - stalls.begin());
    spots.push_back(std::move(spot));
  }
  for (HotSpot& spot : spots) spot.share_pct = percent(static_cast<double>(spot.warp_cycles), all);
  std::stable_sort(spots.begin(), spots.end(),
                   [](const auto& a, const auto& b) { return a.warp_cycles > b.warp_cycles; });
  if (spots.size() > kMost) spots.resize(kMost);
  return spots;
}

}  // namespace report

}  // namespace forewarp
