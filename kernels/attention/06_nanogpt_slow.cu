// Attention, step 6: nanoGPT's attention with dropout, not fused, forward and backward.
//
// Shows   what a framework runs without a fused kernel: products on tensor cores in batches, and between them a launch
//         for each of scaling, masking, softmax and dropout, every one reading and writing length x length in fp16 of
//         every head. The backward pass has a launch more for each, and two products for each forward one.
// Bound   HBM; the tensor cores wait.
// Launch  products: block 128, grid (ceil(n / tile), ceil(m / 128), heads), tiles of 128 x 128 (nt) or 128 x 64 (nn,
//         tn); 48 or 36 KiB of dynamic shared memory. scale, mask, dropout: block 256, grid ceil(elements / 256).
//         softmax: block 256, grid ceil(rows / 8).
// Args    nt: c[m][n] = a[m][k] b[n][k]; nn: a[m][k] b[k][n]; tn: a[k][m] b[k][n], each a batch of matrices, m, n, k.
//         scale: x, y, elements, factor. mask: x, y, length, elements, value after the diagonal. softmax: x, y, rows,
//         cols; its gradient y, dy, dx, rows, cols. dropout: x, y, length, elements, seed, dropped of 65536. All fp16.

#include <math_constants.h>

#include "../common/product.cuh"
#include "dropout.cuh"

#define BATCHED(NAME, N, WM, WN, A_ALONG_K, B_ALONG_K)                                                                \
  extern "C" __global__ void __launch_bounds__(128)                                                                   \
      NAME(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) { \
    using Block = Product<__half, 128, N, 32, WM, WN, 3, A_ALONG_K, B_ALONG_K>;                                       \
    a += static_cast<int64_t>(blockIdx.z) * m * k;                                                                    \
    b += static_cast<int64_t>(blockIdx.z) * k * n;                                                                    \
    c += static_cast<int64_t>(blockIdx.z) * m * n;                                                                    \
    const int row0 = blockIdx.y * 128, col0 = blockIdx.x * N;                                                         \
    if (rows_are_chunks(a, A_ALONG_K ? k : m) && rows_are_chunks(b, B_ALONG_K ? k : n) && rows_are_chunks(c, n)) {    \
      product_tile<Block, true>(a, b, c, row0, col0, m, n, k);                                                        \
    } else {                                                                                                          \
      product_tile<Block, false>(a, b, c, row0, col0, m, n, k);                                                       \
    }                                                                                                                 \
  }
BATCHED(batched_nt_f16, 128, 64, 64, true, true)
BATCHED(batched_nn_f16, 64, 64, 32, true, false)
BATCHED(batched_tn_f16, 64, 64, 32, false, false)

extern "C" __global__ void scale_f16(const __half* __restrict__ x, __half* __restrict__ y, int elements, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) y[i] = __float2half_rn(__half2float(x[i]) * factor);
}

// What is after the diagonal becomes `value`: minus infinity before the softmax, zero in a gradient.
extern "C" __global__ void mask_f16(const __half* __restrict__ x, __half* __restrict__ y, int length, int elements,
                                    float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const int row = i / length % length, col = i % length;
  y[i] = col > row ? __float2half_rn(value) : x[i];
}

extern "C" __global__ void dropout_f16(const __half* __restrict__ x, __half* __restrict__ y, int length, int elements,
                                       int seed, int dropped) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= elements) return;
  const int row = i / length % length, col = i % length;
  const Dropout dropout(seed, i / length / length, length, dropped);
  y[i] = dropout.keeps(dropout.bits(row, col), col) ? __float2half_rn(__half2float(x[i]) * dropout.kept_scale)
                                                    : __half(0.0f);
}

template <class Op>
__device__ __forceinline__ float of_warp(float value, Op op) {
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) value = op(value, __shfl_xor_sync(0xffffffff, value, lanes));
  return value;
}

// A warp a row.
extern "C" __global__ void softmax_f16(const __half* __restrict__ x, __half* __restrict__ y, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  x += static_cast<int64_t>(row) * cols;
  y += static_cast<int64_t>(row) * cols;
  float most = -CUDART_INF_F, sum = 0;
  for (int i = lane; i < cols; i += 32) most = fmaxf(most, __half2float(x[i]));
  most = of_warp(most, [](float a, float b) { return fmaxf(a, b); });
  for (int i = lane; i < cols; i += 32) sum += expf(__half2float(x[i]) - most);
  const float scaled = 1.0f / of_warp(sum, [](float a, float b) { return a + b; });
  for (int i = lane; i < cols; i += 32) y[i] = __float2half_rn(expf(__half2float(x[i]) - most) * scaled);
}

// dx = y (dy - sum of y dy).
extern "C" __global__ void softmax_backward_f16(const __half* __restrict__ y, const __half* __restrict__ dy,
                                                __half* __restrict__ dx, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int64_t at = static_cast<int64_t>(row) * cols;
  float sum = 0;
  for (int i = lane; i < cols; i += 32) sum += __half2float(y[at + i]) * __half2float(dy[at + i]);
  sum = of_warp(sum, [](float a, float b) { return a + b; });
  for (int i = lane; i < cols; i += 32) {
    dx[at + i] = __float2half_rn(__half2float(y[at + i]) * (__half2float(dy[at + i]) - sum));
  }
}
