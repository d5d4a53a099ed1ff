// A resident warp: where it is in its trace, and when and why it may not issue yet.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/types.h"
#include "timing/result.h"
#include "timing/sm/group_products.h"
#include "trace/events.h"

namespace forewarp {

inline constexpr std::uint8_t kNoBarrier = 0xff;

struct Warp {
  WarpCursor cursor;  ///< its next instruction

  // When its next instruction may issue, cause by cause.
  Cycle placed = 0;       ///< when it got its slot on the SM
  Cycle started = 0;      ///< when its sub-partition got it
  Cycle issued = 0;       ///< its last issue (or its start)
  Cycle fixed_at = 0;     ///< stall count, branch or fence of the last instruction; kNever: at a fence, or draining
  Cycle waited_at = 0;    ///< of a taken branch: when its stall count ends
  Cycle conflict = 0;     ///< cycles of that in which operand conflicts held dispatch
  Cycle held_before = 0;  ///< SubPartition::held when that was set
  Cycle released = 0;     ///< when the last barrier releases it; kNever: others are awaited
  Cycle fetched_at = 0;   ///< when the next instruction is decoded
  std::array<Cycle, kScoreboards> scoreboard_at{};   ///< when each scoreboard reaches zero, as far as known
  std::array<std::uint8_t, kScoreboards> pending{};  ///< releases whose time is not known yet
  Cycle counted_at = 0;                              ///< a scoreboard counts as few as DEPBAR asks for
  Cycle countable = 0;                               ///< when a full scoreboard counter has room
  std::uint64_t throttled = 0;    ///< cycles since it was ready already attributed to a full pipe or queue
  Cycle refused_at = kNever;      ///< first cycle in which a full queue refused it; kNever: not refused
  std::uint32_t sent_before = 0;  ///< SubPartition::memory_sent when it was refused
  Stall refused_reason = Stall::LgThrottle;
  Stall fixed_reason = Stall::Wait;
  std::uint8_t long_mask = 0;  ///< scoreboards last set by an instruction with long_wait
  std::uint8_t sub_partition = 0;
  std::uint8_t slot = 0;  ///< within its sub-partition
  std::uint16_t block_slot = 0;
  std::uint32_t stores_in_flight = 0;
  std::uint32_t queued = 0;            ///< memory instructions the shared unit has not taken yet
  std::uint16_t generation = 0;        ///< distinguishes late acknowledgements to an earlier warp of this slot
  std::uint16_t recorded = 0;          ///< BlockRecorder's row; 0: nobody watches it
  std::uint32_t cls = 0, path = 0;     ///< which class and path it replays
  std::uint32_t age = 0;               ///< of its block: order of arrival at the SM
  std::uint8_t barrier = kNoBarrier;   ///< the barrier it waits at
  std::uint32_t cluster_arrivals = 0;  ///< at the cluster's barrier
  bool waits_cluster = false;          ///< there
  Cycle remote_at = 0;                 ///< when what it has stored in other blocks' shared memory is there
  Stall released_reason = Stall::Barrier;
  // Products of its warpgroup: the last of each group that was committed, the oldest first, and the one that it waits
  // for.
  std::array<GroupProducts::Number, 8> groups{};
  std::uint32_t group_count = 0;
  GroupProducts::Number awaits_product = 0;
  bool alive = false;
  bool first = true;                                  ///< has not issued yet
  bool needs_fetch = false;                           ///< its first instruction has not been asked for
  bool wants_fence = false;                           ///< waits at a fence
  bool fences_stores = false, fences_all = false;     ///< there, for its stores; for boxes and others' stores, too
  std::uint64_t boxes_before = 0, stores_before = 0;  ///< for what its SM had sent by then
  bool draining = false;                              ///< has exited, but its memory instructions are still queued

  std::uint32_t pc() const { return cursor.pc(); }
  bool awaits_data() const {
    return std::any_of(pending.begin(), pending.end(), [](std::uint8_t count) { return count != 0; });
  }
};

}  // namespace forewarp
