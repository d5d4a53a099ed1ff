// Reduction, step 2: layer norm of every row, a block a row: mean, then variance about it, then the result.
//
// Shows   two dependent reductions and two vectors (gamma, beta) that every row reads again, from L2 and L1.
// Bound   HBM for long rows; barriers and latency for short ones.
// Launch  block 256, grid rows; 128 bytes of static shared memory.
// Args    in, out [rows][cols], gamma, beta [cols] fp32, cols, epsilon.

#include "../common/block.cuh"

extern "C" __global__ void layer_norm_rows(const float* __restrict__ in, const float* __restrict__ gamma,
                                           const float* __restrict__ beta, float* __restrict__ out, int cols, float epsilon) {
  const float* row = in + blockIdx.x * cols;
  float* result = out + blockIdx.x * cols;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) sum += row[i];
  const float mean = block_reduce(sum, 0.0f, Add()) / cols;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = rsqrtf(block_reduce(squares, 0.0f, Add()) / cols + epsilon);

  for (int i = threadIdx.x; i < cols; i += blockDim.x) result[i] = (row[i] - mean) * scale * gamma[i] + beta[i];
}
