// How many blocks fit on an SM and what limits them: the occupancy calculator's rules (launch__occupancy_limit_*).
#pragma once

#include "base/types.h"
#include "hardware/gpu_model.h"
#include "program/program.h"

namespace forewarp {

struct Occupancy {
  int limit_blocks = 0, limit_registers = 0, limit_shared = 0, limit_warps = 0;  ///< blocks per SM by each limiter
  int blocks_per_sm = 0;
  int warps_per_block = 0;
  int registers_per_thread = 0;  ///< launch__registers_per_thread
  int registers_per_warp_allocated = 0;
  std::uint32_t shared_bytes_per_block = 0;  ///< static + dynamic + reserved, rounded
  std::uint32_t shared_config_bytes = 0;     ///< carve-out chosen (launch__shared_mem_config_size)
  std::uint32_t l1_bytes = 0;                ///< what is left for L1
  double waves = 0;                          ///< launch__waves_per_multiprocessor
  double theoretical_pct = 0;                ///< sm__maximum_warps_per_active_cycle_pct
  const char* limiter = "";                  ///< "warps", "registers", "shared memory", "blocks"
};

/// InputError if no block fits.
Occupancy compute_occupancy(const GpuModel&, const Kernel&, const Dim3& grid, const Dim3& block,
                            std::uint32_t dynamic_shared_bytes);

/// Registers that a warp is given, and blocks that those of an SM allow (0: not one): they are handed out by warp, and
/// a warp's come from the file of its sub-partition.
int registers_of_warp(const OccupancySpec&, int registers_per_thread);
int blocks_by_registers(const GpuModel&, int registers_per_thread, int warps_per_block);

/// TPCs of the first GPC, its last ones, that take no block of a cluster: those that stand apart, where a cluster is
/// more than the SMs of one.
int tpcs_without_clusters(const GpuModel&, std::uint64_t cluster_blocks);

/// Blocks of a grid that run at a time. Those of a cluster share a GPC, so that what is left of one stays empty.
std::uint64_t blocks_at_once(const GpuModel&, int blocks_per_sm, std::uint64_t cluster_blocks);

}  // namespace forewarp
