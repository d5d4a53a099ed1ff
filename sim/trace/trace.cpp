#include "trace/trace.h"

#include "base/error.h"

namespace forewarp {

void InstructionCount::add(const InstructionCount& other, std::uint64_t times) {
  executed += other.executed * times;
  active_lanes += other.active_lanes * times;
  enabled_lanes += other.enabled_lanes * times;
  executed_on += other.executed_on * times;
  divergent += other.divergent * times;
  held_lanes += other.held_lanes * times;
  requests += other.requests * times;
  shared_requests += other.shared_requests * times;
  sectors += other.sectors * times;
  tag_sectors += other.tag_sectors * times;
  ideal_sectors += other.ideal_sectors * times;
  lines += other.lines * times;
  wavefronts += other.wavefronts * times;
  ideal_wavefronts += other.ideal_wavefronts * times;
  bank_conflicts += other.bank_conflicts * times;
  bytes += other.bytes * times;
  addresses += other.addresses * times;
}

bool BlockClass::contains(const Dim3& block) const {
  if (single) return block == representative;
  const BlockDistance distance(representative, block);
  for (const BlockCondition& condition : conditions) {
    const std::int64_t value = condition.coefficient.over(distance);
    if (value < condition.low || value > condition.high) return false;
    if (condition.modulus > 1 && value % condition.modulus != 0) return false;
  }
  return true;
}

Dim3 KernelTrace::block_index(std::uint64_t linear_block) const {
  const std::uint64_t row = linear_block / launch.grid.x;
  return {static_cast<std::uint32_t>(linear_block % launch.grid.x), static_cast<std::uint32_t>(row % launch.grid.y),
          static_cast<std::uint32_t>(row / launch.grid.y)};
}

std::uint32_t KernelTrace::class_of(std::uint64_t linear_block) const {
  const Dim3 block = block_index(linear_block);
  // A grid of data-dependent blocks has one class each, in block order: found without a scan.
  if (linear_block < classes.size() && classes[linear_block].single && classes[linear_block].representative == block)
    return static_cast<std::uint32_t>(linear_block);
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i].contains(block)) return static_cast<std::uint32_t>(i);
  throw InternalError("block " + std::to_string(linear_block) + " belongs to no class of the trace");
}

std::vector<InstructionCount> KernelTrace::totals() const {
  if (!launch.counted.empty()) return launch.counted;
  std::vector<InstructionCount> totals(kernel ? kernel->instructions.size() : 0);
  for (const BlockClass& c : classes) {
    if (c.counts.size() > totals.size()) totals.resize(c.counts.size());
    for (std::size_t i = 0; i < c.counts.size(); ++i) totals[i].add(c.counts[i], c.population);
  }
  return totals;
}

}  // namespace forewarp
