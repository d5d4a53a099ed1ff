// Matrix product, step 11: asynchronous copies, with a ring of 2, 3 or 4 tiles.
//
// Shows   cp.async takes tiles to shared memory past registers and L1; with s stages s - 1 tiles are under way while
//         one is multiplied, and there is one barrier a tile in place of two. More stages cover more latency and leave
//         room for fewer blocks.
// Bound   ldmatrix and the tensor pipe in turn: a warp first fetches its words, then multiplies (short_scoreboard,
//         math_pipe_throttle).
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); stages x 16 KiB of dynamic shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32. Rows that are not whole 16-byte
//         chunks go through registers.

#include "../common/product.cuh"

template <class Block, bool kVector, class T>
__device__ __forceinline__ void product(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m,
                                        int n, int k) {
  extern __shared__ __align__(128) char shared[];
  const int row0 = blockIdx.y * Block::kBlockM, col0 = blockIdx.x * Block::kBlockN;
  Block block(shared);
  typename Block::Sources from(a, b, row0, col0, m, n, k);
  const int tiles = (k + Block::kBlockK - 1) / Block::kBlockK;
#pragma unroll 1
  for (int s = 0; s < Block::kStages - 1; ++s) {
    if (s < tiles) block.template copy<kVector>(s, from);
    from.advance(1);
    commit_copies();
  }
  int used = 0, freed = Block::kStages - 1;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<Block::kStages - 2>();
    __syncthreads();  // this tile is there, and every warp is done with the one before
    if (tile + Block::kStages - 1 < tiles) block.template copy<kVector>(freed, from);
    from.advance(1);
    commit_copies();
#pragma unroll
    for (int step = 0; step < Block::kSteps; ++step) {
      block.load(block.words[0], used, step);
      multiply_strips<T>(block.sums, block.words[0].a, block.words[0].b);
    }
    freed = used;
    used = used + 1 == Block::kStages ? 0 : used + 1;
  }
  block.template store<kVector>(c, row0, col0, m, n);
}

#define ASYNC(NAME, STAGES, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(256)                                                    \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    using Block = Product<T, 128, 128, 32, 64, 32, STAGES>;                                            \
    if (all_rows_are_chunks<Block>(a, b, c, n, k)) {                                                   \
      product<Block, true>(a, b, c, m, n, k);                                                          \
    } else {                                                                                           \
      product<Block, false>(a, b, c, m, n, k);                                                         \
    }                                                                                                  \
  }
ASYNC(mma_async_2_f16, 2, __half)
ASYNC(mma_async_3_f16, 3, __half)
ASYNC(mma_async_4_f16, 4, __half)
ASYNC(mma_async_3_bf16, 3, __nv_bfloat16)
