// Matrix product, step 24: clusters of two blocks, one above the other, that share the tile of B. sm_90 alone.
//
// Shows   each block fetches its own tile of A and half of the tile of B, which TMA multicasts to both: L2 is asked for B half
//         as often. A stage is free when the consumers of both blocks have handed it back.
// Bound   tensor pipe; L2 sends a third less than in step 23.
// Launch  block 384, grid (2 * ceil(m / 256), ceil(n / 256)), cluster 2; 193 KiB of dynamic shared memory.
// Args    tensor maps of a[m][k] in boxes of 64 x 128 and of b[k][n] in boxes of 64 x 64, both with 128-byte swizzle;
//         c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32; n and k are multiples of 8.

#include "../common/cluster.cuh"

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kCluster = 2, kPanels = kTileN / 64;
constexpr uint16_t kAllBlocks = (1 << kCluster) - 1;
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B
constexpr int kABytes = kTileM * kSwizzledRow, kBBytes = kPanels * kPanel, kStageBytes = kABytes + kBBytes;

template <class T>
__device__ __forceinline__ void product(const CUtensorMap& a, const CUtensorMap& b, T* c, int m, int n, int k) {
  extern __shared__ char unaligned[];
  char* ring = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  __shared__ Barrier full[kStages], empty[kStages];
  const int row0 = blockIdx.x * kTileM, col0 = blockIdx.y * kTileN;
  const int tiles = (k + kTileK - 1) / kTileK;
  const int rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      full[stage].init(1);
      empty[stage].init(kConsumers * kCluster);
    }
    publish_to_async();
  }
  cluster_sync();  // nobody arrives at barriers of the other block before they are made

  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // so that the compiler sees one value a warp
  int stage = 0, parity = 0;
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x / 32 == 0 && elected()) {
#pragma unroll 1
      for (int tile = 0; tile < tiles; ++tile) {
        wait_for_cluster(empty[stage], parity ^ 1);  // of a barrier just initialised the phase before counts as over
        char* to = ring + stage * kStageBytes;
        full[stage].expect(kStageBytes);  // what the other block sends too
        load_box(to, a, tile * kTileK, row0, full[stage]);
#pragma unroll
        for (int i = 0; i < kPanels / kCluster; ++i) {
          const int panel = rank * (kPanels / kCluster) + i;
          load_box_to(kAllBlocks, to + kABytes + panel * kPanel, b, col0 + panel * 64, tile * kTileK, full[stage]);
        }
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
    wait_for_cluster(full[stage], parity);
    const char* from = ring + stage * kStageBytes;
    const uint64_t from_a = factor_along_k(from + (group - 1) * 64 * kSwizzledRow);
    const uint64_t from_b = factor_across_k(from + kABytes, kPanel);
    begin_products();
#pragma unroll
    for (int step = 0; step < kTileK / 16; ++step)
      multiply<T>(sums, further(from_a, step * 32), further(from_b, step * 16 * kSwizzledRow), tile + step);
    commit_products();
    wait_for_products<1>();  // those of the tile before are done
    if (tile > 0 && threadIdx.x % 128 < kCluster) arrive_in_block(empty[before], threadIdx.x % 128);
    before = stage;
    if (++stage == kStages) stage = 0, parity ^= 1;
  }
  wait_for_products();
  cluster_arrive();  // a block whose barriers others still arrive at stays
  store_sums(c, row0 + (group - 1) * 64, col0, m, n, sums);
  cluster_wait();
}

#define MULTICAST(NAME, T)                                                                                               \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                              \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, T* c, int m, int n, int k) {    \
    product<T>(a, b, c, m, n, k);                                                                                        \
  }
MULTICAST(multicast_f16, __half)
MULTICAST(multicast_bf16, __nv_bfloat16)
