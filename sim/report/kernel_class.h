// What held a measured launch back, from its counters: the classes that errors are reported by.
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

/// The first that holds: divergent, when instructions run with fewer than 24 of 32 lanes on average; strided, when a
/// global sector carries fewer than 16 of its 32 bytes; memory- or compute-bound, whichever of Nsight Compute's two
/// throughputs is larger, when that is at least 60 % (its own rule in the SpeedOfLight section); else latency-bound.
/// Nothing where a counter that decides is missing.
std::optional<KernelClass> classify_kernel(const std::vector<std::pair<std::string, double>>& metrics);

}  // namespace forewarp
