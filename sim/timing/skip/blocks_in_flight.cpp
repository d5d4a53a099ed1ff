#include "timing/skip/blocks_in_flight.h"

#include <algorithm>
#include <cmath>

namespace forewarp {
namespace {

std::uint64_t instructions_ahead(const Warp& warp) { return warp.alive ? warp.cursor.ahead() : 0; }

/// The part of a block's way that lies behind it.
double done(const Sm& sm, const ResidentBlock& block, const KernelTrace& trace) {
  std::uint64_t ahead = 0, all = 0;
  for (const std::uint16_t index : block.warps) {
    const Warp& warp = sm.warp(index);
    all += trace.classes[warp.cls].paths[warp.path].instructions;
    ahead += instructions_ahead(warp);
  }
  return all == 0 ? 1.0 : 1 - static_cast<double>(ahead) / static_cast<double>(all);
}

std::uint64_t line_of(const ResidentBlock& block, const Access& access, const LineSectors& part) {
  return access.base / kLineBytes + static_cast<std::uint64_t>(block.shifts[access.slope] + part.line);
}

}  // namespace

std::vector<BlockProgress> blocks_in_flight(const Gpu& gpu, const KernelTrace& trace) {
  std::vector<BlockProgress> blocks;
  for (std::uint16_t id = 0; id < gpu.sms(); ++id)
    for (const ResidentBlock block : gpu.sm(id).residents())
      blocks.push_back({block.linear, id, done(gpu.sm(id), block, trace)});
  return blocks;
}

std::vector<std::vector<Leads>> leads_in_flight(const Gpu& gpu, const KernelTrace& trace) {
  std::vector<std::vector<Leads>> leads(gpu.sms());
  for (std::uint16_t id = 0; id < gpu.sms(); ++id) {
    const Sm& sm = gpu.sm(id);
    std::vector<std::pair<std::uint64_t, Leads>> of_sm;
    for (const ResidentBlock block : sm.residents()) {
      auto& [linear, of_block] = of_sm.emplace_back(block.linear, Leads{});
      const double of_all = done(sm, block, trace);
      for (const std::uint16_t index : block.warps) {
        const Warp& warp = sm.warp(index);
        const std::uint64_t all = trace.classes[warp.cls].paths[warp.path].instructions;
        of_block.push_back(1 - static_cast<double>(instructions_ahead(warp)) / static_cast<double>(all) - of_all);
      }
    }
    std::sort(of_sm.begin(), of_sm.end());
    for (auto& [linear, of_block] : of_sm) leads[id].push_back(std::move(of_block));
  }
  return leads;
}

L2Traffic catch_up(Gpu& gpu, const LaunchContext& context, std::uint64_t most_lines) {
  L2Traffic traffic;
  for (std::uint16_t id = 0; id < gpu.sms(); ++id) {
    const Sm& sm = gpu.sm(id);
    std::uint64_t touched = 0;
    for (const ResidentBlock block : sm.residents()) {
      const double until = done(sm, block, context.trace);
      for (const std::uint16_t index : block.warps) {
        const Warp& warp = sm.warp(index);
        const std::uint64_t all = context.trace.classes[warp.cls].paths[warp.path].instructions,
                            ahead = instructions_ahead(warp);
        if (ahead == 0) continue;
        const std::uint64_t behind = all - ahead;
        warp.cursor.for_each_record(context.program.events(), [&](std::uint32_t, const TraceEvent&,
                                                                  std::span<const Access> records, std::uint64_t at) {
          if (static_cast<double>(behind + at) >= until * static_cast<double>(all) || touched >= most_lines / gpu.sms())
            return false;
          for (const Access& access : records) {
            const AccessEffect effect = context.patterns.effect(access.pattern);
            if (!effect.to_lines()) continue;
            for (const LineSectors& part : context.patterns.lines(access.pattern)) {
              traffic += gpu.memory().touch(line_of(block, access, part), part.sectors, effect.request, id,
                                            part.whole_sectors(), part.bytes, part.fetch);
              ++touched;
            }
          }
          return true;
        });
      }
    }
  }
  return traffic;
}

}  // namespace forewarp
