// Matrix product, step 9: tiles in shared memory, and ldmatrix to take fragments out of them.
//
// Shows   each element comes from global memory once a block, in 16-byte loads, and ldmatrix gives a warp four 8 x 8
//         matrices in one instruction; with .trans it turns B, whose rows run along n, into columns. Rows of 64 and 256
//         bytes put the eight rows of a matrix into the same banks: four and eight wavefronts for one.
// Bound   shared-memory bandwidth (mio_throttle, short_scoreboard), and every tile's round trip to memory.
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); 16 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32.

#include "staged.cuh"

#define STAGED(NAME, ORDER, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(kThreads)                                               \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    staged_product<ORDER>(a, b, c, m, n, k);                                                           \
  }
STAGED(mma_shared_f16, Order::Plain, __half)
STAGED(mma_shared_bf16, Order::Plain, __nv_bfloat16)
