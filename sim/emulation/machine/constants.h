// Constant bank 0 as the driver fills it for a launch, and the banks of the cubin.
#pragma once

#include <cstdint>
#include <vector>

#include "emulation/ops/op.h"
#include "launch/launch.h"
#include "program/program.h"

namespace forewarp::emulation {

/// InputError if the arguments do not match the kernel.
ConstantBanks make_constants(const Kernel& kernel, int sm, int sm_count, const Launch& launch,
                             const std::vector<std::uint64_t>& addresses);

/// Shared memory of a block: static plus dynamic.
std::uint32_t shared_bytes(const Kernel& kernel, const Launch& launch);

/// Bits of a float not below 1 / n, so that a block's index times it, cut to an integer, is its cluster's index (up to
/// kMostRatio).
std::uint32_t cluster_ratio(std::uint32_t n);
inline constexpr std::uint32_t kMostRatio = 1u << 22;

}  // namespace forewarp::emulation
