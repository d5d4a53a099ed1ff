// Runs the blocks of a launch side by side, as a GPU does, where they depend on each other: they draw their work from a
// counter in global memory, or wait for what another block writes there (a barrier of the grid, a lock).
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <string>
#include <vector>

#include "emulation/machine/executor.h"

namespace forewarp::emulation {

enum class Meeting : std::uint8_t {
  None,
  Draws,  ///< a warp comes to the same atomic again, whose result decides where it goes
  Waits   ///< a warp asks for the same word again and again
};

/// What the first block does when it runs alone, in at most so many warp instructions. Its writes stay.
struct FirstBlock {
  Meeting meeting = Meeting::None;
  std::uint32_t pc = 0;  ///< where
  std::string places;    ///< Waits: where its warps are
};
FirstBlock run_first_block(const LaunchState&, std::uint64_t most_instructions);

/// Blocks wait for one another, and have not ended with the budget.
[[noreturn]] void fail_waiting(const Kernel&, const FirstBlock&);

/// Blocks that fit this memory, and no more than a GPU has places for.
std::uint64_t places_side_by_side(const LaunchState&);

/// x runs fastest.
inline Dim3 block_at(const Dim3& grid, std::uint64_t linear) {
  const std::uint64_t row = linear / grid.x;
  return {static_cast<std::uint32_t>(linear % grid.x), static_cast<std::uint32_t>(row % grid.y),
          static_cast<std::uint32_t>(row / grid.y)};
}

/// A Slot holds a block that runs: `executor`, `observer`, `block` (its linear index) and `began`. `make(slots)` adds
/// one to a std::deque of them; `ended(slot)` takes what came of its block. Whichever block has executed the fewest
/// instructions since the launch began goes on to where it may meet others; another takes its place when it ends. False
/// when all have executed more than `most` together.
template <class Slot, class Make, class Ended>
bool run_side_by_side(const LaunchState& launch, std::uint64_t most, const Make& make, const Ended& ended) {
  const std::uint64_t blocks = launch.grid.count(), places = places_side_by_side(launch);
  const auto at = [](const Slot* s) { return s->began + s->executor.executed(); };
  const auto later = [&](const Slot* a, const Slot* b) { return at(a) != at(b) ? at(a) > at(b) : a->block > b->block; };
  std::priority_queue<Slot*, std::vector<Slot*>, decltype(later)> order(later);
  std::uint64_t started = 0, spent = 0;
  const auto start = [&](Slot& slot, std::uint64_t now) {
    slot.block = started++;
    slot.executor.start(block_at(launch.grid, slot.block));
    slot.began = now;
    order.push(&slot);
  };
  std::deque<Slot> slots;
  while (started < places) {
    make(slots);
    slots.back().executor.pause_at_meetings();
    start(slots.back(), 0);
  }
  while (!order.empty()) {
    Slot& slot = *order.top();
    order.pop();
    const std::uint64_t before = slot.executor.executed();
    const bool over = slot.executor.advance(slot.observer);
    spent += slot.executor.executed() - before;
    if (spent > most) return false;
    if (!over) {
      order.push(&slot);
      continue;
    }
    ended(slot);
    if (started < blocks) start(slot, at(&slot));
  }
  return true;
}

}  // namespace forewarp::emulation
