// Calibration: kernel arguments and other constants that all threads share, as ordinary code meets them.
//
// Isolates  loads on the uniform datapath, each awaited by an ordinary operation before the next may reuse its register (ULDC on
//           sm_90); arithmetic whose factor is an argument, in a chain and in 8 chains (a uniform or a constant operand,
//           whichever the compiler gives the architecture).
// Supports  issue.constant_hit_cycles, pipes.uniform.{interval,latency}, pipes.fma.{interval,latency}.
// Launch    132 blocks of 32 or of 512: one an SM.
// Args      out[threads], iterations, then the step in words or four factors. Every iteration is 8 loads or 64 FFMA.

#include "micro.cuh"

__constant__ unsigned shared_table[256];

// A word `step` words further on each time: the same in all threads, and read by an operation of each thread's own.
extern "C" __global__ void uniform_load(unsigned* out, int iterations, int step) {
  unsigned sum = threadIdx.x, at = 0;
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      sum = (sum ^ shared_table[at & 255]) * 3;
      at += step;
    }
  }
  out[thread_of_grid()] = sum;
}

#define FFMA(a, factor, b) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(factor), "f"(b))

#define ARGUMENT_FACTORS(NAME, COUNT)                                                                            \
  extern "C" __global__ void NAME(float* out, int iterations, float f0, float f1, float f2, float f3) {          \
    const float b = threadIdx.x * 0.5f;                                                                          \
    float a[COUNT];                                                                                              \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) a[j] = b * (j + 1);                                        \
    COUNTED_LOOP(iterations) {                                                                                   \
      _Pragma("unroll") for (int k = 0; k < 64; ++k) {                                                           \
        FFMA(a[k % COUNT], k % 4 == 0 ? f0 : k % 4 == 1 ? f1 : k % 4 == 2 ? f2 : f3, b);                         \
      }                                                                                                          \
    }                                                                                                            \
    float sum = a[0];                                                                                            \
    _Pragma("unroll") for (int j = 1; j < COUNT; ++j) sum += a[j];                                               \
    out[thread_of_grid()] = sum;                                                                                 \
  }

ARGUMENT_FACTORS(ffma_argument_dependent, 1)
ARGUMENT_FACTORS(ffma_argument_independent, 8)
