#include "timing/skip/loop_bodies.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "timing/skip/gpu_loops.h"

namespace forewarp {

double unlikeness(std::span<const double> one, std::span<const double> other) {
  const double all = std::accumulate(one.begin(), one.end(), 0.0);
  const double others = std::accumulate(other.begin(), other.end(), 0.0);
  if (all <= 0 || others <= 0) return 1;
  double distance = 0;
  for (std::size_t i = 0; i < one.size(); ++i) distance += std::abs(one[i] / all - other[i] / others);
  return distance / 2;
}

BodyVector between(std::span<const double> earlier, std::span<const double> later) {
  BodyVector difference(later.begin(), later.end());
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= earlier[i];
  return difference;
}

std::size_t most_alike(std::span<const BodyVector> left_then, std::span<const double> left_now) {
  std::size_t best = 0;
  double least = 2;
  for (std::size_t i = 0; i < left_then.size(); ++i) {
    const double here = unlikeness(between(left_now, left_then[i]), left_now);
    if (here >= least) continue;
    least = here;
    best = i;
  }
  return best;
}

/// What a warp that has executed `done` of `all` instructions of its way has before it.
void LoopBodies::add_way(const PathLoops& loops, std::uint64_t all, std::uint64_t done, double times, BodyVector& sum) {
  for (const PathLoop& loop : loops) {
    const std::uint64_t end = loop.instructions_before + loop.iterations * loop.instructions;
    if (done >= end) continue;
    sum[loop.body] += times * static_cast<double>(end - done);
    done = end;
  }
  sum[loops.empty() ? sum.size() - 1 : after(loops.back().body, sum)] += times * static_cast<double>(all - done);
}

LoopBodies::LoopBodies(const LaunchContext& context, const Loops& loops) : context_(context), loops_(loops) {
  std::uint32_t bodies = 0;
  for (const std::vector<PathLoops>& paths : loops)
    for (const PathLoops& of_path : paths)
      for (const PathLoop& loop : of_path) bodies = std::max(bodies, loop.body + 1);
  all_.resize(2 * bodies + 1);
  for (std::size_t c = 0; c < loops.size(); ++c) {
    const BlockClass& cls = context.trace.classes[c];
    add_block(cls, c, static_cast<double>(cls.population), all_);
  }
  waiting_ = all_;
}

void LoopBodies::add_block(const BlockClass& cls, std::size_t index, double times, BodyVector& sum) const {
  for (const WarpTrace& warp : cls.warps)
    add_way(loops_[index][warp.path], cls.paths[warp.path].instructions, 0, times, sum);
}

BodyVector LoopBodies::left(const Gpu& gpu) {
  for (; begun_ < gpu.dispatcher().dispatched(); ++begun_) {
    const std::size_t cls = context_.classes.class_of(begun_);
    add_block(context_.trace.classes[cls], cls, -1, waiting_);
  }
  BodyVector sum = waiting_;
  for_all_warps_in_flight(gpu, [&](const Warp& warp) {
    const std::uint64_t all = context_.trace.classes[warp.cls].paths[warp.path].instructions;
    add_way(loops_[warp.cls][warp.path], all, all - warp.cursor.ahead(), 1, sum);
    return true;
  });
  return sum;
}

double LoopBodies::share_in_flight(const Gpu& gpu) const {
  std::vector<bool> in_flight(all_.size());
  for_all_warps_in_flight(gpu, [&](const Warp& warp) {
    const PathLoops& of_path = loops_[warp.cls][warp.path];
    const std::size_t at = loop_at(of_path, warp.cursor.run());
    in_flight[of_path.empty() ? all_.size() - 1 : of_path[std::min(at, of_path.size() - 1)].body] = true;
    return true;
  });
  double share = 0;
  const std::size_t without = all_.size() - 1;
  for (std::size_t body = 0; body < without / 2; ++body)
    if (in_flight[body]) share += all_[body] + all_[after(body, all_)];
  if (in_flight[without]) share += all_[without];
  return share / std::accumulate(all_.begin(), all_.end(), 0.0);
}

}  // namespace forewarp
