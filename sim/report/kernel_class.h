// Classifies a measured launch by its bottleneck, from its counters. Errors are reported by class.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace forewarp {

enum class KernelClass : std::uint8_t { Memory, Compute, Latency, Divergent, Strided };
inline constexpr std::size_t kKernelClasses = 5;

const char* kernel_class_name(KernelClass);  ///< memory-bound, compute-bound, ...

/// The first rule that holds decides. Divergent: fewer than 24 of 32 lanes an instruction on average. Strided: fewer
/// than 16 of the 32 bytes of a global sector used. Memory- or compute-bound: the larger of Nsight Compute's two
/// throughputs is at least 60 % (its own rule in the SpeedOfLight section). Otherwise latency-bound. Nothing if a
/// deciding counter is missing.
std::optional<KernelClass> classify_kernel(const std::vector<std::pair<std::string, double>>& metrics);

}  // namespace forewarp
