// Parts of blocks' ways, cut into steps, in the order of time.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <type_traits>
#include <vector>

#include "timing/skip/rest_schedule.h"

namespace forewarp {

/// Steps into which a block's way is cut: the blocks of a wave take turns step by step.
inline constexpr std::uint32_t kBlockSteps = 128;
using BlockSteps = std::bitset<kBlockSteps>;

inline constexpr double kForEver = std::numeric_limits<double>::infinity();  ///< a time after all

/// A sum, or a member of it, at a place on a block's way; `steps`: before each step, and in the end.
template <class T, class Get = std::identity>
auto at_position(const std::vector<T>& steps, double position, Get get = {}) {
  using Held = std::remove_cvref_t<std::invoke_result_t<Get&, const T&>>;
  using Value = std::conditional_t<std::is_arithmetic_v<Held>, double, Held>;
  const auto count = static_cast<double>(steps.size() - 1);
  const double place = position * count;
  const auto step = static_cast<std::size_t>(std::clamp(place, 0.0, count - 1));
  const auto from = static_cast<Value>(std::invoke(get, steps[step])),
             to = static_cast<Value>(std::invoke(get, steps[step + 1]));
  return Value(from + std::clamp(place - static_cast<double>(step), 0.0, 1.0) * (to - from));
}

/// Steps of parts of blocks that begin from a time on and before another, in their order.
class StepsInTime {
 public:
  struct Step {
    double at = 0;
    std::size_t part = 0;
    std::uint32_t step = 0;
    bool last = false;  ///< of its part
    bool operator>(const Step& other) const { return at != other.at ? at > other.at : part > other.part; }
  };

  /// Refers to both. `wanted`: by part, of which of a way's steps there are any; none: of all.
  StepsInTime(std::span<const RestPart> parts, std::span<const BlockSteps* const> wanted, double from, double until);
  /// False: there are no more.
  bool next(Step&);

 private:
  struct Start {
    double at = 0;  ///< not after the first step
    std::size_t part = 0;
    std::uint32_t step = 0;
  };
  void push(std::size_t part, std::uint32_t step);
  /// The first step from one on that is wanted; kBlockSteps: none.
  std::uint32_t wanted_from(std::size_t part, std::uint32_t step) const;

  std::span<const RestPart> parts_;
  std::span<const BlockSteps* const> wanted_;
  double until_ = 0;
  std::vector<Start> by_start_;
  std::size_t started_ = 0;
  std::priority_queue<Step, std::vector<Step>, std::greater<>> queue_;
};

/// How much of the work of all parts is done by when.
class WorkInTime {
 public:
  /// `work`: of the whole way of a block.
  WorkInTime(std::span<const RestPart>, const std::function<double(std::uint64_t block)>& work);
  double all() const { return done_.back(); }
  double by(double time) const;
  /// The time by which so much is done.
  double when(double done) const;

 private:
  static constexpr std::size_t kBuckets = 4096;

  double bucket_ = 1;         ///< a bucket's time
  std::vector<double> done_;  ///< before each bucket
};

}  // namespace forewarp
