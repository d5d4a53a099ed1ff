#include "emulation/constants.h"
#include "emulation/emulation.h"
#include "emulation/executor.h"

namespace forewarp {
namespace {

using namespace emulation;

std::uint64_t run_launch(const Program& program, const Launch& launch, GlobalMemory& global, const EmulationOptions& options) {
  const Kernel& kernel = program.kernel(launch.kernel);
  const ConstantBanks constants = make_constants(kernel, program.sm, launch, global.addresses());
  const DecodedKernel decoded = decode_kernel(
      kernel, constants, options.ignore_unknown_instructions ? UnknownInstruction::Ignore : UnknownInstruction::Reject);
  if (options.warnings != nullptr) {
    options.warnings->insert(options.warnings->end(), decoded.warnings.begin(), decoded.warnings.end());
  }
  LaunchState state;
  state.kernel = &decoded;
  state.constants = &constants;
  state.global = &global;
  state.grid = launch.grid;
  state.block = launch.block;
  state.cluster = launch.cluster;
  state.shared_bytes = shared_bytes(kernel, launch);
  state.sm = program.sm;
  state.instruction_limit = options.instruction_limit;
  BlockExecutor executor(state);
  NoObserver observer;
  std::uint64_t executed = 0;
  for (std::uint32_t z = 0; z < launch.grid.z; ++z) {
    for (std::uint32_t y = 0; y < launch.grid.y; ++y) {
      for (std::uint32_t x = 0; x < launch.grid.x; ++x) {
        executor.run(Dim3{x, y, z}, observer);
        executed += executor.executed();
      }
    }
  }
  return executed;
}

}  // namespace

EmulatedCase emulate_values(const Program& program, const Case& item, const EmulationOptions& options) {
  emulation::GlobalMemory global(item);
  EmulatedCase result;
  for (const Launch& launch : item.launches) result.warp_instructions += run_launch(program, launch, global, options);
  for (std::size_t i = 0; i < item.buffers.size(); ++i) result.buffers.push_back(global.buffer(i));
  return result;
}

}  // namespace forewarp
