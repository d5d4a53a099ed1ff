// Calibration: in which order a sub-partition serves its warps.
//
// Isolates  the choice among ready warps: each writes the clock at eighths of its work. Blocks of one warp a sub-partition (b16)
//           tell age apart; one block of four (b1) shows how the warps of a block share; b4 and b2 are both. order_shift reads
//           two registers an instruction without the operand caches, as values that change places do.
// Supports  the order of issue (sim/timing/sm/sm_issue.cpp): sm__warps_active is 100 % where warps keep pace, half of that where
//           one after another finishes.
// Launch    16, 4, 2 or 1 blocks an SM, of 4, 16, 8 and 16 warps.
// Args      out[warps][16]: clocks at 0/8 ... 8/8, SM, hardware warp; iterations an eighth, seed.

#include "micro.cuh"

#define ORDER(NAME, ...)                                                                        \
  extern "C" __global__ void NAME(unsigned* out, int iterations, float seed) {                  \
    unsigned clocks[9];                                                                         \
    float a[8];                                                                                 \
    const float b = seed + threadIdx.x, c = seed - threadIdx.x;                                 \
    _Pragma("unroll") for (int j = 0; j < 8; ++j) a[j] = b * (j + 1);                           \
    __syncthreads();                                                                            \
    asm volatile("mov.u32 %0, %%clock;" : "=r"(clocks[0]));                                     \
    _Pragma("unroll") for (int eighth = 1; eighth <= 8; ++eighth) {                             \
      COUNTED_LOOP(iterations) { __VA_ARGS__ }                                                  \
      asm volatile("mov.u32 %0, %%clock;" : "=r"(clocks[eighth]));                              \
    }                                                                                           \
    float sum = 0;                                                                              \
    _Pragma("unroll") for (int j = 0; j < 8; ++j) sum += a[j];                                  \
    unsigned sm, warp;                                                                          \
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));                                             \
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));                                         \
    if (threadIdx.x % 32 != 0) return;                                                          \
    unsigned* row = out + thread_of_grid() / 32 * 16;                                           \
    _Pragma("unroll") for (int eighth = 0; eighth <= 8; ++eighth) row[eighth] = clocks[eighth]; \
    row[9] = sm, row[10] = warp, row[11] = __float_as_uint(sum);                                \
  }

#define FUSED(j) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a[j]) : "f"(b), "f"(c));
#define POWER(j) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a[j]));

ORDER(order_chain, REPEAT_32(FUSED(0)))
ORDER(order_two_chains, REPEAT_16(FUSED(0) FUSED(1)))
ORDER(order_independent, REPEAT_8(FUSED(0) FUSED(1) FUSED(2) FUSED(3) FUSED(4) FUSED(5) FUSED(6) FUSED(7)))
#define SHIFT(j, next) asm volatile("fma.rn.f32 %0, %0, 0f3F000000, %1;" : "+f"(a[j]) : "f"(a[next]));
ORDER(order_shift, REPEAT_8(SHIFT(0, 1) SHIFT(1, 2) SHIFT(2, 3) SHIFT(3, 4) SHIFT(4, 5) SHIFT(5, 6) SHIFT(6, 7) SHIFT(7, 0)))
ORDER(order_special, REPEAT_2(POWER(0) POWER(1) POWER(2) POWER(3) POWER(4) POWER(5) POWER(6) POWER(7)))
