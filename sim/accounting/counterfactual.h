// The same launch without one of the things that cost it time: another trace, another GPU or another occupancy, for the
// timing model to replay.
#pragma once

#include <bitset>
#include <memory>

#include "hardware/gpu_model.h"
#include "hardware/occupancy.h"
#include "report/causes.h"
#include "trace/trace.h"

namespace forewarp::accounting {

using Removed = std::bitset<kCauses>;
inline Removed only(CauseKind kind) { return Removed{}.set(static_cast<std::size_t>(kind)); }

/// A launch on a GPU, as it is or without what was removed.
struct Scene {
  GpuModel model;
  std::shared_ptr<const KernelTrace> trace;
  Occupancy occupancy;
};

/// The launch has shared memory of its own. Without, the driver's part of it never is the limit: L1 is made smaller.
bool uses_shared(const KernelTrace&);

/// What there is to remove: Tail and Issue are what remains, never removed.
bool removable(CauseKind);

/// Whether all warps' ways may be followed one by one: what is removed instruction by instruction (Divergence, Barrier)
/// has to look at each.
bool can_be_followed(const KernelTrace&);

/// The launch without these. Of the kernel's faults:
/// - Uncoalesced: lanes of a global access lie side by side from a line boundary on, in the order of their addresses.
///   Accesses of a constant stride keep apart what was apart: the data are taken to be stored the other way round.
/// - BankConflicts: lanes of a shared access lie side by side.
/// - Atomics: the instructions issue and access nothing.
/// - LocalMemory: there are no loads and stores of it.
/// - Divergence: of straight stretches with lanes off, so many fewer execute as if the lanes of all warps were packed.
/// - Barrier: barriers and fences issue and do nothing.
/// - Registers, SharedSize, BlockSlots: so many blocks are resident as the other limits allow; and for the last, blocks
///   come and go at any rate.
/// - L2Capacity: L2 is many times as large, with no more room for data to be written back.
/// - Latency: no instruction waits for another's result.
/// Of the GPU's resources: a rate that is never the limit. Launch: it takes no time.
Scene without(const Scene&, const Removed&);

}  // namespace forewarp::accounting
