// Reduction, step 3: the sum of an array, with an atomic a thread and with an atomic a block.
//
// Shows   contention: an atomic a thread sends every element to one address of one L2 slice; a block that sums first sends one
//         in 256.
// Bound   one L2 slice's atomic unit; then HBM.
// Launch  block 256, grid ceil(n / 256); sum_atomic_blocks: 128 bytes of static shared memory.
// Args    in[n], sum[1] (zero before) fp32, n.

#include "../common/block.cuh"

extern "C" __global__ void sum_atomic_threads(const float* __restrict__ in, float* __restrict__ sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, in[i]);
}

extern "C" __global__ void sum_atomic_blocks(const float* __restrict__ in, float* __restrict__ sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float of_block = block_reduce(i < n ? in[i] : 0.0f, 0.0f, Add());
  if (threadIdx.x == 0) atomicAdd(sum, of_block);
}
