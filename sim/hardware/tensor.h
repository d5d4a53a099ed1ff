// How long a product of matrices holds the tensor pipe: the one place that says so.
#pragma once

#include <cstdint>

#include "hardware/gpu_model.h"
#include "program/analysis.h"

namespace forewarp {

/// Cycles between two such instructions of one sub-partition: those of the arithmetic or those in which the operands
/// come, whichever is more. A warp group's product is a quarter of it for each of four warps, with operands from shared
/// memory, which are read once for all four.
int matrix_interval(const TensorSpec&, const MatrixWork&, int shared_bytes_per_cycle);

/// How a warp group's product holds the tensor pipe and the register ports: in slabs of columns.
struct MatrixSlabs {
  std::uint16_t count = 0;
  std::uint16_t lead_cycles = 0;  ///< before the first, for factors that take longer than the arithmetic
  std::uint8_t cycles = 0;        ///< of each
  std::uint8_t fetch_cycles = 0;  ///< by which the first takes longer: a factor in registers
  std::uint8_t port_cycles = 0;   ///< of each, in which the sums hold the register ports
};
MatrixSlabs matrix_slabs(const GpuModel&, const MatrixWork&, int sum_registers);

/// Cycles until a product of doubles releases its scoreboard.
int matrix_latency(const TensorSpec&, const MatrixWork&);

}  // namespace forewarp
