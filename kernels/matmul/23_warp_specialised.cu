// Matrix product, step 23: one warp fetches, two warpgroups multiply, tiles of 128 x 256. sm_90 alone.
//
// Shows   the producer waits for empty stages and asks TMA to fill them; consumers wait for full ones, keep one group of
//         products under way while they issue the next, and hand stages back. Nobody waits for all. The producer's registers
//         go to the consumers, which hold 64 x 256 sums each.
// Bound   tensor pipe; at the ends of a tile its first fetch and its stores, which nothing covers.
// Launch  block 384, grid (ceil(n / 256), ceil(m / 128)); 193 KiB of dynamic shared memory.
// Args    tensor maps of a[m][k] in boxes of 64 x 128 and of b[k][n] in boxes of 64 x 64, both with 128-byte swizzle;
//         c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32; n and k are multiples of 8.

#include "../common/hopper.cuh"

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B
constexpr int kABytes = kTileM * kSwizzledRow, kBBytes = kTileN / 64 * kPanel, kStageBytes = kABytes + kBBytes;

template <class T>
__device__ __forceinline__ void product(const CUtensorMap& a, const CUtensorMap& b, T* c, int m, int n, int k) {
  extern __shared__ char unaligned[];
  char* ring = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  __shared__ Barrier full[kStages], empty[kStages];
  const int row0 = blockIdx.y * kTileM, col0 = blockIdx.x * kTileN;
  const int tiles = (k + kTileK - 1) / kTileK;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      full[stage].init(1);
      empty[stage].init(kConsumers);
    }
    publish_to_async();
  }
  __syncthreads();

  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // so that the compiler sees one value a warp
  int stage = 0, parity = 0;
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x / 32 == 0 && elected()) {
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        empty[stage].wait(parity ^ 1);  // of a barrier just initialised the phase before counts as over
        char* to = ring + stage * kStageBytes;
        full[stage].expect(kStageBytes);
        load_box(to, a, tile * kTileK, row0, full[stage]);
#pragma unroll
        for (int panel = 0; panel < kTileN / 64; ++panel)
          load_box(to + kABytes + panel * kPanel, b, col0 + panel * 64, tile * kTileK, full[stage]);
        if (++stage == kStages) stage = 0, parity ^= 1;
      }
    }
    return;
  }

  take_registers<232>();
  float sums[128];
  int before = 0;
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    full[stage].wait(parity);
    const char* from = ring + stage * kStageBytes;
    const uint64_t from_a = factor_along_k(from + (group - 1) * 64 * kSwizzledRow);
    const uint64_t from_b = factor_across_k(from + kABytes, kPanel);
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileK / 16; ++step)
      multiply<T>(sums, further(from_a, step * 32), further(from_b, step * 16 * kSwizzledRow), tile + step);
    commit_products();
    wait_for_products<1>();  // those of the tile before are done
    if (tile > 0 && threadIdx.x % 128 == 0) empty[before].arrive();
    before = stage;
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  wait_for_products();
  store_sums(c, row0 + (group - 1) * 64, col0, m, n, sums);
}

#define SPECIALISED(NAME, T)                                                                                             \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                              \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n, int k) {    \
    product<T>(a, b, c, m, n, k);                                                                                        \
  }
SPECIALISED(specialised_f16, __half)
SPECIALISED(specialised_bf16, __nv_bfloat16)
