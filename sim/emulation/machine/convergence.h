// Control flow of a warp whose lanes may be at different instructions: branches split it, convergence barriers, warp
// and block barriers hold splits back and join them (sass.md 2.5).
//
// Which side of a branch runs first is the hardware's secret; here the side that does not jump goes on and the other
// waits its turn, last split first.
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"

namespace forewarp::emulation {

enum class Next : std::uint8_t {
  Go,      ///< the current split goes on, perhaps elsewhere and with other lanes
  Switch,  ///< it waits, has ended or yields: choose another
};

struct ControlResult {
  Next next = Next::Go;
  bool diverged = false;  ///< a branch sent lanes both ways
  LaneMask held = 0;      ///< enabled lanes that a predicate operand of the branch kept
};

/// Carries out the control instruction at which split `current` of x.warp stands (its pc is x.pc, its lanes x.active).
/// `current` names the split that goes on afterwards.
ControlResult execute_control(Exec& x, const Op& op, std::size_t& current);

/// The split to run next: the youngest one that is ready. False if all wait or none is left.
bool choose_split(const Warp& warp, std::size_t& current);

/// What a warp that cannot go on is waiting for, one line a split.
std::string describe_wait(const BlockState& block, const Warp& warp);

}  // namespace forewarp::emulation
