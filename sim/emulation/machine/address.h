// Computes and checks the addresses of a memory instruction, and turns them into pointers to bytes.
#pragma once

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"

namespace forewarp::emulation {

/// Fills x.address and x.space for the enabled lanes (at least one). Shared addresses become offsets into the block's
/// shared memory, local ones offsets into the thread's frame. Returns the lanes in x.space: all of them, except for a
/// generic access to several spaces. InputError for an address out of bounds or misaligned.
LaneMask compute_addresses(Exec& x, const Op& op);

/// Calls op.run for the enabled lanes, once for each region of memory they access, with x.data and x.origin set.
void move_data(Exec& x, const Op& op);

/// Notes where an access whose addresses were just computed would have stored to global memory.
void leave_store(Exec& x, const Op& op);

/// The global and the shared side of an asynchronous copy. The first fills x.address with the global addresses.
LaneMask compute_copy_source(Exec& x, const Op& op);
LaneMask compute_copy_target(Exec& x, const Op& op);

/// Local addresses as the memory system sees them: lanes interleaved word by word.
void interleave_local(const Exec& x, std::uint64_t* out);

}  // namespace forewarp::emulation
