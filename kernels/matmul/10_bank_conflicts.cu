// Matrix product, step 10: two ways out of the bank conflicts of step 9.
//
// Shows   a chunk of padding a row against an XOR swizzle. Both leave one wavefront a matrix; the padding takes 2.5 KiB
//         more shared memory, the swizzle none, and an instruction where an address is made.
// Bound   every tile's round trip to memory (long_scoreboard, barrier).
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); 18.5 or 16 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major, fp16 or bf16, sums in fp32.

#include "staged.cuh"

#define STAGED(NAME, ORDER, T)                                                                         \
  extern "C" __global__ void __launch_bounds__(kThreads)                                               \
      NAME(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c, int m, int n, int k) { \
    staged_product<ORDER>(a, b, c, m, n, k);                                                           \
  }
STAGED(mma_padded_f16, Order::Padded, __half)
STAGED(mma_padded_bf16, Order::Padded, __nv_bfloat16)
STAGED(mma_swizzled_f16, Order::Swizzled, __half)
STAGED(mma_swizzled_bf16, Order::Swizzled, __nv_bfloat16)
