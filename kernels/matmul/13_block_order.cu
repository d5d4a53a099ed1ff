// Matrix product, step 13: the order in which tiles are handed out, so that blocks that run together share what they
// read.
//
// Shows   blocks in flight cover a patch of C. Along rows it is one or two tiles high and as wide as C: they read all
//         of B. In groups of some rows of tiles it is nearly square, and L2 sees each row of A and each column of B
//         from more blocks at a time.
// Bound   the tensor pipe; HBM and L2 where the order is bad and the matrices are beyond L2.
// Launch  block 256, grid ceil(n / 256) * ceil(m / 128); 96 KiB of dynamic shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k, rows of tiles in a group (1: along rows); row-major fp16, sums in fp32.

#include "../common/product.cuh"

using Block = Product<__half, 128, 256, 32, 64, 64, 4>;

extern "C" __global__ void __launch_bounds__(256)
    tensor_grouped_f16(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int m, int n,
                       int k, int group) {
  const int tiles_m = (m + Block::kBlockM - 1) / Block::kBlockM, tiles_n = (n + Block::kBlockN - 1) / Block::kBlockN;
  const int in_group = blockIdx.x % (group * tiles_n), first = blockIdx.x / (group * tiles_n) * group;
  const int rows = min(group, tiles_m - first);  // the last group may be lower
  const int row0 = (first + in_group % rows) * Block::kBlockM, col0 = in_group / rows * Block::kBlockN;
  if (all_rows_are_chunks<Block>(a, b, c, n, k)) {
    product_tile<Block, true>(a, b, c, row0, col0, m, n, k);
  } else {
    product_tile<Block, false>(a, b, c, row0, col0, m, n, k);
  }
}
