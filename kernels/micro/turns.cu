// Calibration: whose turn it is when a pipe is busy.
//
// Isolates  whether a warp keeps a busy pipe or the warps of its sub-partition take turns: each issues 16 independent instructions to
//           one pipe, then runs a dependent chain. If a warp keeps the pipe, one warp's chain hides behind the other's 16; if they
//           take turns, all reach their chains together and the pipe idles.
// Supports  the choice among ready warps (sim/timing/sm/sm_issue.cpp).
// Launch    132 blocks (one an SM) of 4, 8 or 16 warps.
// Args      out[threads], trips. A trip is 16 of the pipe's instructions and a chain of 16.

#include "micro.cuh"
#include "mma.cuh"

using Half = f16_16816_f32;

// The chain begins with what all of the pipe's instructions made, and they with what it makes: the compiler mixes nothing.
#define CHAIN(X) REPEAT_16(asm volatile("mad.lo.u32 %0, %0, %0, %0;" : "+r"(X));)

extern "C" __global__ void turns_mma(unsigned* out, int trips) {
  float sums[16][4] = {};
  unsigned a[4] = {}, b[2] = {}, x = threadIdx.x;
  COUNTED_LOOP(trips) {
    a[0] = x;
#pragma unroll
    for (int i = 0; i < 16; ++i) Half::multiply(sums[i], a, b);
    x = 0;
#pragma unroll
    for (int i = 0; i < 16; ++i) x ^= __float_as_uint(sums[i][0]);
    CHAIN(x);
  }
  out[thread_of_grid()] = x;
}

#define TURNS(NAME, TYPE, CONSTRAINT, CODE)                                                                      \
  extern "C" __global__ void turns_##NAME(unsigned* out, int trips) {                                            \
    TYPE v[16];                                                                                                  \
    for (int i = 0; i < 16; ++i) v[i] = static_cast<TYPE>(threadIdx.x + i);                                      \
    unsigned x = threadIdx.x;                                                                                    \
    COUNTED_LOOP(trips) {                                                                                        \
      const TYPE by = static_cast<TYPE>(x);                                                                      \
      _Pragma("unroll") for (int i = 0; i < 16; ++i) asm volatile(CODE : "+" CONSTRAINT(v[i]) : CONSTRAINT(by)); \
      x = 0;                                                                                                     \
      _Pragma("unroll") for (int i = 0; i < 16; ++i) x ^= static_cast<unsigned>(v[i]);                           \
      CHAIN(x);                                                                                                  \
    }                                                                                                            \
    out[thread_of_grid()] = x;                                                                                   \
  }
TURNS(lop3, unsigned, "r", "lop3.b32 %0, %0, 0x1234567, %1, 0x1e;")
TURNS(imad, unsigned, "r", "mad.lo.u32 %0, %0, %1, %0;")
