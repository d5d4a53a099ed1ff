#include <algorithm>

#include "emulation/emulation.h"
#include "emulation/run/launch_setup.h"
#include "emulation/run/side_by_side.h"

namespace forewarp {
namespace emulation {

LaunchSetup::LaunchSetup(const Program& program, const Kernel& kernel, const Launch& launch, GlobalMemory& global,
                         const EmulationOptions& options, const ProgramSlice* slice)
    : constants_(make_constants(kernel, program.sm, options.sm_count, launch, global.addresses())),
      decoded_(
          decode_kernel(kernel, constants_,
                        options.ignore_unknown_instructions ? UnknownInstruction::Ignore : UnknownInstruction::Reject,
                        slice != nullptr ? &slice->needed : nullptr)) {
  if (options.warnings != nullptr) {
    options.warnings->insert(options.warnings->end(), decoded_.warnings.begin(), decoded_.warnings.end());
  }
  state_.kernel = &decoded_;
  state_.constants = &constants_;
  outside_.names = program.outside;
  state_.outside = &outside_;
  state_.global = &global;
  state_.grid = launch.grid;
  state_.block = launch.block;
  state_.cluster = launch.cluster;
  state_.shared_bytes = shared_bytes(kernel, launch);
  state_.sm = program.sm;
  state_.instruction_limit = options.instruction_limit;
  if (slice != nullptr) apply(*slice);
}

void LaunchSetup::warn_of_calls(const EmulationOptions& options) const {
  const std::uint64_t called = outside_.called;
  for (std::size_t i = 0; options.warnings != nullptr && i < outside_.names.size(); ++i) {
    if ((called >> std::min<std::size_t>(i, 63) & 1) != 0)
      options.warnings->push_back("calls to " + outside_.names[i] +
                                  " are taken to return at once: what they cost on a GPU is missing");
  }
}

void LaunchSetup::apply(const ProgramSlice& slice) {
  for (std::size_t i = 0; i < decoded_.ops.size(); ++i) {
    Op& op = decoded_.ops[i];
    if (slice.unfollowed[i] != GuardTaken::Followed) {
      op.guard = kPredicateTrue;
      op.guard_flip = slice.unfollowed[i] == GuardTaken::Fails ? ~LaneMask{0} : 0;
    }
    if (op.kind == OpKind::TensorCopy) {
      const auto form = static_cast<CopyForm>(op.variant);
      const bool inward = form == CopyForm::TensorIn || form == CopyForm::BulkIn;
      const bool moves = form != CopyForm::TensorPrefetch && form != CopyForm::BulkPrefetch;
      op.value_needed = moves && (inward ? slice.needs_shared_values : slice.needs_global_values);
      continue;
    }
    if (slice.needed[i] != 0) continue;
    if (op.kind == OpKind::Plain) op.kind = OpKind::Skip;
    op.value_needed = false;
    op.leaves_store = slice.left[i] != 0 || (slice.leaves_stores && stores(op) && op.space != MemorySpace::Shared);
  }
}

namespace {

/// Warp instructions after which a block that runs alone does not seem to wait.
constexpr std::uint64_t kFirstBlock = 1 << 22;

/// Whether that was done.
bool run_waiting_blocks(const LaunchState& launch, std::uint64_t& executed) {
  struct Running {
    explicit Running(const LaunchState& state) : executor(state) {}
    BlockExecutor executor;
    NoObserver observer;
    std::uint64_t block = 0, began = 0;
  };
  const std::vector<Op>& ops = launch.kernel->ops;
  if (std::none_of(ops.begin(), ops.end(), [](const Op& op) { return asks(op); })) return false;
  if (launch.cluster_extent().count() > 1) return false;
  launch.global->keep_writes_undoable();
  const FirstBlock first = run_first_block(launch, kFirstBlock);
  launch.global->undo_writes();
  if (first.meeting != Meeting::Waits) return false;
  const std::uint64_t most = launch.instruction_limit != 0 ? launch.instruction_limit : ~std::uint64_t{0};
  const bool all = run_side_by_side<Running>(
      launch, most, [&](std::deque<Running>& slots) { slots.emplace_back(launch); },
      [&](const Running& one) { executed += one.executor.executed(); });
  if (!all) fail_waiting(*launch.kernel->kernel, first);
  return true;
}

}  // namespace

std::uint64_t run_all_blocks(const LaunchSetup& setup) {
  if (std::uint64_t executed = 0; run_waiting_blocks(setup.state(), executed)) return executed;
  ClusterExecutor executor(setup.state());
  NoObserver observer;
  std::uint64_t executed = 0;
  const Dim3 grid = setup.state().grid, cluster = setup.state().cluster_extent();
  for (std::uint32_t z = 0; z < grid.z; z += cluster.z) {
    for (std::uint32_t y = 0; y < grid.y; y += cluster.y) {
      for (std::uint32_t x = 0; x < grid.x; x += cluster.x) {
        executor.run(Dim3{x, y, z}, [&](std::size_t) -> NoObserver& { return observer; });
        executed += executor.executed();
      }
    }
  }
  return executed;
}

}  // namespace emulation

EmulatedCase emulate_values(const Program& program, const Case& item, const EmulationOptions& options) {
  emulation::GlobalMemory global(item, program.module_data);
  EmulatedCase result;
  for (const Launch& launch : item.launches) {
    const emulation::LaunchSetup setup(program, program.kernel(launch.kernel), launch, global, options);
    result.warp_instructions += run_all_blocks(setup);
    setup.warn_of_calls(options);
  }
  for (std::size_t i = 0; i < item.buffers.size(); ++i) result.buffers.push_back(global.buffer(i));
  return result;
}

}  // namespace forewarp
