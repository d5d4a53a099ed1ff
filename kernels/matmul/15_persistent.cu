// Matrix product, step 15: blocks that stay and take one tile of C after another.
//
// Shows   the ring of copies never drains: while a tile of C is finished and stored, the first tiles of A and B for the
//         next are under way. What goes is each block's start: launch, first misses, first words. The last wave is as
//         ragged as before.
// Bound   the tensor pipe.
// Launch  block 256, grid of any size, best as many as are resident; 96 KiB of dynamic shared memory. Tiles go out by 8
//         rows as in step 13.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32.

#include "../common/product.cuh"

constexpr int kGroup = 8;

struct Place {
  int row, col;
};

// Of the i-th tile of C, in groups of kGroup rows of tiles.
template <class Block>
__device__ __forceinline__ Place place_of(int i, int tiles_m, int tiles_n) {
  const int in_group = i % (kGroup * tiles_n), first = i / (kGroup * tiles_n) * kGroup;
  const int rows = min(kGroup, tiles_m - first);
  return {(first + in_group % rows) * Block::kBlockM, in_group / rows * Block::kBlockN};
}

template <class Block, bool kVector, class T>
__device__ __forceinline__ void products(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m,
                                         int n, int k) {
  extern __shared__ __align__(128) char shared[];
  const int tiles_m = (m + Block::kBlockM - 1) / Block::kBlockM, tiles_n = (n + Block::kBlockN - 1) / Block::kBlockN;
  const int all = tiles_m * tiles_n, tiles = (k + Block::kBlockK - 1) / Block::kBlockK;
  if (blockIdx.x >= all) return;
  int copies_left =
      (all - blockIdx.x + gridDim.x - 1) / gridDim.x * tiles;  // tiles of A and B in all of this block's work

  int fetched = blockIdx.x, fetched_depth = 0;  // how far the copies are: a tile of C, tiles of k in it
  const auto sources = [&](int tile) {
    const Place at = place_of<Block>(tile, tiles_m, tiles_n);
    return typename Block::Sources(a, b, at.row, at.col, m, n, k);
  };
  typename Block::Sources from = sources(fetched);
  const auto next = [&](typename Block::Sources& s) {
    if (++fetched_depth < tiles) {
      s.advance(1);
    } else {
      fetched_depth = 0;
      fetched += gridDim.x;
      s = sources(fetched);
    }
  };

  Block block(shared);
  block.template start<kVector>(from, copies_left, next);
  for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
    for (int depth = 0; depth < tiles; ++depth, --copies_left) {
      block.template multiply_tile<kVector>(from, copies_left > Block::kStages - 1, next);
    }
    const Place at = place_of<Block>(tile, tiles_m, tiles_n);
    block.template store<kVector>(c, at.row, at.col, m, n);
    block.clear();
  }
}

#define PERSISTENT(NAME, T)                                                                            \
  extern "C" __global__ void __launch_bounds__(256)                                                    \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    using Block = Product<T, 128, 256, 32, 64, 64, 4>;                                                 \
    if (all_rows_are_chunks<Block>(a, b, c, n, k)) {                                                   \
      products<Block, true>(a, b, c, m, n, k);                                                         \
    } else {                                                                                           \
      products<Block, false>(a, b, c, m, n, k);                                                        \
    }                                                                                                  \
  }
PERSISTENT(tensor_persistent_f16, __half)
PERSISTENT(tensor_persistent_bf16, __nv_bfloat16)
