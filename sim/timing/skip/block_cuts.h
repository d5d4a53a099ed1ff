// Places blocks in the middle of their ways.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "timing/sm/sm.h"

namespace forewarp {

class BlockCuts {
 public:
  explicit BlockCuts(const LaunchContext&);
  ~BlockCuts();

  /// The state in which a block's warps have come as near as can be to having so much of their ways behind them, with
  /// some ahead of others where `leads` has as many: none has passed what it would wait for there, a barrier of the
  /// block, a phase of one in shared memory or the other warps of its group. What copies bring has come. For launches
  /// without clusters. Quick where it is asked for blocks of a class in the order of their slowest warps.
  BlockState at(std::uint32_t cls, double done, std::span<const double> leads);

 private:
  class Walk;
  struct Way;

  Way& way(std::uint32_t cls);

  const LaunchContext& context_;
  std::unordered_map<std::uint32_t, std::unique_ptr<Way>> ways_;  ///< by class, those that were asked for last
  std::size_t kept_ = 0;
};

}  // namespace forewarp
