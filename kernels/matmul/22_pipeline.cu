// Matrix product, step 22: a ring of stages that TMA fills ahead of the products. sm_90 alone.
//
// Shows   with a barrier a stage, tiles are on their way while others are multiplied: latency disappears behind work. The
//         thread that asks for the next tile is one of those that multiply, so that all wait for it.
// Bound   tensor pipe, with gaps where a tile is released and the next one asked for.
// Launch  block 128, grid (ceil(n / 128), ceil(m / 128)); 32 KiB of dynamic shared memory a stage and 1 KiB.
// Args    as in step 21.

#include "../common/hopper.cuh"

constexpr int kTileM = 128, kTileN = 128, kTileK = 64, kThreads = 128;
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B
constexpr int kABytes = kTileM * kSwizzledRow, kBBytes = kTileN / 64 * kPanel, kStageBytes = kABytes + kBBytes;

template <class T, int kStages>
__device__ __forceinline__ void product(const CUtensorMap& a, const CUtensorMap& b, T* c, int m, int n, int k) {
  extern __shared__ char unaligned[];
  char* ring = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  __shared__ Barrier full[kStages];
  const int row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  const int tiles = (k + kTileK - 1) / kTileK;

  const auto fetch = [&](int tile, int stage) {
    char* to = ring + stage * kStageBytes;
    full[stage].expect(kStageBytes);
    load_box(to, a, tile * kTileK, row0, full[stage]);
#pragma unroll
    for (int panel = 0; panel < kTileN / 64; ++panel)
      load_box(to + kABytes + panel * kPanel, b, col0 + panel * 64, tile * kTileK, full[stage]);
  };
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) full[stage].init(1);
    publish_to_async();
    for (int tile = 0; tile < kStages && tile < tiles; ++tile) fetch(tile, tile);
  }
  __syncthreads();

  float sums[2][64];
  int stage = 0, parity = 0;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    full[stage].wait(parity);
    const char* from = ring + stage * kStageBytes;
    const uint64_t from_a = factor_along_k(from), from_b = factor_across_k(from + kABytes, kPanel);
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileK / 16; ++step) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        multiply<T>(sums[half], further(from_a, half * 64 * kSwizzledRow + step * 32),
                    further(from_b, step * 16 * kSwizzledRow), tile + step);
      }
    }
    commit_products();
    wait_for_products();
    __syncthreads();  // all are done with the stage
    if (threadIdx.x == 0 && tile + kStages < tiles) fetch(tile + kStages, stage);
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) store_sums(c, row0 + half * 64, col0, m, n, sums[half]);
}

#define PIPELINE(NAME, STAGES, T)                                                                                        \
  extern "C" __global__ void __launch_bounds__(kThreads)                                                                 \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n, int k) {    \
    product<T, STAGES>(a, b, c, m, n, k);                                                                                \
  }
PIPELINE(pipeline_2_f16, 2, __half)
PIPELINE(pipeline_3_f16, 3, __half)
PIPELINE(pipeline_3_bf16, 3, __nv_bfloat16)
PIPELINE(pipeline_6_bf16, 6, __nv_bfloat16)
