// Matrix product, step 20: products of a warpgroup (wgmma), its factors put into shared memory by plain copies. sm_90 alone.
//
// Shows   one instruction multiplies 64 x 16 by 16 x 128, straight from shared memory: no ldmatrix, no registers for factors.
//         But copies, the barrier and the products take turns.
// Bound   latency of the copies (long_scoreboard), then of the products: neither runs while the other does.
// Launch  block 128, grid (ceil(n / 128), ceil(m / 128)); 33 KiB of dynamic shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32; n and k are multiples of 8.

#include "../common/hopper.cuh"

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kThreads = 128;
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B

template <class T>
__device__ __forceinline__ void product(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n,
                                        int k) {
  extern __shared__ char unaligned[];
  char* a_tile = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  char* b_tile = a_tile + kTileM * kSwizzledRow;
  const int row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;

  float sums[2][64];
  for (int k0 = 0; k0 < k; k0 += kTileK) {
    uint4 words[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // 128 rows of A, 8 chunks each
      const int row = i * 16 + threadIdx.x / 8, chunk = threadIdx.x % 8;
      const bool inside = row0 + row < m && k0 + chunk * 8 < k;
      words[i] = inside ? *reinterpret_cast<const uint4*>(a + int64_t{row0 + row} * k + k0 + chunk * 8) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // 64 rows of B, 16 chunks each
      const int row = i * 8 + threadIdx.x / 16, chunk = threadIdx.x % 16;
      const bool inside = k0 + row < k && col0 + chunk * 8 < n;
      words[8 + i] = inside ? *reinterpret_cast<const uint4*>(b + int64_t{k0 + row} * n + col0 + chunk * 8) : uint4{};
    }
    __syncthreads();  // the products of the tile before have read it
#pragma unroll
    for (int i = 0; i < 8; ++i)
      *reinterpret_cast<uint4*>(a_tile + swizzled(i * 16 + threadIdx.x / 8, threadIdx.x % 8)) = words[i];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int row = i * 8 + threadIdx.x / 16, chunk = threadIdx.x % 16;
      *reinterpret_cast<uint4*>(b_tile + chunk / 8 * kPanel + swizzled(row, chunk % 8)) = words[8 + i];
    }
    publish_to_async();
    __syncthreads();

    const uint64_t from_a = factor_along_k(a_tile), from_b = factor_across_k(b_tile, kPanel);
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileK / 16; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply<T>(sums[half], further(from_a, half * 64 * kSwizzledRow + step * 32),
                    further(from_b, step * 16 * kSwizzledRow), k0 + step);
      }
    }
    commit_products();
    wait_for_products();
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) store_sums(c, row0 + half * 64, col0, m, n, sums[half]);
}

#define WGMMA(NAME, T)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kThreads)                                                                 \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) {                   \
    product<T>(a, b, c, m, n, k);                                                                                        \
  }
WGMMA(wgmma_f16, __half)
WGMMA(wgmma_bf16, __nv_bfloat16)
