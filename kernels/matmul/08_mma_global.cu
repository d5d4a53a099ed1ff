// Matrix product, step 8: tensor cores, fed from global memory.
//
// Shows   what mma.sync asks of a warp: every lane loads the words of its fragments itself, two halves of a row of A in
//         one load, two halves of a column of B in two. The tensor cores idle: a word of B is two 2-byte loads, and
//         each warp fetches again what its neighbours had.
// Bound   L1 (lg_throttle, long_scoreboard).
// Launch  block 128, grid (ceil(n / 64), ceil(m / 64)); each warp 32 x 32 of C.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32.

#include "../common/tensor.cuh"

constexpr int kBlock = 64;
constexpr int kWarp = 32;
constexpr int kThreads = 128;

// Two neighbours along k as a word, the first in the lower half; `apart` elements lie between them. Zeros from `left`
// on.
template <bool kPairs, class T>
__device__ __forceinline__ uint32_t word(const T* __restrict__ from, int apart, int left) {
  const auto* bits = reinterpret_cast<const unsigned short*>(from);
  if constexpr (kPairs) return left > 0 ? *reinterpret_cast<const uint32_t*>(bits) : 0;
  const uint32_t low = left > 0 ? bits[0] : 0, high = left > 1 ? bits[apart] : 0;
  return low | high << 16;
}

template <bool kPairs, class T>
__device__ __forceinline__ void product(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m,
                                        int n, int k) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row0 = blockIdx.y * kBlock + warp / 2 * kWarp;
  const int col0 = blockIdx.x * kBlock + warp % 2 * kWarp;

  float sums[2][4][4] = {};
  for (int k0 = lane % 4 * 2; k0 < k + lane % 4 * 2; k0 += 16) {
    uint32_t a_words[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        const int row = row0 + i * 16 + w % 2 * 8 + lane / 4, depth = k0 + w / 2 * 8;
        a_words[i][w] = word<kPairs>(a + static_cast<int64_t>(row) * k + depth, 1, row < m ? k - depth : 0);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      uint32_t b_words[2];
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        const int col = col0 + j * 8 + lane / 4, depth = k0 + w * 8;
        b_words[w] = word<false>(b + static_cast<int64_t>(depth) * n + col, n, col < n ? k - depth : 0);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) Tensor<T>::multiply(sums[i][j], a_words[i], b_words[0], b_words[1]);
    }
  }
  store_strips<kPairs>(c, row0, col0, m, n, n, sums);
}

#define MMA_GLOBAL(NAME, T)                                                                            \
  extern "C" __global__ void __launch_bounds__(kThreads)                                               \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    if (k % 2 == 0 && n % 2 == 0) {                                                                    \
      product<true>(a, b, c, m, n, k);                                                                 \
    } else {                                                                                           \
      product<false>(a, b, c, m, n, k);                                                                \
    }                                                                                                  \
  }
MMA_GLOBAL(mma_global_f16, __half)
MMA_GLOBAL(mma_global_bf16, __nv_bfloat16)
