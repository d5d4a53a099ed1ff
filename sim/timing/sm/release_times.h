// When scoreboards have counted down to a number above zero (DEPBAR.LE SB0, 2): that takes the time of each release
// that is known and not over, not only of the last.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "trace/events.h"

namespace forewarp {

class ReleaseTimes {
 public:
  /// `scoreboards`: mask of those that some instruction waits for in this way.
  ReleaseTimes(std::size_t warps, unsigned scoreboards)
      : mask_(scoreboards), kept_(static_cast<std::size_t>(std::popcount(scoreboards)) * warps) {}

  bool watches(unsigned scoreboard) const { return (mask_ >> scoreboard & 1u) != 0; }

  void add(std::uint16_t warp, unsigned scoreboard, Cycle at) {
    Times& times = of(warp, scoreboard);
    times.insert(std::upper_bound(times.begin(), times.end(), at), at);
  }

  /// First cycle from `now` on at which the scoreboard counts at most `limit`, while the end of `pending` releases is
  /// not known.
  Cycle reaches(std::uint16_t warp, unsigned scoreboard, std::size_t limit, std::size_t pending, Cycle now) {
    if (pending > limit) return kNever;
    Times& times = of(warp, scoreboard);
    times.erase(times.begin(), std::upper_bound(times.begin(), times.end(), now));
    const std::size_t allowed = limit - pending;
    return times.size() <= allowed ? now : times[times.size() - allowed - 1];
  }

  void start(std::uint16_t warp) {
    for (unsigned s = 0; s < kScoreboards; ++s)
      if (watches(s)) of(warp, s).clear();
  }

 private:
  using Times = std::vector<Cycle>;  ///< ascending; keeps its room
  Times& of(std::uint16_t warp, unsigned scoreboard) {
    const auto rank = static_cast<std::size_t>(std::popcount(mask_ & ((1u << scoreboard) - 1)));
    return kept_[warp * static_cast<std::size_t>(std::popcount(mask_)) + rank];
  }

  unsigned mask_;
  std::vector<Times> kept_;
};

}  // namespace forewarp
