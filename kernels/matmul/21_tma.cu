// Matrix product, step 21: tiles fetched by the tensor memory accelerator (TMA), one barrier. sm_90 alone.
//
// Shows   one thread asks for whole tiles; addresses, edges and the order in shared memory are the tensor map's business. The
//         bytes themselves complete the barrier that all wait at. Copies and products still take turns.
// Bound   latency of a tile: every turn waits for one (the loop at the barrier).
// Launch  block 128, grid (ceil(n / 128), ceil(m / 128)); 33 KiB of dynamic shared memory.
// Args    tensor maps of a[m][k] in boxes of 64 x 128 and of b[k][n] in boxes of 64 x 64, both with 128-byte swizzle;
//         c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32; n and k are multiples of 8.

#include "../common/hopper.cuh"

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kThreads = 128;
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B
constexpr int kABytes = kTileM * kSwizzledRow, kBBytes = kTileN / 64 * kPanel;

template <class T>
__device__ __forceinline__ void product(const CUtensorMap& a, const CUtensorMap& b, T* c, int m, int n, int k) {
  extern __shared__ char unaligned[];
  char* a_tile = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  char* b_tile = a_tile + kABytes;
  __shared__ Barrier arrived;
  const int row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  if (threadIdx.x == 0) {
    arrived.init(1);
    publish_to_async();
  }
  __syncthreads();

  float sums[2][64];
  int parity = 0;
#pragma unroll 1
  for (int k0 = 0; k0 < k; k0 += kTileK, parity ^= 1) {
    if (threadIdx.x == 0) {
      arrived.expect(kABytes + kBBytes);
      load_box(a_tile, a, k0, row0, arrived);
#pragma unroll
      for (int panel = 0; panel < kTileN / 64; ++panel)
        load_box(b_tile + panel * kPanel, b, col0 + panel * 64, k0, arrived);
    }
    arrived.wait(parity);
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
    __syncthreads();  // all are done with the tile
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) store_sums(c, row0 + half * 64, col0, m, n, sums[half]);
}

#define TMA(NAME, T)                                                                                                     \
  extern "C" __global__ void __launch_bounds__(kThreads)                                                                 \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n, int k) {    \
    product<T>(a, b, c, m, n, k);                                                                                        \
  }
TMA(tma_f16, __half)
TMA(tma_bf16, __nv_bfloat16)
