// How long a product of matrices holds the tensor pipe: the one place that says so.
#pragma once

#include "hardware/gpu_model.h"
#include "program/analysis.h"

namespace forewarp {

/// Cycles between two such instructions of one sub-partition: those of the arithmetic or those in which the operands
/// come, whichever is more. A warp group's product is a quarter of it for each of four warps, with operands from shared
/// memory, which are read once for all four.
int matrix_interval(const TensorSpec&, const MatrixWork&, int shared_bytes_per_cycle);

/// The part of it in which the operands come; what else reads registers meanwhile makes it longer.
int matrix_fetch(const TensorSpec&, const MatrixWork&);

/// Cycles until a product of doubles releases its scoreboard.
int matrix_latency(const TensorSpec&, const MatrixWork&);

}  // namespace forewarp
