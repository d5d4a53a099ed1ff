// Control flow of a warp whose lanes may be at different instructions. Branches split it; convergence barriers, warp
// barriers and block barriers hold splits back and join them.
//
// Which side of a branch the hardware runs first is not documented. Here the side that does not jump continues, and
// the other waits its turn, last split first.
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "trace/trace.h"

namespace forewarp::emulation {

enum class Next : std::uint8_t {
  Go,      ///< the current split continues, perhaps elsewhere and with other lanes
  Switch,  ///< it waits, has exited or yields: choose another
};

struct ControlResult {
  Next next = Next::Go;
  bool diverged = false;     ///< a branch sent lanes both ways
  LaneMask held = 0;         ///< enabled lanes that a predicate operand of the branch kept
  BarrierArrival arrival{};  ///< of a block barrier
  PhaseRecord phase{};       ///< of a barrier in shared memory
};

/// Executes the control instruction at which split `current` of x.warp stands (its pc is x.pc, its lanes x.active).
/// Afterwards `current` is the split that continues.
ControlResult execute_control(Exec& x, const Op& op, std::size_t& current);

/// The split to run next: the youngest ready one. False if all wait or none is left.
bool choose_split(const Warp& warp, std::size_t& current);

/// What a blocked warp waits for, one line per split.
std::string describe_wait(const BlockState& block, const Warp& warp);

}  // namespace forewarp::emulation
