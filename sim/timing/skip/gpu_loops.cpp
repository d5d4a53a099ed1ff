#include "timing/skip/gpu_loops.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "timing/skip/skipped_accesses.h"

namespace forewarp {
namespace {

constexpr std::size_t kRefills = 4;  // times L1's lines that are looked up again: warps share some of them

/// The one that a warp is in.
const PathLoop& loop_of(const Warp& warp, const Loops& loops) {
  const PathLoops& of_path = loops[warp.cls][warp.path];
  return of_path[loop_at(of_path, warp.cursor.run())];
}

std::uint64_t instructions_ahead(const Warp& warp) { return warp.alive ? warp.cursor.ahead() : 0; }

/// Warps of a block that are in the same loop: as many iterations of as many instructions.
struct Part {
  std::uint32_t iterations = 0;
  std::uint64_t instructions = 0;
  double position = 0;
  int warps = 0;
};

void add_to_part(std::vector<Part>& parts, const PathLoop& loop, double position) {
  const auto same = [&](const Part& part) {
    return part.iterations == loop.iterations && part.instructions == loop.instructions;
  };
  auto part = std::find_if(parts.begin(), parts.end(), same);
  if (part == parts.end()) part = parts.insert(part, {loop.iterations, loop.instructions});
  part->position += position;
  ++part->warps;
}

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

/// One memory instruction of a loop, from its next execution on, over `count` iterations of `period` accesses each.
void add_skipped(const CoalescedPatterns& patterns, const ResidentBlock& block, std::uint16_t sm, const Access* first,
                 std::uint32_t period, std::uint32_t count, SkippedAccesses& skipped) {
  const AccessEffect effect = patterns.effect(first->pattern);
  if (!effect.to_lines()) return;
  const bool write = effect.request == RequestKind::Write || effect.request == RequestKind::Reduction;
  const auto step = static_cast<std::int64_t>(first[period].base - first->base);
  const std::size_t middle = count / 2;
  const bool even =
      first[count * std::size_t{period}].base == first->base + static_cast<std::uint64_t>(step * std::int64_t{count}) &&
      first[middle * period].base == first->base + static_cast<std::uint64_t>(step * static_cast<std::int64_t>(middle));
  if (even) {
    for (const LineSectors& part : patterns.lines(first->pattern))
      skipped.add(line_of(block, *first, part) * kLineBytes + first->base % kLineBytes, step, part.sectors, write, sm,
                  count, part.fetch);
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Access& access = first[i * std::size_t{period}];
    for (const LineSectors& part : patterns.lines(access.pattern))
      skipped.add_once(line_of(block, access, part), part.sectors, write, sm, i, part.fetch);
  }
}

/// A block that has been moved on.
struct Moved {
  ResidentBlock block;
  std::uint32_t iterations = 0;
};

/// Which of the next accesses of a warp, those of one iteration, look for their lines in L1.
std::vector<std::uint32_t> l1_lookups(const Warp& warp, const PathLoop& loop, const LaunchContext& context) {
  std::vector<std::uint32_t> found;
  std::uint32_t at = 0;
  warp.cursor.for_each_record(context.program.events(),
                              [&](std::uint32_t pc, const TraceEvent&, std::span<const Access> records, std::uint64_t) {
                                for (const Access& access : records) {
                                  if (at == loop.accesses) return false;
                                  const bool lines = context.patterns.effect(access.pattern).to_lines() &&
                                                     !is_box(context.trace.patterns[access.pattern]);
                                  if (lines && !context.program[pc].bypass_l1) found.push_back(at);
                                  ++at;
                                }
                                return at < loop.accesses;
                              });
  return found;
}

/// L1 holds what the last of the iterations leave in it.
void refill_l1(Sm& sm, const LaunchContext& context, const Loops& loops, std::span<const Moved> blocks) {
  struct MovedWarp {
    const Warp* warp;
    const PathLoop* loop;
    const Moved* moved;
    std::vector<std::uint32_t> lookups;  ///< of an iteration's accesses, from where the warp is
  };
  std::vector<MovedWarp> warps;
  std::size_t lines = 0;         // that one iteration of all looks up
  std::uint32_t iterations = 0;  // most
  for (const Moved& moved : blocks) {
    for (const std::uint16_t index : moved.block.warps) {
      const Warp& warp = sm.warp(index);
      if (!warp.alive) continue;
      const PathLoop& loop = loop_of(warp, loops);
      warps.push_back({&warp, &loop, &moved, l1_lookups(warp, loop, context)});
      for (const std::uint32_t a : warps.back().lookups)
        lines += context.patterns.lines((warp.cursor.records() + a)->pattern).size();
      iterations = std::max(iterations, moved.iterations);
    }
  }
  if (lines == 0) return;
  const std::size_t enough = 1 + kRefills * context.l1_bytes / kLineBytes / lines;
  iterations = static_cast<std::uint32_t>(std::min<std::size_t>(iterations, enough));
  for (std::uint32_t ago = iterations; ago > 0; --ago) {
    for (const MovedWarp& m : warps) {
      if (ago > m.moved->iterations) continue;
      for (const std::uint32_t a : m.lookups) {
        const Access& access = *(m.warp->cursor.records() - std::size_t{ago} * m.loop->accesses + a);
        const AccessEffect effect = context.patterns.effect(access.pattern);
        for (const LineSectors& part : context.patterns.lines(access.pattern))
          sm.touch_l1(line_of(m.moved->block, access, part), part, effect);
      }
    }
  }
}

/// Phases by which the barriers in shared memory go on when all warps of a block do by `count` iterations: what each
/// waits for then, less what it waits for now. None: warps say different things, or arrive where none waits.
std::optional<std::map<std::uint32_t, std::uint32_t>> phases_ahead(const Sm& sm, const ResidentBlock& block,
                                                                   const LaunchContext& context, const Loops& loops,
                                                                   std::uint32_t count) {
  using Action = PhaseRecord::Action;
  std::map<std::uint32_t, std::uint32_t> ahead;
  std::vector<std::uint32_t> changed;
  for (const std::uint16_t index : block.warps) {
    const Warp& warp = sm.warp(index);
    if (!warp.alive) continue;
    const PathLoop& loop = loop_of(warp, loops);
    bool agree = true;
    std::uint32_t at = 0;
    warp.cursor.for_each_record(context.program.events(), [&](std::uint32_t pc, const TraceEvent&,
                                                              std::span<const Access> records, std::uint64_t) {
      if (at >= loop.accesses * loop.phase_period) return false;
      const Path path = context.program[pc].path;
      const Access *now = records.data(), *later = now + std::size_t{count} * loop.accesses;
      const bool inward = effect_of(context.trace.patterns[now->pattern]).request == RequestKind::Read;
      if (path == Path::Box && inward && !context.program[pc].prefetch) {
        changed.push_back(BoxTarget::of(now[1]).barrier);
        agree &= now[1].base == later[1].base;
      }
      if (path == Path::Phase) {
        const PhaseRecord first = PhaseRecord::of(now->base), second = PhaseRecord::of(later->base);
        agree &= first.action == second.action && first.barrier == second.barrier;
        if (first.action == Action::Arrive) changed.push_back(first.barrier);
        if (first.action == Action::Await) {
          const std::uint32_t more = second.phase - first.phase;
          agree &= second.phase >= first.phase && ahead.try_emplace(first.barrier, more).first->second == more;
        }
      }
      at += static_cast<std::uint32_t>(records.size());
      return agree;
    });
    if (!agree) return std::nullopt;
  }
  for (const std::uint32_t barrier : changed)
    if (!ahead.contains(barrier)) return std::nullopt;
  return ahead;
}

}  // namespace

std::optional<std::uint64_t> loops_in_flight(const Gpu& gpu, const Loops& loops) {
  std::uint64_t behind = 0;  // loops that warps have left behind them: it only grows while the same warps are in flight
  const bool inside = for_all_warps_in_flight(gpu, [&](const Warp& warp) {
    const PathLoops& of_path = loops[warp.cls][warp.path];
    const std::size_t at = loop_at(of_path, warp.cursor.run());
    behind += at;
    return at != of_path.size();
  });
  return inside ? std::optional(behind) : std::nullopt;
}

LoopProgress loop_progress(const Gpu& gpu, const Loops& loops) {
  LoopProgress total;
  std::vector<Part> parts;
  for (std::uint16_t id = 0; id < gpu.sms(); ++id) {
    const Sm& sm = gpu.sm(id);
    const auto live = static_cast<std::uint32_t>(sm.live_warps());
    for (const ResidentBlock resident : sm.residents()) {
      BlockLoop block;
      block.linear = resident.linear;
      block.cluster = resident.cluster;
      block.sm = id;
      block.slot = resident.slot;
      block.sm_warps = live;
      int warps = 0;
      parts.clear();
      for (const std::uint16_t index : resident.warps) {
        const Warp& warp = sm.warp(index);
        if (!warp.alive) continue;
        const PathLoop& loop = loop_of(warp, loops);
        const auto run = warp.cursor.run() - loop.first_run;
        const double part = 1 - static_cast<double>(warp.cursor.run_length() - warp.cursor.behind_in_run()) /
                                    static_cast<double>(warp.cursor.run_length());
        block.cls = warp.cls;
        const double position = (run + part) / loop.period;
        block.position += position;
        add_to_part(parts, loop, position);
        block.least_remaining = std::min(block.least_remaining, loop.iterations - run / loop.period - 1);
        block.iteration_instructions += loop.instructions;
        block.phase_period = std::lcm(block.phase_period, loop.phase_period);
        ++warps;
      }
      block.position /= std::max(1, warps);
      for (const Part& part : parts) block.parts.push_back(part.position / part.warps);
      total.iteration_instructions += block.iteration_instructions;
      total.blocks.push_back(block);
    }
  }
  return total;
}

L2Traffic skip_iterations(Gpu& gpu, const LaunchContext& context, const Loops& loops, const LoopProgress& progress,
                          std::span<std::uint32_t> counts) {
  const bool clusters = context.trace.launch.cluster.count() > 0;
  if (clusters) keep_clusters_together(progress, counts);
  std::vector<std::map<std::uint32_t, std::uint32_t>> ahead(counts.size());  // phases, by barrier
  if (context.program.phases()) {
    for (std::size_t b = 0; b < counts.size(); ++b) {
      if (counts[b] == 0) continue;
      const Sm& sm = gpu.sm(progress.blocks[b].sm);
      auto phases = phases_ahead(sm, sm.resident_in(progress.blocks[b].slot), context, loops, counts[b]);
      if (phases)
        ahead[b] = std::move(*phases);
      else
        counts[b] = 0;
    }
    if (clusters) keep_clusters_together(progress, counts);
  }
  SkippedAccesses skipped(gpu.memory(), gpu.crew());
  std::vector<std::vector<Moved>> by_sm(gpu.sms());
  for (std::size_t b = 0; b < counts.size(); ++b) {
    if (counts[b] == 0) continue;
    const std::uint16_t id = progress.blocks[b].sm;
    Sm& sm = gpu.sm(id);
    const ResidentBlock block = sm.resident_in(progress.blocks[b].slot);
    for (const auto& [barrier, phases] : ahead[b]) sm.move_phases_on(block.slot, barrier, phases);
    for (const std::uint16_t index : block.warps) {
      const Warp& warp = sm.warp(index);
      if (!warp.alive) continue;
      const PathLoop& loop = loop_of(warp, loops);
      for (std::uint32_t a = 0; a < loop.accesses; ++a)
        add_skipped(context.patterns, block, id, warp.cursor.records() + a, loop.accesses, counts[b], skipped);
      sm.move_on(index, std::size_t{counts[b]} * loop.period, std::size_t{counts[b]} * loop.accesses);
    }
    by_sm[id].push_back({block, counts[b]});
  }
  for (std::uint16_t id = 0; id < gpu.sms(); ++id) {
    // In the order of their places, as one who walks over the SM finds them.
    std::sort(by_sm[id].begin(), by_sm[id].end(),
              [](const Moved& a, const Moved& b) { return a.block.slot < b.block.slot; });
    refill_l1(gpu.sm(id), context, loops, by_sm[id]);
  }
  return skipped.apply(static_cast<std::uint64_t>(context.gpu.l2.bytes) / kLineBytes);
}

std::vector<BlockProgress> blocks_in_flight(const Gpu& gpu, const KernelTrace& trace) {
  std::vector<BlockProgress> blocks;
  for (std::uint16_t id = 0; id < gpu.sms(); ++id)
    for (const ResidentBlock block : gpu.sm(id).residents())
      blocks.push_back({block.linear, id, done(gpu.sm(id), block, trace)});
  return blocks;
}

L2Traffic catch_up(Gpu& gpu, const LaunchContext& context, std::uint32_t steps, std::uint64_t most_lines) {
  L2Traffic traffic;
  for (std::uint16_t id = 0; id < gpu.sms(); ++id) {
    const Sm& sm = gpu.sm(id);
    std::uint64_t touched = 0;
    for (const ResidentBlock block : sm.residents()) {
      const auto until = std::min(static_cast<std::uint64_t>(std::ceil(done(sm, block, context.trace) * steps)),
                                  std::uint64_t{steps} - 1);
      for (const std::uint16_t index : block.warps) {
        const Warp& warp = sm.warp(index);
        const std::uint64_t all = context.trace.classes[warp.cls].paths[warp.path].instructions,
                            ahead = instructions_ahead(warp);
        if (ahead == 0) continue;
        const std::uint64_t behind = all - ahead;
        warp.cursor.for_each_record(context.program.events(), [&](std::uint32_t, const TraceEvent&,
                                                                  std::span<const Access> records, std::uint64_t at) {
          if ((behind + at) * steps >= until * all || touched >= most_lines / gpu.sms()) return false;
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
