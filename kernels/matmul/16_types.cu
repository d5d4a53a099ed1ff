// Matrix product, step 16: the kernel of step 12 in other types.
//
// Shows   a word of k is 32 bits whatever is in it (64 of fp64), so tiles of as many bytes take as long to fetch and to
//         read; each step of k multiplies 8 tf32, 16 halves or 32 bytes a row. fp64 has words of its own and no
//         ldmatrix. fp8 through mma.sync is widened to halves on sm_90 (F2FP, then HMMA), by the compiler, and by hand
//         on sm_80: only wgmma has its rate.
// Bound   the tensor pipe; e4m3 the conversions before it.
// Launch  block 256, grid (ceil(n / 256), ceil(m / 128)), of e4m3 (ceil(n / 128), ...), of f64 (ceil(n / 64), ...); 96
//         KiB of dynamic shared memory, of e4m3 64.
// Args    a[m][k], b[n][k] (transposed: k runs along its rows too), c[m][n], m, n, k; c is fp32, of s8 int32, of f64
//         fp64.

#include "../common/product.cuh"

#define TYPE(NAME, T, GIVEN, RESULT, ...)                                                                              \
  extern "C" __global__ void __launch_bounds__(256)                                                                    \
      NAME(const GIVEN* __restrict__ given_a, const GIVEN* __restrict__ given_b, RESULT* __restrict__ c, int m, int n, \
           int k) {                                                                                                    \
    using Block = Product<T, __VA_ARGS__>;                                                                             \
    const T *a = reinterpret_cast<const T*>(given_a), *b = reinterpret_cast<const T*>(given_b);                        \
    const int row0 = blockIdx.y * Block::kBlockM, col0 = blockIdx.x * Block::kBlockN;                                  \
    if (all_rows_are_chunks<Block>(a, b, c, n, k)) {                                                                   \
      product_tile<Block, true>(a, b, c, row0, col0, m, n, k);                                                         \
    } else {                                                                                                           \
      product_tile<Block, false>(a, b, c, row0, col0, m, n, k);                                                        \
    }                                                                                                                  \
  }
TYPE(tensor_tf32, Tf32, float, float, 128, 256, 16, 64, 64, 4)
TYPE(tensor_s8, int8_t, int8_t, int, 128, 256, 64, 64, 64, 4)
TYPE(tensor_e4m3, E4m3, uint8_t, float, 128, 128, 64, 64, 32, 4)
TYPE(tensor_f64, double, double, double, 128, 64, 16, 32, 32, 4)
