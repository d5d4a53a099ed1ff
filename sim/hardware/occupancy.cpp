// The occupancy calculator's rules, as cuda_occupancy.h applies them and Nsight Compute reports them.
#include "hardware/occupancy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"

namespace forewarp {
namespace {

template <class Number>
Number round_up(Number n, Number unit) {
  return (n + unit - 1) / unit * unit;
}

std::string of_kernel(const Kernel& kernel) {
  return " of kernel '" + (kernel.demangled.empty() ? kernel.name : kernel.demangled) + "'";
}

/// Threads of a block, checked against what the GPU and the kernel's launch bounds allow.
int block_threads(const OccupancySpec& spec, const Kernel& kernel, const Dim3& grid, const Dim3& block) {
  if (grid.count() == 0 || block.count() == 0)
    throw InputError("grid and block" + of_kernel(kernel) + " must not have a 0");
  if (block.x > 1024 || block.y > 1024 || block.z > 64) {
    throw InputError("a block" + of_kernel(kernel) + " is " + std::to_string(block.x) + " x " +
                         std::to_string(block.y) + " x " + std::to_string(block.z),
                     "CUDA allows 1024 x 1024 x 64");
  }
  const auto most = std::min<std::uint64_t>(static_cast<std::uint64_t>(spec.max_threads_per_block), kernel.max_threads);
  if (block.count() > most) {
    throw InputError("a block" + of_kernel(kernel) + " has " + std::to_string(block.count()) + " threads, " +
                         std::to_string(most) + " are allowed",
                     most < static_cast<std::uint64_t>(spec.max_threads_per_block)
                         ? "launch fewer threads, or compile with larger __launch_bounds__"
                         : "launch fewer threads a block");
  }
  return static_cast<int>(block.count());
}

/// The smallest carve-out of at least so many bytes, or the largest of all.
std::uint32_t carveout_of(const OccupancySpec& spec, std::uint64_t bytes) {
  for (const int carveout : spec.carveouts_bytes)
    if (static_cast<std::uint64_t>(carveout) >= bytes) return static_cast<std::uint32_t>(carveout);
  return static_cast<std::uint32_t>(spec.carveouts_bytes.back());
}

/// The driver's choice when the program states no preference (validation/calibration/carveout.csv): room for twice the
/// `others` blocks that everything else allows, as long as spare_bytes hold them; from there on just for those
/// blocks, or for as many as fit at all. A single block or very large ones get no spare room. The cases that
/// do not follow: 112 and 128 threads with up to 128 bytes of their own get 32 KiB for 28 blocks instead of 64 for 32.
std::uint32_t choose_carveout(const OccupancySpec& spec, bool used, std::uint64_t per_block, int warps, int others) {
  if (!used && others > 1) {
    const int share = warps < spec.carveout_half_warps ? 1 : warps < spec.carveout_quarter_warps ? 2 : 4;
    return carveout_of(spec, static_cast<std::uint64_t>(spec.carveout_unused_bytes / share));
  }
  const bool spare = others > 1 && warps <= spec.carveout_spare_warps;
  const auto wanted = static_cast<std::uint64_t>(spare ? std::min(2 * others, spec.max_blocks) : others) * per_block;
  const auto spare_bytes = static_cast<std::uint64_t>(spec.carveout_spare_bytes);
  if (wanted <= spare_bytes) return carveout_of(spec, wanted);
  const std::uint64_t most = static_cast<std::uint64_t>(spec.carveouts_bytes.back()) / per_block;
  const std::uint64_t blocks = std::min(static_cast<std::uint64_t>(others), most);
  return carveout_of(spec, std::max(spare_bytes, blocks * per_block));
}

[[noreturn]] void fail(const Kernel& kernel, const std::string& what, const std::string& remedy) {
  throw InputError("not one block" + of_kernel(kernel) + " fits on an SM: " + what, remedy);
}

}  // namespace

int registers_of_warp(const OccupancySpec& spec, int registers_per_thread) {
  return round_up(std::max(registers_per_thread, spec.registers_per_thread_min) * kWarpLanes, spec.register_unit);
}

int blocks_by_registers(const GpuModel& gpu, int registers_per_thread, int warps_per_block) {
  const OccupancySpec& spec = gpu.occupancy;
  const int parts = gpu.issue.sub_partitions, per_warp = registers_of_warp(spec, registers_per_thread);
  if (per_warp == 0) return spec.max_blocks;
  if (static_cast<std::int64_t>(per_warp) * round_up(warps_per_block, parts) > spec.registers) return 0;
  return spec.registers / parts / per_warp * parts / warps_per_block;
}

Occupancy compute_occupancy(const GpuModel& gpu, const Kernel& kernel, const Dim3& grid, const Dim3& block,
                            std::uint32_t dynamic_shared_bytes) {
  const OccupancySpec& spec = gpu.occupancy;
  const int threads = block_threads(spec, kernel, grid, block);
  if (kernel.registers > spec.registers_per_thread_max) {
    fail(kernel,
         std::to_string(kernel.registers) + " registers a thread, " + std::to_string(spec.registers_per_thread_max) +
             " are allowed",
         "compile with a smaller -maxrregcount");
  }

  Occupancy o;
  o.warps_per_block = (threads + kWarpLanes - 1) / kWarpLanes;
  o.limit_blocks = spec.max_blocks;
  o.limit_warps = spec.max_warps / o.warps_per_block;
  o.registers_per_thread = std::max(kernel.registers, spec.registers_per_thread_min);
  o.registers_per_warp_allocated = registers_of_warp(spec, o.registers_per_thread);
  o.limit_registers = blocks_by_registers(gpu, o.registers_per_thread, o.warps_per_block);
  if (o.limit_registers == 0) {
    fail(kernel,
         std::to_string(kernel.registers) + " registers a thread x " + std::to_string(threads) + " threads exceed " +
             std::to_string(spec.registers),
         "launch fewer threads a block, or compile with a smaller -maxrregcount");
  }

  const std::uint64_t asked = std::uint64_t{kernel.static_shared_bytes} + dynamic_shared_bytes;
  if (asked > static_cast<std::uint64_t>(spec.shared_block_max_bytes)) {
    fail(kernel,
         std::to_string(asked) + " bytes of shared memory, " + std::to_string(spec.shared_block_max_bytes) +
             " are allowed",
         "use less shared memory a block");
  }
  const std::uint64_t per_block = round_up(asked + static_cast<std::uint64_t>(spec.shared_reserved_bytes),
                                           static_cast<std::uint64_t>(spec.shared_unit_bytes));
  o.shared_bytes_per_block = static_cast<std::uint32_t>(per_block);

  const int others = std::min({o.limit_blocks, o.limit_warps, o.limit_registers});
  o.shared_config_bytes = choose_carveout(spec, asked > 0, per_block, o.warps_per_block, others);
  o.l1_bytes = static_cast<std::uint32_t>(spec.unified_bytes) - o.shared_config_bytes;
  o.limit_shared = per_block == 0 ? spec.max_blocks : static_cast<int>(o.shared_config_bytes / per_block);
  if (o.limit_shared == 0)
    fail(kernel, std::to_string(per_block) + " bytes of shared memory", "use less shared memory a block");

  o.blocks_per_sm = std::min(others, o.limit_shared);
  // The carve-out is made to fit the other limits, so shared memory is the limiter only where it allows fewer blocks.
  o.limiter = o.limit_shared < others                                                           ? "shared memory"
              : o.limit_registers == others && others < std::min(o.limit_warps, o.limit_blocks) ? "registers"
              : o.limit_warps == others                                                         ? "warps"
                                                                                                : "blocks";
  o.waves = static_cast<double>(grid.count()) / (static_cast<double>(o.blocks_per_sm) * gpu.chip.sm_count);
  o.theoretical_pct = 100.0 * o.blocks_per_sm * o.warps_per_block / spec.max_warps;
  return o;
}

int tpcs_without_clusters(const GpuModel& gpu, std::uint64_t cluster_blocks) {
  if (cluster_blocks <= static_cast<std::uint64_t>(gpu.chip.sms_per_tpc)) return 0;
  return std::min(gpu.launch.tpcs_apart, gpu.chip.tpcs_per_gpc.front());
}

std::uint64_t blocks_at_once(const GpuModel& gpu, int blocks_per_sm, std::uint64_t cluster_blocks) {
  const std::uint64_t together = std::max<std::uint64_t>(1, cluster_blocks);
  int without = tpcs_without_clusters(gpu, cluster_blocks);
  std::uint64_t sum = 0;
  for (const int tpcs : gpu.chip.tpcs_per_gpc)
    sum += static_cast<std::uint64_t>((tpcs - std::exchange(without, 0)) * gpu.chip.sms_per_tpc * blocks_per_sm) /
           together * together;
  return sum;
}

}  // namespace forewarp
