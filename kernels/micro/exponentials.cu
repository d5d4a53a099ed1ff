// What an exponential costs a warp that has others under way. Quantities: kernels/micro/quantities.yaml.
//
// Isolates  the latency of MUFU behind others: each exponential's result is added up so many exponentials later (ahead), with
//           and without an FFMA before each.
// Supports  latency.mufu, pipes.xu.
// Launch    132 blocks (one an SM) of 32 or 256 threads.
// Args      out[threads], iterations. An iteration is 64 exponentials a warp.

#include "micro.cuh"

template <int kAhead, bool kScaled>
static __device__ __forceinline__ void exponentials(float* out, int iterations) {
  float x[8], sum[4] = {}, y = threadIdx.x, z = iterations;
  _Pragma("unroll") for (int i = 0; i < 8; ++i) x[i] = iterations * i;
  COUNTED_LOOP(iterations) {
    _Pragma("unroll") for (int k = 0; k < 64; ++k) {
      float& now = x[k % 8];
      if constexpr (kScaled) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(now) : "f"(y), "f"(z));
      asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(now));
      asm volatile("add.f32 %0, %0, %1;" : "+f"(sum[k % 4]) : "f"(x[(k + 8 - kAhead) % 8]));
    }
  }
  float all = 0;
  _Pragma("unroll") for (int i = 0; i < 8; ++i) all += x[i];
  _Pragma("unroll") for (int i = 0; i < 4; ++i) all += sum[i];
  out[thread_of_grid()] = all;
}

#define EXPONENTIALS(AHEAD)                                                              \
  extern "C" __global__ void exp_add_##AHEAD(float* out, int iterations) {               \
    exponentials<AHEAD, false>(out, iterations);                                         \
  }                                                                                      \
  extern "C" __global__ void exp_scaled_add_##AHEAD(float* out, int iterations) {        \
    exponentials<AHEAD, true>(out, iterations);                                          \
  }
EXPONENTIALS(0)
EXPONENTIALS(1)
EXPONENTIALS(2)
EXPONENTIALS(3)
EXPONENTIALS(5)
