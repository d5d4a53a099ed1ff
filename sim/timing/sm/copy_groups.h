// The groups of asynchronous copies of an SM's warps. A copy belongs to the group that is open when it issues;
// LDGDEPBAR closes the group and counts a scoreboard up. Groups of a warp end in order: the scoreboard counts down some
// time after the last data of its group, and of those before it, are in shared memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace forewarp {

class CopyGroups {
 public:
  static constexpr std::uint32_t kMostGroups = 64;  ///< of a warp: more than a scoreboard counts

  /// A program without copies takes no memory.
  CopyGroups(std::size_t warps, bool used, int release_cycles)
      : groups_(used ? warps * kMostGroups : 0),
        warps_(used ? warps : 0),
        release_(static_cast<Cycle>(release_cycles)) {}

  /// A copy, or the commit itself, is issued. Returns its group, for done().
  std::uint8_t begin(std::uint16_t warp) {
    State& state = warps_[warp];
    ++state.in_flight;
    ++group(warp, state.open).in_flight;
    return static_cast<std::uint8_t>(state.open % kMostGroups);
  }

  /// Closes the open group. Of a warp that never waits (a trial of the accounting) more may be open than a scoreboard
  /// counts: the last of them then end together.
  void commit(std::uint16_t warp, std::uint8_t scoreboard) {
    State& state = warps_[warp];
    Group& closed = group(warp, state.open);
    closed.scoreboard = scoreboard;
    ++closed.commits;
    if (state.open + 1 - state.first == kMostGroups) return;
    ++state.open;
    group(warp, state.open) = {};
  }

  /// Something of a group is done at `at`; release(scoreboard, at) for each group that ends by it.
  template <class Release>
  void done(std::uint16_t warp, std::uint8_t index, Cycle at, Release&& release) {
    State& state = warps_[warp];
    --state.in_flight;
    Group& ended = groups_[warp * kMostGroups + index];
    --ended.in_flight;
    ended.at = std::max(ended.at, at);
    for (;; ++state.first) {
      Group& oldest = group(warp, state.first);
      if (oldest.commits == 0 || oldest.in_flight != 0) return;
      state.last = std::max(state.last, oldest.at + release_);
      for (std::uint32_t i = 0; i < oldest.commits; ++i) release(oldest.scoreboard, state.last);
      if (state.first != state.open) continue;
      oldest = {};  // groups that were put together in the open one
      return;
    }
  }

  /// Nothing of the warp is on its way.
  bool idle(std::uint16_t warp) const { return warps_.empty() || warps_[warp].in_flight == 0; }
  /// Another warp takes the place; nothing of the one before is on its way.
  void start(std::uint16_t warp) {
    if (warps_.empty()) return;
    warps_[warp] = {};
    group(warp, 0) = {};
  }

 private:
  struct Group {
    std::uint32_t in_flight = 0;  ///< copies, and the commit, that are not done
    std::uint32_t commits = 0;    ///< scoreboard counts that end with it: one, unless groups were put together
    std::uint8_t scoreboard = 0;
    Cycle at = 0;  ///< the last of those that are
  };
  struct State {
    std::uint32_t first = 0, open = 0;  ///< oldest group that has not ended; the one that copies join
    std::uint32_t in_flight = 0;
    Cycle last = 0;  ///< end of the last group
  };
  Group& group(std::uint16_t warp, std::uint32_t number) { return groups_[warp * kMostGroups + number % kMostGroups]; }

  std::vector<Group> groups_;
  std::vector<State> warps_;
  Cycle release_;
};

}  // namespace forewarp
