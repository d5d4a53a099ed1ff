// Four words a lane by one instruction, where the code has four that access a word each.
#pragma once

#include <memory>

#include "trace/trace.h"

namespace forewarp::advise {

/// Of loads, or stores, of 4 bytes to the same space within a straight stretch of code, the first of every four
/// accesses 16 bytes a lane and the others do nothing but issue. Lanes that lie side by side still do; others access
/// what follows their own word. Null where no stretch has four.
std::shared_ptr<const KernelTrace> widened(const KernelTrace&);

}  // namespace forewarp::advise
