// Addresses of a memory instruction, their checks, and the way from an address to bytes.
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"

namespace forewarp::emulation {

/// Fills x.address and x.space for the enabled lanes (at least one). Shared addresses become offsets in the block's
/// shared memory, local ones offsets in the thread's frame. Returns the lanes that lie in x.space: all of them but for
/// a generic access that meets several spaces. InputError for an address outside, or not a multiple of its width.
LaneMask compute_addresses(Exec& x, const Op& op);

/// Calls op.run for the enabled lanes, once for each piece of memory they meet, with x.data and x.origin set.
void move_data(Exec& x, const Op& op);

/// The global and the shared side of an asynchronous copy. The first fills x.address with the global addresses.
LaneMask compute_copy_source(Exec& x, const Op& op);
LaneMask compute_copy_target(Exec& x, const Op& op);

/// Local addresses as memory sees them: lanes interleaved word by word.
void interleave_local(const Exec& x, std::uint64_t* out);

}  // namespace forewarp::emulation
