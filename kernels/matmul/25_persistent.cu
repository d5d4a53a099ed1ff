// Matrix product, step 25: blocks that stay, and results that leave by TMA. sm_90 alone.
//
// Shows   what nothing covered at the ends of a tile in step 23 is covered now. The producer goes on to the next tile's
//         stages while the consumers finish this one, so that products never wait for a first fetch. Sums go to shared
//         memory, 64 columns at a time in two buffers in turn, and TMA stores them, whole lines at once and cut at the
//         edges, while the next products run. Tiles go out by 8 rows, for L2. `static`: block b takes tiles b, b + grid,
//         ...; `drawn`: the producer draws the next tile from a counter in memory and hands it on by a barrier, so that
//         a block that is late takes fewer.
// Bound   tensor pipe; the sums' way to shared memory, during which the two groups multiply nothing; the last wave.
// Launch  block 384, grid as many blocks as are resident, at most as many as there are tiles of 128 x 256; 225 KiB of
//         dynamic shared memory.
// Args    tensor maps of a[m][k] in boxes of 64 x 128, of b[k][n] and of c[m][n] in boxes of 64 x 64, all with 128-byte
//         swizzle; m, n, k; drawn: a counter, which starts at zero and is zero again at the end. Row-major, fp16 or
//         bf16, sums in fp32; n and k are multiples of 8.

#include "../common/hopper.cuh"

constexpr int kTileM = 128, kTileN = 256, kTileK = 64, kStages = 4, kConsumers = 2, kThreads = 128 * (1 + kConsumers);
constexpr int kPanel = kTileK * kSwizzledRow;  // 64 columns of B
constexpr int kABytes = kTileM * kSwizzledRow, kBBytes = kTileN / 64 * kPanel, kStageBytes = kABytes + kBBytes;
constexpr int kStaged = 64 * kSwizzledRow;  // 64 x 64 of C
constexpr int kTileRows = 8;                // of a group of tiles

struct Place {
  int row, col;
};

// Of the i-th tile of C, in groups of kTileRows rows of tiles.
__device__ __forceinline__ Place place_of(int i, int tiles_m, int tiles_n) {
  const int in_group = i % (kTileRows * tiles_n), first = i / (kTileRows * tiles_n) * kTileRows;
  const int rows = min(kTileRows, tiles_m - first);
  return {(first + in_group % rows) * kTileM, in_group / rows * kTileN};
}

// Tiles on their way from the producer, who draws them, to the consumers.
struct Hand {
  Barrier drawn[2], taken[2];
  int tile[2];
};

template <class T, bool kDrawn>
__device__ __forceinline__ void product(const CUtensorMap& a, const CUtensorMap& b, const CUtensorMap& c, int m, int n,
                                        int k, unsigned* counter) {
  extern __shared__ char unaligned[];
  char* ring = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  __shared__ Barrier full[kStages], empty[kStages];
  __shared__ Hand hand;
  const int tiles_m = (m + kTileM - 1) / kTileM, tiles_n = (n + kTileN - 1) / kTileN, all = tiles_m * tiles_n;
  const int depth = (k + kTileK - 1) / kTileK;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      full[stage].init(1);
      empty[stage].init(kConsumers);
    }
    for (int i = 0; kDrawn && i < 2; ++i) {
      hand.drawn[i].init(1);
      hand.taken[i].init(128 * kConsumers);
    }
    publish_to_async();
  }
  __syncthreads();

  const int group = __shfl_sync(~0u, threadIdx.x / 128, 0);  // so that the compiler sees one value a warp
  int stage = 0, parity = 0, turn = 0, turn_parity = 0, tile = blockIdx.x;
  if (group == 0) {
    keep_registers<40>();
    if (threadIdx.x / 32 == 0 && elected()) {
      while (true) {
        int next = tile + gridDim.x;
        if (kDrawn) {
          hand.taken[turn].wait(turn_parity ^ 1);
          hand.tile[turn] = tile;
          hand.drawn[turn].arrive();
          if (++turn == 2) turn = 0, turn_parity ^= 1;
          // As many draws as tiles: the last one of all leaves zero.
          if (tile < all) next = atomicInc(counter, all - 1) + gridDim.x;
        }
        if (tile >= all) break;
        const Place at = place_of(tile, tiles_m, tiles_n);
#pragma unroll 1
        for (int step = 0; step < depth; ++step) {
          empty[stage].wait(parity ^ 1);  // of a barrier just initialised the phase before counts as over
          char* to = ring + stage * kStageBytes;
          full[stage].expect(kStageBytes);
          load_box(to, a, step * kTileK, at.row, full[stage]);
#pragma unroll
          for (int panel = 0; panel < kTileN / 64; ++panel)
            load_box(to + kABytes + panel * kPanel, b, at.col + panel * 64, step * kTileK, full[stage]);
          if (++stage == kStages) stage = 0, parity ^= 1;
        }
        tile = next;
      }
    }
    return;
  }

  take_registers<232>();
  char* staged = ring + kStages * kStageBytes + (group - 1) * 2 * kStaged;
  const bool sends = threadIdx.x % 128 == 0;
  float sums[128];
  while (true) {
    if (kDrawn) {
      hand.drawn[turn].wait(turn_parity);
      tile = hand.tile[turn];
      hand.taken[turn].arrive();
      if (++turn == 2) turn = 0, turn_parity ^= 1;
    }
    if (tile >= all) break;
    int before = 0;
#pragma unroll 1
    for (int step = 0; step < depth; ++step) {
      full[stage].wait(parity);
      const char* from = ring + stage * kStageBytes;
      const uint64_t from_a = factor_along_k(from + (group - 1) * 64 * kSwizzledRow);
      const uint64_t from_b = factor_across_k(from + kABytes, kPanel);
      begin_products();
#pragma unroll
      for (int part = 0; part < kTileK / 16; ++part)
        multiply<T>(sums, further(from_a, part * 32), further(from_b, part * 16 * kSwizzledRow), step + part);
      commit_products();
      wait_for_products<1>();  // those of the step before are done
      if (step > 0 && sends) empty[before].arrive();
      before = stage;
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
    wait_for_products();
    if (sends) empty[before].arrive();

    const Place at = place_of(tile, tiles_m, tiles_n);
#pragma unroll
    for (int panel = 0; panel < kTileN / 64; ++panel) {
      char* to = staged + panel % 2 * kStaged;
      if (sends) wait_for_boxes<1>();  // the buffer is free
      meet(group, 128);
      stage_sums<T>(to, sums, panel * 32);
      publish_to_async();
      meet(group, 128);
      if (sends) {
        store_box(c, at.col + panel * 64, at.row + (group - 1) * 64, to);
        commit_boxes();
      }
    }
    tile += gridDim.x;
  }
  if (sends) wait_for_boxes();  // shared memory goes with the block
}

#define STATIC(NAME, T)                                                                                                  \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                              \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,                                 \
           const __grid_constant__ CUtensorMap c, int m, int n, int k) {                                                 \
    product<T, false>(a, b, c, m, n, k, nullptr);                                                                        \
  }
STATIC(persistent_static_f16, __half)
STATIC(persistent_static_bf16, __nv_bfloat16)

#define DRAWN(NAME, T)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(kThreads, 1)                                                              \
      NAME(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,                                 \
           const __grid_constant__ CUtensorMap c, int m, int n, int k, unsigned* counter) {                              \
    product<T, true>(a, b, c, m, n, k, counter);                                                                         \
  }
DRAWN(persistent_drawn_bf16, __nv_bfloat16)
