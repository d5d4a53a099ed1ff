#include "timing/skip/scaled_counters.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace forewarp {

void add_scaled(TimingCounters& a, const TimingCounters& b, const TimingCounters& c, double factor) {
  const auto add = [factor](std::uint64_t& to, std::uint64_t later, std::uint64_t earlier) {
    to += static_cast<std::uint64_t>(std::llround(static_cast<double>(later - earlier) * factor));
  };
  enum class Scope : std::uint8_t { Launch, Simulated };
#define FW_SM_COUNTER(name, scope, ...) \
  if (Scope::scope == Scope::Launch) add(a.name, b.name, c.name);
#define FW_MEMORY_COUNTER(name, scope, ...) \
  if (Scope::scope == Scope::Launch) add(a.memory.name, b.memory.name, c.memory.name);
#include "timing/counters.def"
  for (std::size_t i = 0; i < kStallReasons; ++i) add(a.stalls[i], b.stalls[i], c.stalls[i]);
  for (std::size_t i = 0; i < a.pipe_cycles.size(); ++i) add(a.pipe_cycles[i], b.pipe_cycles[i], c.pipe_cycles[i]);
}

void set_traffic(MemoryCounters& c, const MemoryCounters& before, const L2Traffic& traffic) {
  const std::uint64_t more = c.slice_sectors() - before.slice_sectors();
  c.hit_sectors = before.hit_sectors + more - std::min(more, traffic.missed);
  c.miss_sectors = before.miss_sectors + traffic.fetched;
  c.fabric_hit_sectors = before.fabric_hit_sectors + traffic.fabric_hits;
  c.fabric_miss_sectors = before.fabric_miss_sectors + traffic.fabric_misses;
  c.dram_read_bytes = before.dram_read_bytes + traffic.read * kSectorBytes;
  c.dram_write_bytes = before.dram_write_bytes + traffic.written * kSectorBytes;
}

AccessSectors traced_sectors(const KernelTrace& trace, const CoalescedPatterns& patterns) {
  AccessSectors sum;
  for (const BlockClass& cls : trace.classes) {
    for (const WarpTrace& warp : cls.warps) {
      for (const Access& access : warp.accesses) {
        const AccessEffect effect = patterns.effect(access.pattern);
        if (!effect.to_lines() || effect.changes_at_l2()) continue;
        const bool box = is_box(trace.patterns[access.pattern]);
        std::uint64_t sectors = 0;
        for (const LineSectors& part : patterns.lines(access.pattern))
          sectors += static_cast<std::uint64_t>(std::popcount(unsigned{part.sectors}));
        const bool read = effect.request == RequestKind::Read;
        (box ? read ? sum.box_loads : sum.box_stores : read ? sum.loads : sum.stores) += sectors * cls.population;
      }
    }
  }
  return sum;
}

void set_sectors(TimingCounters& c, const AccessSectors& known, bool misses_known) {
  MemoryCounters& m = c.memory;
  const auto scale = [](std::uint64_t& count, double by) {
    count = static_cast<std::uint64_t>(std::llround(static_cast<double>(count) * by));
  };
  const auto ratio = [](std::uint64_t a, std::uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
  const std::uint64_t written = m.write_sectors;
  if (known.box_stores > 0) {
    // Boxes go to L2 as they are, beside what L1 passes on.
    if (written > 0) scale(m.write_requests, ratio(known.stores + known.box_stores, written));
    m.write_sectors = known.stores + known.box_stores;
  } else if (c.l1_store_sectors > 0) {
    const double by = ratio(known.stores, c.l1_store_sectors);
    scale(c.l1_store_hit_sectors, by);
    scale(m.write_requests, by);
    scale(m.write_sectors, by);
  } else {
    m.write_sectors = known.stores;
  }
  c.l1_store_sectors = known.stores;
  // Writes hit, and so does nearly all that atomics change; the rest of the hits are those of reads.
  std::uint64_t read_hits = m.hit_sectors - std::min(m.hit_sectors, written);
  const std::uint64_t changed = std::min(read_hits, m.atomic_sectors + m.reduction_sectors);
  read_hits -= changed;
  const std::uint64_t looked_up = m.read_sectors - m.merged_sectors,
                      missed = looked_up - std::min(looked_up, read_hits);
  if (c.l1_load_sectors > 0 && known.box_loads == 0) {
    const double by = ratio(known.loads, c.l1_load_sectors);
    scale(c.l1_load_hit_sectors, by);
    scale(m.read_requests, by);
    scale(m.read_sectors, by);
    scale(m.merged_requests, by);
    scale(m.merged_sectors, by);
    if (misses_known) {
      const std::uint64_t look_ups = m.read_sectors - m.merged_sectors;
      read_hits = look_ups - std::min(look_ups, missed);
    } else {
      scale(m.miss_sectors, by);
      scale(read_hits, by);
    }
  }
  c.l1_load_sectors = known.loads;
  m.hit_sectors = read_hits + changed + m.write_sectors;
}

}  // namespace forewarp
