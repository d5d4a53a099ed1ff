// The same accesses to global memory with half the bytes, as values of half the size would make them.
#pragma once

#include <memory>

#include "trace/trace.h"

namespace forewarp::advise {

/// Offsets and bytes of loads and stores are halved; each access begins where it began. Null where nothing has two
/// bytes to halve. Atomics, copies of boxes and shared memory stay as they are.
std::shared_ptr<const KernelTrace> half_the_bytes(const KernelTrace&);

}  // namespace forewarp::advise
