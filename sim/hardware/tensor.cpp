#include "hardware/tensor.h"

#include <algorithm>

#include "base/types.h"

namespace forewarp {
namespace {

int round_up(int a, int b) { return (a + b - 1) / b; }

/// Cycles of the multipliers.
int arithmetic_cycles(const TensorSpec& spec, const MatrixWork& work) {
  const int products = work.warp_rows() * work.columns * work.depth;
  if (work.type == MatrixType::Double) return round_up(products, spec.fp64_products);
  return round_up(products * factor_bits(work.type) / (work.sparse ? 2 : 1), spec.product_bits);
}

/// Cycles in which the operands of a warp come: each pair of registers of the first factor takes its time beside those
/// of the second and the sums.
int fetch_cycles(const TensorSpec& spec, const MatrixWork& work) {
  if (work.of_group()) return 0;
  const int registers = work.rows * work.depth * factor_bits(work.type) / (work.sparse ? 2 : 1) / (32 * kWarpLanes);
  return spec.fetch_cycles + spec.fetch_pair_cycles * round_up(registers, 2) +
         (work.sparse ? spec.fetch_metadata_cycles : 0);
}

/// Cycles in which a warp group's factors pass the banks of shared memory (Luo et al. 2024, H800: sparse m64n256k32 144
/// cycles with both factors there and 128 with one, dense as fast from shared memory as from registers from 64 columns
/// on, slower below).
int shared_cycles(const MatrixWork& work, int shared_bytes_per_cycle) {
  return round_up(work.shared_bytes(), shared_bytes_per_cycle);
}

}  // namespace

int matrix_interval(const TensorSpec& spec, const MatrixWork& work, int shared_bytes_per_cycle) {
  const int least = work.type == MatrixType::Double ? spec.fp64_least_cycles : 1;
  return std::max(
      {least, arithmetic_cycles(spec, work), fetch_cycles(spec, work), shared_cycles(work, shared_bytes_per_cycle)});
}

MatrixSlabs matrix_slabs(const GpuModel& gpu, const MatrixWork& work, int sum_registers) {
  const AsyncSpec& spec = gpu.async;
  const int cycles = matrix_interval(gpu.tensor, work, gpu.l1.data_bytes_per_cycle);
  const int count = std::clamp(spec.slab_columns > 0 ? work.columns / spec.slab_columns : 1, 1, cycles);
  const int each = std::min(cycles / count, 255);
  const int ports = round_up(sum_registers * spec.slab_port_cycles, 4 * count);
  return {.count = static_cast<std::uint16_t>(count),
          .lead_cycles = static_cast<std::uint16_t>(cycles % count),
          .cycles = static_cast<std::uint8_t>(each),
          .fetch_cycles = static_cast<std::uint8_t>(work.first_shared ? 0 : spec.factor_fetch_cycles),
          .port_cycles = static_cast<std::uint8_t>(std::min(each, ports))};
}

int matrix_latency(const TensorSpec& spec, const MatrixWork& work) {
  return arithmetic_cycles(spec, work) + spec.fp64_result_cycles;
}

}  // namespace forewarp
