// A launch without the blocks of its last wave, to see what its work would take if waves were full.
#pragma once

#include <cstdint>
#include <memory>

#include "trace/trace.h"

namespace forewarp::advise {

/// The blocks of the grid that come first: as many as fill whole waves, in whole rows or planes where it has several.
/// Null where all of them do, where less than one wave is there, where a sample of blocks stands for the others, or
/// where too few would be left out or kept to tell.
std::shared_ptr<const KernelTrace> whole_waves(const KernelTrace&, std::uint64_t blocks_per_wave);

}  // namespace forewarp::advise
