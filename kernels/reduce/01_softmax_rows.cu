// Reduction, step 1: softmax of every row, a block a row.
//
// Shows   three walks over a row (maximum, sum, result): the second and third come from L1 while a row fits it.
// Bound   HBM for long rows; barriers and latency for short ones.
// Launch  block 256, grid rows; 256 bytes of static shared memory.
// Args    in, out [rows][cols] fp32, cols.

#include "../common/block.cuh"

extern "C" __global__ void softmax_rows(const float* __restrict__ in, float* __restrict__ out, int cols) {
  block_softmax(in + blockIdx.x * cols, out + blockIdx.x * cols, cols);
}
