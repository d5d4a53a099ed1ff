#include "timing/skipped_accesses.h"

#include <algorithm>

#include "base/types.h"

namespace forewarp {

std::size_t SkippedAccesses::find(const Walk& walk) const {
  std::uint64_t hash = walk.address / kLineBytes * 0x9E3779B97F4A7C15ull;
  hash ^= (static_cast<std::uint64_t>(walk.step) + (walk.write ? 1 : 0)) * 0xC2B2AE3D27D4EB4Full;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = (hash >> 20) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) return slot;
    const Walk& other = walks_[slots_[slot] - 1];
    if (other.address == walk.address && other.step == walk.step && other.write == walk.write) return slot;
  }
}

void SkippedAccesses::grow() {
  slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
  for (std::size_t w = 0; w < walks_.size(); ++w) slots_[find(walks_[w])] = static_cast<std::uint32_t>(w + 1);
}

void SkippedAccesses::add(std::uint64_t address, std::int64_t step, std::uint8_t sectors, bool write, std::uint16_t sm) {
  if (step == 0) return;  // the same line every time: L1 or L2 has it
  if (walks_.size() * 2 >= slots_.size()) grow();
  const Walk walk{address, step, sm, sectors, write};
  const std::size_t slot = find(walk);
  if (slots_[slot] != 0) {
    Walk& known = walks_[slots_[slot] - 1];
    known.sectors = static_cast<std::uint8_t>(known.sectors | sectors);
    return;
  }
  walks_.push_back(walk);
  slots_[slot] = static_cast<std::uint32_t>(walks_.size());
}

SkippedAccesses::Traffic SkippedAccesses::apply(std::uint32_t iterations, MemorySystem& memory) const {
  Traffic traffic;
  for (std::uint32_t i = 1; i <= iterations; ++i) {
    for (const Walk& walk : walks_) {
      const std::uint64_t line = (walk.address + static_cast<std::uint64_t>(walk.step * std::int64_t{i})) / kLineBytes;
      const std::uint64_t previous = (walk.address + static_cast<std::uint64_t>(walk.step * std::int64_t{i - 1})) / kLineBytes;
      if (line == previous) continue;
      // Steps shorter than a line come by every sector.
      const bool dense = walk.step < kLineBytes && walk.step > -kLineBytes;
      int written_back = 0;
      const int missed = memory.touch(line, dense ? std::uint8_t{0xf} : walk.sectors, walk.write, walk.sm, &written_back);
      if (!walk.write) traffic.dram_read_bytes += static_cast<std::uint64_t>(missed) * kSectorBytes;
      traffic.dram_write_bytes += static_cast<std::uint64_t>(written_back) * kSectorBytes;
    }
  }
  return traffic;
}

}  // namespace forewarp
