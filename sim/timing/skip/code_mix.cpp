#include "timing/skip/code_mix.h"

#include <algorithm>
#include <limits>

#include "timing/skip/steps_in_time.h"

namespace forewarp {
namespace {

int kind_of(const TimedInstruction& in) {
  constexpr int kPipes = static_cast<int>(Pipe::Count), kSpaces = static_cast<int>(MemorySpace::Generic) + 1;
  static_assert(kPipes + static_cast<int>(MemoryKind::AsyncCopy) * kSpaces <= CodeMix::SizeAtCompileTime);
  if (in.memory == MemoryKind::None) return static_cast<int>(in.pipe);
  return kPipes + (static_cast<int>(in.memory) - 1) * kSpaces + static_cast<int>(in.space);
}

}  // namespace

double apart(const CodeMix& a, const CodeMix& b) {
  return (a / std::max(a.sum(), 1.0) - b / std::max(b.sum(), 1.0)).abs().sum() / 2;
}

CodeOfBlocks::CodeOfBlocks(const LaunchContext& context)
    : context_(context),
      steps_(std::clamp(kMostClasses * kLeastSteps / context.trace.classes.size(), kLeastSteps, kMostSteps)) {
  for (const InstructionCount& count : context.trace.totals())
    passes_.push_back(1 + static_cast<double>(count.sectors + count.wavefronts) /
                              static_cast<double>(std::max<std::uint64_t>(1, count.executed)));
}

CodeMix CodeOfBlocks::issued(std::span<const StallCycles> instructions) const {
  CodeMix mix = CodeMix::Zero();
  for (std::uint32_t pc = 0; pc < instructions.size(); ++pc)
    mix[kind_of(context_.program[pc])] +=
        passes_[pc] * static_cast<double>(instructions[pc][static_cast<std::size_t>(Stall::Selected)]);
  return mix;
}

const CodeOfBlocks::Steps& CodeOfBlocks::steps_of(std::uint32_t cls) {
  cls -= cls % static_cast<std::uint32_t>(context_.trace.classes.size() / kMostClasses + 1);
  Steps& steps = by_class_[cls];
  if (!steps.empty()) return steps;
  steps.assign(steps_ + 1, CodeMix::Zero());
  const BlockClass& of = context_.trace.classes[cls];
  std::vector<double> warps(of.paths.size(), 0);
  for (const WarpTrace& warp : of.warps) ++warps[warp.path];
  for (std::size_t p = 0; p < of.paths.size(); ++p) {
    std::uint64_t done = 0;
    for (const Run& run : of.paths[p].runs)
      for (std::uint32_t pc = run.first; pc < run.first + run.count; ++pc)
        steps[done++ * steps_ / of.paths[p].instructions + 1][kind_of(context_.program[pc])] += passes_[pc] * warps[p];
  }
  for (std::size_t s = 0; s < steps_; ++s) steps[s + 1] += steps[s];
  return steps;
}

std::vector<CodeMix> CodeOfBlocks::executed(std::span<const RestPart> parts, std::span<const double> starts,
                                            double length) {
  std::vector<CodeMix> mixes(starts.size(), CodeMix::Zero());
  for (const RestPart& part : parts) {
    auto start = std::ranges::upper_bound(starts, part.at - length);
    if (start == starts.end() || *start >= part.until) continue;
    const Steps& steps = steps_of(context_.classes.class_of(part.block));
    for (; start != starts.end() && *start < part.until; ++start)
      mixes[static_cast<std::size_t>(start - starts.begin())] +=
          at_position(steps, part.position(*start + length)) - at_position(steps, part.position(*start));
  }
  return mixes;
}

std::pair<std::size_t, std::size_t> two_for_all(std::span<const CodeMix> mixes) {
  const auto n = static_cast<Eigen::Index>(mixes.size());
  Eigen::ArrayXXd far(n, n);
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j <= i; ++j)
      far(i, j) = far(j, i) = apart(mixes[static_cast<std::size_t>(i)], mixes[static_cast<std::size_t>(j)]) +
                              kAlike * static_cast<double>(i - j) / static_cast<double>(n);
  std::pair<std::size_t, std::size_t> best{0, 0};
  double least = std::numeric_limits<double>::infinity();
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = i + 1; j < n; ++j)
      if (const double sum = far.col(i).min(far.col(j)).sum(); sum < least)
        least = sum, best = {static_cast<std::size_t>(i), static_cast<std::size_t>(j)};
  return best;
}

}  // namespace forewarp
