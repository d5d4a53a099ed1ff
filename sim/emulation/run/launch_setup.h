// Owns everything that emulating one launch needs.
#pragma once

#include "emulation/emulation.h"
#include "emulation/machine/constants.h"
#include "emulation/machine/executor.h"
#include "program/slice.h"

namespace forewarp::emulation {

class LaunchSetup {
 public:
  /// With a slice, only what it needs is executed; the rest is counted.
  LaunchSetup(const Program& program, const Kernel& kernel, const Launch& launch, GlobalMemory& global,
              const EmulationOptions& options, const ProgramSlice* slice = nullptr);
  LaunchSetup(const LaunchSetup&) = delete;
  LaunchSetup& operator=(const LaunchSetup&) = delete;

  const LaunchState& state() const { return state_; }
  const DecodedKernel& decoded() const { return decoded_; }
  /// Once blocks have run: the functions of the CUDA runtime that they called.
  void warn_of_calls(const EmulationOptions& options) const;

 private:
  void apply(const ProgramSlice& slice);

  ConstantBanks constants_;
  DecodedKernel decoded_;
  OutsideCalls outside_;
  LaunchState state_;
};

/// Runs the blocks of a launch with values. Returns the warp instructions executed.
std::uint64_t run_all_blocks(const LaunchSetup& setup);

}  // namespace forewarp::emulation
