// Matrix product, step 12: large warp tiles, with the words of the next step fetched while this one is multiplied.
//
// Shows   64 x 64 of C a warp: 32 products for eight ldmatrix, half of what step 11 reads from shared memory for a
//         product, and two sets of words, so that ldmatrix runs under mma. The block's 128 x 256 takes eight warps and
//         most registers of an SM. Everything (type, tiles, stages, layouts) is a template argument of Product in
//         common/product.cuh.
// Bound   the tensor pipe (math_pipe_throttle).
// Launch  block 256, grid (ceil(n / 256), ceil(m / 128)); 96 KiB of dynamic shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32. Rows that are not whole 16-byte
//         chunks go through registers.

#include "../common/product.cuh"

#define TENSOR(NAME, T)                                                                                \
  extern "C" __global__ void __launch_bounds__(256)                                                    \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    using Block = Product<T, 128, 256, 32, 64, 64, 4>;                                                 \
    const int row0 = blockIdx.y * Block::kBlockM, col0 = blockIdx.x * Block::kBlockN;                  \
    if (all_rows_are_chunks<Block>(a, b, c, n, k)) {                                                   \
      product_tile<Block, true>(a, b, c, row0, col0, m, n, k);                                         \
    } else {                                                                                           \
      product_tile<Block, false>(a, b, c, row0, col0, m, n, k);                                        \
    }                                                                                                  \
  }
TENSOR(tensor_f16, __half)
TENSOR(tensor_bf16, __nv_bfloat16)
