// Matrix product, step 19: one template, many choices of tile, for studying the choice.
//
// Shows   Product in common/product.cuh with other tiles of C a block and a warp, depths, stages and types. Larger
//         tiles read less of A and B for a product and leave fewer of them for the SMs (waves); more warps hide more
//         and share fewer registers; more stages cover more latency and take shared memory from other blocks.
// Bound   the tensor pipe at best; see the choice.
// Launch  block (M / WM) (N / WN) 32, grid (ceil(n / N), ceil(m / M)); S (M + N) K bytes_of_type of dynamic shared
//         memory.
// Args    a[m][k], b[k][n] (tf32 and s8: b[n][k]), c[m][n], m, n, k; rows are whole 16-byte chunks, or the kernel
//         traps.

#include "../common/product.cuh"

#define INSTANCE(NAME, T, GIVEN, RESULT, M, N, K, WM, WN, S)                                                       \
  extern "C" __global__ void __launch_bounds__((M / WM) * (N / WN) * 32)                                           \
      tiles_##NAME##_##M##x##N##x##K##_##WM##x##WN##_##S(const GIVEN* __restrict__ a, const GIVEN* __restrict__ b, \
                                                         RESULT* __restrict__ c, int m, int n, int k) {            \
    using Block = Product<T, M, N, K, WM, WN, S>;                                                                  \
    if (!all_rows_are_chunks<Block>(a, b, c, n, k)) __trap();                                                      \
    product_tile<Block, true>(reinterpret_cast<const T*>(a), reinterpret_cast<const T*>(b), c, blockIdx.y * M,     \
                              blockIdx.x * N, m, n, k);                                                            \
  }
#define F16(...) INSTANCE(f16, __half, __half, __half, __VA_ARGS__)
#define BF16(...) INSTANCE(bf16, __nv_bfloat16, __nv_bfloat16, __nv_bfloat16, __VA_ARGS__)
#define TF32(...) INSTANCE(tf32, Tf32, float, float, __VA_ARGS__)
#define S8(...) INSTANCE(s8, int8_t, int8_t, int, __VA_ARGS__)

// Tile of C a block, of k; tile of C a warp; stages.
F16(64, 64, 32, 32, 32, 2)
F16(64, 64, 32, 32, 32, 3)
F16(64, 64, 64, 32, 32, 3)
F16(64, 128, 32, 32, 64, 3)
F16(64, 128, 32, 32, 64, 4)
F16(64, 128, 64, 32, 64, 3)
F16(128, 64, 32, 64, 32, 3)
F16(128, 64, 32, 64, 32, 4)
F16(128, 64, 64, 64, 32, 3)
F16(128, 64, 32, 32, 32, 3)
F16(128, 128, 32, 64, 64, 2)
F16(128, 128, 32, 64, 64, 3)
F16(128, 128, 32, 64, 64, 4)
F16(128, 128, 32, 64, 64, 5)
F16(128, 128, 64, 64, 64, 2)
F16(128, 128, 64, 64, 64, 3)
F16(128, 128, 32, 64, 32, 2)
F16(128, 128, 32, 64, 32, 3)
F16(128, 128, 32, 64, 32, 4)
F16(128, 128, 64, 64, 32, 3)
F16(128, 128, 32, 32, 64, 3)
F16(256, 64, 32, 64, 64, 3)
F16(64, 256, 32, 64, 64, 3)
F16(64, 256, 32, 32, 64, 4)
F16(128, 256, 32, 64, 64, 2)
F16(128, 256, 32, 64, 64, 3)
F16(128, 256, 32, 64, 64, 4)
F16(128, 256, 64, 64, 64, 3)
F16(128, 256, 32, 64, 32, 3)
F16(256, 128, 32, 64, 64, 2)
F16(256, 128, 32, 64, 64, 3)
F16(256, 128, 32, 64, 64, 4)
F16(256, 128, 64, 64, 64, 3)
BF16(128, 128, 32, 64, 64, 4)
BF16(256, 128, 32, 64, 64, 3)
TF32(128, 128, 16, 64, 64, 4)
TF32(128, 128, 32, 64, 64, 3)
TF32(64, 128, 16, 32, 64, 4)
S8(128, 128, 64, 64, 64, 4)
S8(256, 128, 64, 64, 64, 3)
S8(64, 128, 128, 32, 64, 3)
