// Skipping iterations: the part of an SM that the steady-state engine uses.
#include <algorithm>
#include <cmath>

#include "timing/sm/sm.h"

namespace forewarp {
namespace {
constexpr std::uint32_t kRefills = 4;  // times L1's lines that are accessed again: warps share some of them
}  // namespace

int Sm::live_warps() const {
  int live = 0;
  for (const SubPartition& sub : subs_) live += sub.live;
  return live;
}

bool Sm::inside_loops(const std::vector<std::vector<PathLoop>>& loops) const {
  for (const Warp& warp : warps_) {
    if (!warp.alive) continue;
    const PathLoop& loop = loops[warp.cls][warp.path];
    const auto run = warp.cursor.run();
    if (loop.period == 0 || run < loop.first_run || run >= loop.first_run + loop.period * loop.iterations) return false;
  }
  return true;
}

void Sm::add_loop_progress(const std::vector<std::vector<PathLoop>>& loops, LoopProgress& total) const {
  const auto live = static_cast<std::uint32_t>(live_warps());
  for (std::size_t slot = 0; slot < blocks_.size(); ++slot) {
    if (!blocks_[slot].used) continue;
    BlockLoop block;
    block.linear = blocks_[slot].linear;
    block.sm = id_;
    block.slot = static_cast<std::uint16_t>(slot);
    block.sm_warps = live;
    int warps = 0;
    for (const std::uint16_t index : blocks_[slot].warps) {
      const Warp& warp = warps_[index];
      if (!warp.alive) continue;
      const PathLoop& loop = loops[warp.cls][warp.path];
      const auto run = warp.cursor.run() - loop.first_run;
      const double part = 1 - static_cast<double>(warp.cursor.run_length() - warp.cursor.behind_in_run()) /
                                  static_cast<double>(warp.cursor.run_length());
      block.cls = warp.cls;
      block.position += (run + part) / loop.period;
      block.least_remaining = std::min(block.least_remaining, loop.iterations - run / loop.period - 1);
      block.iteration_instructions += loop.instructions;
      ++warps;
    }
    block.position /= std::max(1, warps);
    total.iteration_instructions += block.iteration_instructions;
    total.blocks.push_back(block);
  }
}

std::uint64_t Sm::instructions_ahead(const Warp& warp) const { return warp.alive ? warp.cursor.ahead() : 0; }

double Sm::done(const Block& block) const {
  std::uint64_t ahead = 0, all = 0;
  for (const std::uint16_t index : block.warps) {
    all += path_of(warps_[index]).instructions;
    ahead += instructions_ahead(warps_[index]);
  }
  return all == 0 ? 1.0 : 1 - static_cast<double>(ahead) / static_cast<double>(all);
}

void Sm::add_block_progress(std::vector<BlockProgress>& out) const {
  for (const Block& block : blocks_)
    if (block.used) out.push_back({block.linear, id_, done(block)});
}

L2Traffic Sm::catch_up(std::uint32_t steps, std::uint64_t most_lines, MemorySystem& memory) const {
  L2Traffic traffic;
  std::uint64_t touched = 0;
  for (const Block& block : blocks_) {
    if (!block.used) continue;
    const auto until = std::min(static_cast<std::uint64_t>(std::ceil(done(block) * steps)), std::uint64_t{steps} - 1);
    for (const std::uint16_t index : block.warps) {
      const Warp& warp = warps_[index];
      const std::uint64_t all = path_of(warp).instructions, ahead = instructions_ahead(warp);
      if (ahead == 0) continue;
      const std::uint64_t behind = all - ahead;
      warp.cursor.for_each_record(context_.program.events(), [&](std::uint32_t, const TraceEvent&,
                                                                 std::span<const Access> records, std::uint64_t at) {
        if ((behind + at) * steps >= until * all || touched >= most_lines) return false;
        for (const Access& access : records) {
          const AccessEffect effect = context_.patterns.effect(access.pattern);
          if (!effect.to_lines()) continue;
          const std::uint64_t base = access.base / kLineBytes + static_cast<std::uint64_t>(block.shifts[access.slope]);
          for (const LineSectors& part : context_.patterns.lines(access.pattern)) {
            traffic += memory.touch(base + static_cast<std::uint64_t>(std::int64_t{part.line}), part.sectors,
                                    effect.request, id_, part.whole_sectors(), part.bytes);
            ++touched;
          }
        }
        return true;
      });
    }
  }
  return traffic;
}

/// One memory instruction of a loop, from its next execution on, over `count` iterations of `period` accesses each.
void Sm::add_skipped(const Access* first, std::uint32_t period, std::uint32_t count,
                     const std::vector<std::int64_t>& shifts, SkippedAccesses& skipped) const {
  const AccessEffect effect = context_.patterns.effect(first->pattern);
  if (!effect.to_lines()) return;
  const bool write = effect.request == RequestKind::Write || effect.request == RequestKind::Reduction;
  const auto line_of = [&](const Access& access, const LineSectors& part) {
    return access.base / kLineBytes + static_cast<std::uint64_t>(shifts[access.slope]) +
           static_cast<std::uint64_t>(std::int64_t{part.line});
  };
  const auto step = static_cast<std::int64_t>(first[period].base - first->base);
  const std::size_t middle = count / 2;
  const bool even =
      first[count * std::size_t{period}].base == first->base + static_cast<std::uint64_t>(step * std::int64_t{count}) &&
      first[middle * period].base == first->base + static_cast<std::uint64_t>(step * static_cast<std::int64_t>(middle));
  if (even) {
    for (const LineSectors& part : context_.patterns.lines(first->pattern))
      skipped.add(line_of(*first, part) * kLineBytes + first->base % kLineBytes, step, part.sectors, write, id_, count);
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Access& access = first[i * std::size_t{period}];
    for (const LineSectors& part : context_.patterns.lines(access.pattern))
      skipped.add_once(line_of(access, part), part.sectors, write, id_, i);
  }
}

void Sm::skip_iterations(const std::vector<std::vector<PathLoop>>& loops, std::uint16_t block_slot, std::uint32_t count,
                         SkippedAccesses& skipped) {
  const Block& block = blocks_[block_slot];
  for (const std::uint16_t index : block.warps) {
    Warp& warp = warps_[index];
    if (!warp.alive) continue;
    const PathLoop& loop = loops[warp.cls][warp.path];
    for (std::uint32_t a = 0; a < loop.accesses; ++a)
      add_skipped(warp.cursor.records() + a, loop.accesses, count, block.shifts, skipped);
    warp.cursor.skip(std::size_t{count} * loop.period, std::size_t{count} * loop.accesses);
  }
}

void Sm::refill_l1(const std::vector<std::vector<PathLoop>>& loops, std::span<const std::uint32_t> by_slot) {
  struct Moved {
    const Warp* warp;
    const PathLoop* loop;
    const std::vector<std::int64_t>* shifts;
    std::uint32_t iterations;
  };
  std::vector<Moved> moved;
  std::uint32_t accesses = 0, iterations = 0;  // of one iteration of all; most
  for (std::size_t slot = 0; slot < by_slot.size(); ++slot) {
    for (const std::uint16_t index : blocks_[slot].warps) {
      const Warp& warp = warps_[index];
      const PathLoop& loop = loops[warp.cls][warp.path];
      if (!warp.alive || by_slot[slot] == 0 || !loop.finds_l1 || loop.accesses == 0) continue;
      moved.push_back({&warp, &loop, &blocks_[slot].shifts, by_slot[slot]});
      accesses += loop.accesses;
      iterations = std::max(iterations, by_slot[slot]);
    }
  }
  if (moved.empty()) return;
  iterations = std::min(iterations, 1 + kRefills * context_.l1_bytes / kLineBytes / accesses);
  for (std::uint32_t ago = iterations; ago > 0; --ago) {
    for (const Moved& m : moved) {
      if (ago > m.iterations) continue;
      for (std::uint32_t a = 0; a < m.loop->accesses; ++a) {
        const Access& access = *(m.warp->cursor.records() - std::size_t{ago} * m.loop->accesses + a);
        const AccessEffect effect = context_.patterns.effect(access.pattern);
        if (!effect.to_lines()) continue;
        const std::uint64_t base = access.base / kLineBytes + static_cast<std::uint64_t>((*m.shifts)[access.slope]);
        for (const LineSectors& part : context_.patterns.lines(access.pattern))
          pipe_.touch(base + static_cast<std::uint64_t>(std::int64_t{part.line}), part, effect);
      }
    }
  }
}

}  // namespace forewarp
