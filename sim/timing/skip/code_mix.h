// Which code a launch executes as time passes. Stretches of time that execute alike take alike, so that a few say what
// all of them take (SimPoint).
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "timing/skip/rest_schedule.h"
#include "timing/sm/sm.h"
#include "timing/sm/timed_program.h"

namespace forewarp {

/// Passes of warp instructions through the SM by kind: those of a pipe, and of memory those that do the same to the
/// same. A pass is an issue, and what it asks of memory: a sector or a wavefront.
using CodeMix = Eigen::Array<double, 64, 1>;

/// The share of the passes of one that are of other kinds than those of the other (total variation distance).
double apart(const CodeMix&, const CodeMix&);
/// Mixes that are no further apart hardly differ: stretches of one loop are 0.001 to 0.02 apart (FINDINGS.md,
/// SimPoint).
inline constexpr double kAlike = 0.05;

/// What blocks execute on their ways.
class CodeOfBlocks {
 public:
  /// Refers to it.
  explicit CodeOfBlocks(const LaunchContext&);

  /// What has been issued so far, by instruction.
  CodeMix issued(std::span<const StallCycles>) const;
  /// What some stretches of time execute of a schedule, all as long and in the order of their starts.
  std::vector<CodeMix> executed(std::span<const RestPart>, std::span<const double> starts, double length);

 private:
  using Steps = std::vector<CodeMix>;  ///< before each step of a block's way, and in all

  const Steps& steps_of(std::uint32_t cls);

  static constexpr std::size_t kMostClasses = 1024;  ///< that are looked at; of more, each stands for some
  static constexpr std::size_t kLeastSteps = 128, kMostSteps = 4096;  ///< of a way: the more, the fewer classes (68 MB)

  const LaunchContext& context_;
  const std::size_t steps_;     ///< of a way
  std::vector<double> passes_;  ///< of an execution of each instruction, in the mean
  std::unordered_map<std::uint32_t, Steps> by_class_;
};

/// Two of some stretches, from which the others are least apart, each from the nearer one: in what they execute, and
/// where that hardly differs in time.
std::pair<std::size_t, std::size_t> two_for_all(std::span<const CodeMix>);

}  // namespace forewarp
