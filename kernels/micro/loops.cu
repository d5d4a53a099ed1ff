// Calibration: loops of a few instructions.
//
// Isolates  what warps wait for that branch often: one to 32 dependent FMULs and the counter a turn. One block of one to
//           eight warps a sub-partition; blocks side by side, older ones and younger ones; loops that begin with the last
//           instruction of a line of code.
// Supports  icache.feed_{cycles,line_cycles,interval_cycles,lines}; the order of issue.
// Launch    132 to 1056 blocks of 128 to 1024.
// Args      out[threads], iterations.

#include "micro.cuh"

#define FMUL(a) asm volatile("mul.f32 %0, %0, 0f3F800001;" : "+f"(a));
// What stands `before` the loop moves where in a line of code it begins.
#define LOOPS(NAME, BEFORE, BODY)                               \
  extern "C" __global__ void NAME(float* out, int iterations) { \
    float a = threadIdx.x, other = a;                           \
    __syncthreads();                                            \
    BEFORE                                                      \
    COUNTED_LOOP(iterations) { BODY }                           \
    out[thread_of_grid()] = a + other;                          \
  }

LOOPS(loops_1, , FMUL(a))
LOOPS(loops_2, , REPEAT_2(FMUL(a)))
LOOPS(loops_3, , REPEAT_2(FMUL(a)) FMUL(a))
LOOPS(loops_4, , REPEAT_4(FMUL(a)))
LOOPS(loops_6, , REPEAT_4(FMUL(a)) REPEAT_2(FMUL(a)))
LOOPS(loops_8, , REPEAT_8(FMUL(a)))
LOOPS(loops_16, , REPEAT_16(FMUL(a)))
LOOPS(loops_32, , REPEAT_32(FMUL(a)))

#define AHEAD REPEAT_4(FMUL(other)) REPEAT_2(FMUL(other))
LOOPS(loops_2_last, AHEAD, REPEAT_2(FMUL(a)))
LOOPS(loops_4_last, AHEAD, REPEAT_4(FMUL(a)))
LOOPS(loops_8_last, AHEAD, REPEAT_8(FMUL(a)))
