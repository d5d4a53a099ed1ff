#include "timing/block_footprint.h"

#include <algorithm>
#include <tuple>

namespace forewarp {

BlockFootprint::BlockFootprint(const LaunchContext& context) : context_(context) {
  std::uint64_t total = 0, blocks = 0;
  for (const BlockClass& cls : context.trace.classes) {
    std::uint64_t accesses = 0;
    for (const WarpTrace& warp : cls.warps) accesses += warp.accesses.size();
    if (accesses > kMostLines) {
      lines_per_block_ = ~std::uint64_t{0};
      return;
    }
    by_class_.push_back(gather(cls));
    total += by_class_.back().size() * cls.population;
    blocks += cls.population;
  }
  lines_per_block_ = blocks == 0 ? 0 : (total + blocks - 1) / blocks;
}

std::vector<BlockFootprint::Line> BlockFootprint::gather(const BlockClass& cls) const {
  std::vector<Line> lines;
  for (const WarpTrace& warp : cls.warps) {
    for (const Access& access : warp.accesses) {
      const AccessPattern& pattern = context_.trace.patterns[access.pattern];
      if (pattern.space == MemorySpace::Shared || pattern.lanes == 0) continue;
      const bool write = pattern.kind == MemoryKind::Store || pattern.kind == MemoryKind::Reduction;
      for (const LineSectors& part : context_.patterns.lines(access.pattern))
        lines.push_back({access.base / kLineBytes + static_cast<std::uint64_t>(std::int64_t{part.line}), access.slope, part.sectors, write});
    }
  }
  const auto key = [](const Line& l) { return std::tuple(l.slope, l.line, l.write); };
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return key(a) < key(b); });
  std::size_t kept = 0;
  for (const Line& line : lines) {
    if (kept > 0 && key(lines[kept - 1]) == key(line))
      lines[kept - 1].sectors = static_cast<std::uint8_t>(lines[kept - 1].sectors | line.sectors);
    else
      lines[kept++] = line;
  }
  lines.resize(kept);
  return lines;
}

SkippedAccesses::Traffic BlockFootprint::touch(std::uint64_t first, std::uint64_t count, MemorySystem& memory) const {
  SkippedAccesses::Traffic traffic;
  const KernelTrace& trace = context_.trace;
  const auto sms = static_cast<std::uint64_t>(context_.gpu.chip.sm_count);
  for (std::uint64_t block = first; block < first + count; ++block) {
    const std::uint32_t cls = context_.classes.class_of(block);
    const Dim3 index = trace.block_index(block), at = trace.classes[cls].representative;
    const std::int64_t dx = std::int64_t{index.x} - at.x, dy = std::int64_t{index.y} - at.y, dz = std::int64_t{index.z} - at.z;
    for (const Line& line : by_class_[cls]) {
      const BlockSlope& s = trace.slopes[line.slope];
      const auto shift = static_cast<std::uint64_t>((s.x * dx + s.y * dy + s.z * dz) / kLineBytes);
      int written_back = 0;
      const int missed = memory.touch(line.line + shift, line.sectors, line.write, static_cast<std::uint16_t>(block % sms), &written_back);
      if (!line.write) traffic.dram_read_bytes += static_cast<std::uint64_t>(missed) * kSectorBytes;
      traffic.dram_write_bytes += static_cast<std::uint64_t>(written_back) * kSectorBytes;
    }
  }
  return traffic;
}

}  // namespace forewarp
