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
  zero_wavefronts += other.zero_wavefronts * times;
  bank_conflicts += other.bank_conflicts * times;
  bytes += other.bytes * times;
  addresses += other.addresses * times;
}

std::int64_t BlockQuotient::at(const BlockPlace& place) const {
  const BlockSlope::Wide n = numerator.exactly_over(place) + offset;
  const BlockSlope::Wide q = n / divisor;
  return static_cast<std::int64_t>(q - (n % divisor < 0 ? 1 : 0));
}

std::vector<InstructionCount>& SharedCounts::edit() {
  if (!held_)
    held_ = std::make_shared<std::vector<InstructionCount>>();
  else if (held_.use_count() > 1)
    held_ = std::make_shared<std::vector<InstructionCount>>(*held_);
  return *held_;
}

bool BlockClass::contains(const BlockDistance& distance) const {
  if (single) return distance.x == 0 && distance.y == 0 && distance.z == 0;
  for (const BlockCondition& condition : conditions) {
    const BlockSlope::Wide value = condition.coefficient.exactly_over(distance);
    if (value < condition.low || value > condition.high) return false;
    if (condition.modulus > 1 && value % condition.modulus != 0) return false;
  }
  return true;
}

BlockPlace KernelTrace::place(const Dim3& block) const {
  BlockPlace place{block.x, block.y, block.z, {}};
  for (std::size_t i = 0; i < quotients.size(); ++i) place.quotients[i] = quotients[i].at(place);
  return place;
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
  const BlockPlace to = place(block);
  for (std::size_t i = 0; i < classes.size(); ++i)
    if (classes[i].contains({place(classes[i].representative), to})) return static_cast<std::uint32_t>(i);
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
