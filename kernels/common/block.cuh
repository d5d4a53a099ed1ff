// Reductions over a warp and over a block, and the softmax of one row by one block.
#pragma once

#include <math_constants.h>

struct Add {
  __device__ float operator()(float x, float y) const { return x + y; }
};
struct Max {
  __device__ float operator()(float x, float y) const { return fmaxf(x, y); }
};

template <class Op>
__device__ inline float warp_reduce(float value, Op op) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value = op(value, __shfl_xor_sync(0xffffffff, value, lanes));
  return value;
}

// The reduction of every thread's value, in every thread. The block is a whole number of warps, at most 32.
template <class Op>
__device__ inline float block_reduce(float value, float identity, Op op) {
  __shared__ float of_warp[32];
  value = warp_reduce(value, op);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? of_warp[threadIdx.x % 32] : identity;
  __syncthreads();
  return warp_reduce(value, op);
}

// out[i] = exp(in[i] - max) / sum of exp(in[j] - max), for the `length` elements of one row: three walks over it.
__device__ inline void block_softmax(const float* __restrict__ in, float* __restrict__ out, int length) {
  float largest = -CUDART_INF_F;
  for (int i = threadIdx.x; i < length; i += blockDim.x) largest = fmaxf(largest, in[i]);
  largest = block_reduce(largest, -CUDART_INF_F, Max());

  float sum = 0.0f;
  for (int i = threadIdx.x; i < length; i += blockDim.x) sum += expf(in[i] - largest);
  sum = block_reduce(sum, 0.0f, Add());

  const float scale = 1.0f / sum;
  for (int i = threadIdx.x; i < length; i += blockDim.x) out[i] = expf(in[i] - largest) * scale;
}
