// What a watched block shows: which warps fetch and which compute, the barriers between them, who waits for what, and
// which of those waits binds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "timing/block_record.h"
#include "timing/result.h"

namespace forewarp {

/// What a warp is for. Where the same warps copy and compute, they are consumers.
enum class WarpRole : std::uint8_t { Producer, Consumer, Other };
const char* role_name(WarpRole);

/// A barrier in shared memory that warps wait for, or that copies complete.
struct TimelineBarrier {
  std::uint16_t block = 0;   ///< index into BlockRecord::blocks
  std::uint32_t offset = 0;  ///< in shared memory
  bool filled = false;       ///< bytes of copies end its phases
  std::uint32_t ring = 0;    ///< index into rings
  std::string name;          ///< full[2]: by what ends its phases, and its place among the block's
};

/// Barriers that the same instructions wait for in turn: the stages of a pipeline.
struct TimelineRing {
  std::uint32_t stages = 0;  ///< barriers of a block
  bool filled = false;
  std::string name;         ///< "full[0..3]"
  std::uint64_t asked = 0;  ///< waits from the second round on
  double period = 0;        ///< cycles from one of a warp's waits to its next
  /// Cycles by which a phase ends after a warp could have gone on, in the mean: of the warp that waits least, which
  /// holds the others up, and of the one that waits most.
  double late = 0, most_late = 0;
  double latency = 0;  ///< from the first copy of a phase to its end
  double bytes = 0;    ///< that end a phase
};

/// Time of the warps of a role, by state, from WarpTimeline::from on.
struct RoleTime {
  WarpRole role{};
  std::uint32_t warps = 0;
  StallCycles cycles{};
  std::uint64_t at_full = 0, at_empty = 0;  ///< of those, waits for barriers that copies end, and for others
  std::uint64_t all = 0;
};

struct WarpTimeline {
  std::shared_ptr<const BlockRecord> record;
  std::vector<WarpRole> roles;  ///< by row
  std::vector<TimelineBarrier> barriers;
  std::vector<TimelineRing> rings;
  /// From which cycle on shares are of: where consumers have gone round their stages once, else the record's start.
  Cycle from = 0;
  std::vector<RoleTime> times;  ///< roles that there are
  double tensor_pct = 0;        ///< of the tensor pipes' time that the block, or cluster, kept them busy
  double copying_pct = 0;       ///< of the time that a copy was under way
  double copied_bytes_per_cycle = 0;
  std::string sentence;  ///< the wait that binds
};

}  // namespace forewarp
