#include "timing/skip/skipped_accesses.h"

#include <algorithm>
#include <bit>

#include "base/types.h"

namespace forewarp {
namespace {

RequestKind kind(bool write) { return write ? RequestKind::Write : RequestKind::Read; }

}  // namespace

std::size_t SkippedAccesses::find(const Walk& walk) const {
  std::uint64_t hash = walk.address / kLineBytes * 0x9E3779B97F4A7C15ull;
  hash ^= (static_cast<std::uint64_t>(walk.step) + (walk.write ? 1 : 0) + 2 * walk.partition) * 0xC2B2AE3D27D4EB4Full;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = (hash >> 20) & mask;; slot = (slot + 1) & mask) {
    if (slots_[slot] == 0) return slot;
    const Walk& other = walks_[slots_[slot] - 1];
    if (other.address == walk.address && other.step == walk.step && other.write == walk.write &&
        other.partition == walk.partition)
      return slot;
  }
}

void SkippedAccesses::grow() {
  slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), 0);
  for (std::size_t w = 0; w < walks_.size(); ++w) slots_[find(walks_[w])] = static_cast<std::uint32_t>(w + 1);
}

void SkippedAccesses::add(std::uint64_t address, std::int64_t step, std::uint8_t sectors, bool write, std::uint16_t sm,
                          std::uint32_t iterations, std::uint8_t fetch) {
  if (step == 0 || sectors == 0) return;  // the same line every time: L1 or L2 has it
  most_iterations_ = std::max(most_iterations_, iterations);
  if (walks_.size() * 2 >= slots_.size()) grow();
  // From the first sector on, at the place in it where the access begins: short steps stay in a sector for a while.
  const int first = std::countr_zero(unsigned{sectors});
  const std::uint64_t line = address / kLineBytes * kLineBytes;
  const std::uint64_t begin = line + static_cast<std::uint64_t>(first) * kSectorBytes + address % kSectorBytes;
  const Walk walk{
      begin, step, iterations, sm, static_cast<std::uint8_t>(sectors >> first), write, memory_.partition(sm), fetch};
  const std::size_t slot = find(walk);
  if (slots_[slot] != 0) {
    Walk& known = walks_[slots_[slot] - 1];
    known.sectors = static_cast<std::uint8_t>(known.sectors | walk.sectors);
    known.fetch = std::max(known.fetch, fetch);
    known.iterations = std::max(known.iterations, iterations);
    return;
  }
  walks_.push_back(walk);
  slots_[slot] = static_cast<std::uint32_t>(walks_.size());
}

void SkippedAccesses::add_once(std::uint64_t line, std::uint8_t sectors, bool write, std::uint16_t sm,
                               std::uint32_t iteration, std::uint8_t fetch) {
  if (singles_.size() <= iteration) singles_.resize(iteration + 1);
  singles_[iteration].push_back({line, sm, sectors, write, fetch});
  most_iterations_ = std::max(most_iterations_, iteration + 1);
}

void SkippedAccesses::gather(const Walk& walk, std::uint64_t sector) {
  constexpr unsigned kSectors = kLineBytes / kSectorBytes;
  const unsigned mask = unsigned{walk.sectors} << sector % kSectors;
  const std::uint64_t line = sector / kSectors;
  if ((mask & 15u) != 0) due_.push_back({line, walk.sm, static_cast<std::uint8_t>(mask & 15u), walk.write, walk.fetch});
  if (mask >> kSectors != 0)
    due_.push_back({line + 1, walk.sm, static_cast<std::uint8_t>(mask >> kSectors), walk.write, walk.fetch});
}

/// One iteration of all walks; returns how many of them came to other sectors.
std::uint64_t SkippedAccesses::gather_walks(std::uint32_t i) {
  std::uint64_t gathered = 0;
  for (const Walk& walk : walks_) {
    if (i >= walk.iterations) continue;
    const std::uint64_t sector =
        (walk.address + static_cast<std::uint64_t>(walk.step * std::int64_t{i})) / kSectorBytes;
    const std::uint64_t previous =
        (walk.address + static_cast<std::uint64_t>(walk.step * (std::int64_t{i} - 1))) / kSectorBytes;
    if (i != 0 && sector == previous) continue;
    gather(walk, sector);
    ++gathered;
  }
  return gathered;
}

L2Traffic SkippedAccesses::touch_gathered() {
  const auto fill = [&](std::size_t first, std::size_t end, TouchLists::Part& part) {
    const std::span some = std::span(due_).subspan(first, end - first);
    part.lines.clear();
    for (const Single& single : some) part.lines.push_back(single.line);
    for (const LinePlace& place : memory_.pick(part.lines, 1, part.places)) {
      const Single& single = some[place.which];
      part.add({place, single.sm, single.sectors, kind(single.write), 0, true, true, single.fetch});
    }
  };
  const L2Traffic traffic = lists_.touch(due_.size(), due_.size(), memory_, fill).traffic;
  due_.clear();
  return traffic;
}

L2Traffic SkippedAccesses::apply(std::uint64_t l2_lines) {
  L2Traffic traffic;
  std::uint32_t all_walk = ~0u;  // iterations that every walk takes
  for (const Walk& walk : walks_) all_walk = std::min(all_walk, walk.iterations);
  SteadyTraffic steady(l2_lines, kLineBytes / sizeof(float));  // steps of a word stay in a line for so many
  for (std::uint32_t i = 0; i < most_iterations_; ++i) {
    const std::uint64_t touched = gather_walks(i);
    if (i < singles_.size()) due_.insert(due_.end(), singles_[i].begin(), singles_[i].end());
    const L2Traffic step = touch_gathered();
    traffic += step;
    if (!singles_.empty() || i + 1 >= all_walk) continue;
    steady.add(touched, step);
    if (const std::uint64_t skip = steady.may_skip(all_walk - i - 1); skip > 0) {
      traffic += steady.expected(skip);
      i += static_cast<std::uint32_t>(skip);
      all_walk = 0;
    }
  }
  return traffic;
}

}  // namespace forewarp
