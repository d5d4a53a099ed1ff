// Compares a trace by classes with one in which every block was emulated: for tests.
#pragma once

#include <catch2/catch.hpp>
#include <vector>

#include "trace/trace.h"

namespace forewarp::test {

/// Runs of a warp, independent of how its class stores them.
inline const std::vector<Run>& runs(const BlockClass& c, std::size_t warp) { return c.paths[c.warps[warp].path].runs; }

inline std::uint64_t shifted(const KernelTrace& trace, const Access& a, const BlockDistance& d) {
  const BlockSlope& s = trace.slopes[a.slope];
  std::uint64_t at = a.base;
  const auto move = [&at](std::int64_t slope, std::int64_t steps) { at += static_cast<std::uint64_t>(slope * steps); };
  move(s.x, d.x);
  move(s.y, d.y);
  move(s.z, d.z);
  for (std::size_t i = 0; i < s.quotients.size(); ++i) move(s.quotients[i], d.quotients[i]);
  return at;
}

inline bool same_accesses(const KernelTrace& trace, const BlockClass& c, const KernelTrace& truth,
                          const BlockClass& block, std::size_t warp) {
  const auto &a = c.warps[warp].accesses, &b = block.warps[warp].accesses;
  if (a.size() != b.size()) return false;
  const BlockDistance distance = trace.distance(c.representative, block.representative);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (trace.patterns[a[i].pattern] != truth.patterns[b[i].pattern]) return false;
    if (trace.patterns[a[i].pattern].lanes == 0) continue;
    if (shifted(trace, a[i], distance) != b[i].base) return false;
  }
  return true;
}

/// Number of blocks whose own trace differs from that of their class.
inline int wrong_blocks(const KernelTrace& trace, const KernelTrace& truth) {
  int wrong = 0;
  for (std::uint64_t b = 0; b < trace.launch.grid.count(); ++b) {
    const BlockClass& c = trace.classes[trace.class_of(b)];
    const BlockClass& block = truth.classes[b];
    REQUIRE(block.representative == trace.block_index(b));
    bool same = c.counts == block.counts && c.warps.size() == block.warps.size();
    for (std::size_t w = 0; same && w < c.warps.size(); ++w) {
      same = runs(c, w) == runs(block, w) && same_accesses(trace, c, truth, block, w);
    }
    wrong += same ? 0 : 1;
  }
  return wrong;
}

inline std::uint64_t population(const KernelTrace& trace) {
  std::uint64_t sum = 0;
  for (const BlockClass& c : trace.classes) sum += c.population;
  return sum;
}

}  // namespace forewarp::test
