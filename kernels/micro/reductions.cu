// Calibration: reductions of one, two and four values a lane.
//
// Isolates  the rate at which L2 adds 4, 8 and 16 bytes a lane, lanes side by side, every warp at a place of its own.
// Supports  l2.atomic_line_cycles.
// Launch    132 blocks (one an SM) of any size.
// Args      out, trips, words a warp's places are apart. A trip is 8 reductions a thread.

#include "../common/hopper.cuh"
#include "micro.cuh"

#define REDUCE(NAME, WORDS, CODE)                                                                                     \
  extern "C" __global__ void NAME(float* out, int trips, int apart) {                                                  \
    float* at = out + (thread_of_grid() / 32) * static_cast<unsigned>(apart) + WORDS * (threadIdx.x & 31);             \
    COUNTED_LOOP(trips) {                                                                                              \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) { CODE; }                                                          \
    }                                                                                                                  \
  }

REDUCE(reduce_1, 1, asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at + 32 * k), "f"(1.0f) : "memory"))
REDUCE(reduce_2, 2, asm volatile("red.global.add.v2.f32 [%0], {%1, %1};" ::"l"(at + 64 * k), "f"(1.0f) : "memory"))
REDUCE(reduce_4, 4, asm volatile("red.global.add.v4.f32 [%0], {%1, %1, %1, %1};" ::"l"(at + 128 * k), "f"(1.0f) : "memory"))
