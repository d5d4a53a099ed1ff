// Calibration: the instruction caches.
//
// Isolates  fetching: a kernel of 24 pieces of 8 KiB of independent FFMA in a row, of which the first `pieces` run, `passes`
//           times. Slope over passes: a warm pass, by footprint; slope over pieces at one pass: code that nobody has fetched.
// Supports  icache.{l0_bytes,l1_bytes,l2_bytes,line_bytes,l1_hit_cycles,l2_hit_cycles,memory_cycles,prefetch_lines}.
// Launch    132 blocks of 32: one warp an SM; 128: one a sub-partition; or one block.
// Args      out[threads], pieces, passes, seed.

#include "micro.cuh"

#define FFMA(a) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(b), "f"(c));
#define PIECE                                                                                            \
  REPEAT_64(FFMA(a0) FFMA(a1) FFMA(a2) FFMA(a3) FFMA(a4) FFMA(a5) FFMA(a6) FFMA(a7))                     \
  if (--left == 0) goto next;

extern "C" __global__ void straight_line(float* out, int pieces, int passes, float seed) {
  const float b = seed + threadIdx.x, c = seed - threadIdx.x;
  float a0 = b, a1 = b * 2, a2 = b * 3, a3 = b * 4, a4 = b * 5, a5 = b * 6, a6 = b * 7, a7 = b * 8;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    int left = pieces;
    REPEAT_8(PIECE)
    REPEAT_16(PIECE)
  next:;
  }
  out[thread_of_grid()] = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7;
}
