// Calibration: what L1 puts together of stores as tiles of products are stored, eight rows of quarters of sectors a store.
//
// Isolates  a warp's tile of 8 rows of 128 bytes: eight stores, each of which brings 16 bytes of every row, in the order of the row
//           (along), with the other half of a sector four stores later (apart) or as a compiler shuffles them (mixed), with 0 to 8
//           dependent FFMA between two stores; by one warp, several, and on all SMs.
// Supports  l1.store_buffer_lines, l1.store_wait_cycles (sim/timing/sm/memory_pipe.cpp).
// Launch    by case. Rows are 512 bytes apart.
// Args      out, trips. A trip is a tile a warp.

#include "micro.cuh"

template <int kBetween>
static __device__ __forceinline__ void part(char* at, float& x) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(1u) : "memory");
#pragma unroll
  for (int i = 0; i < kBetween; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));
}

template <int kBetween, int a, int b, int c, int d, int e, int f, int g, int h>
static __device__ __forceinline__ void tiles(char* out, int trips) {
  const unsigned lane = threadIdx.x & 31;
  char* at = out + thread_of_grid() / 32 * 4096 + lane / 4 * 512 + lane % 4 * 4;
  float x = threadIdx.x;
  COUNTED_LOOP(trips) {
    part<kBetween>(at + 16 * a, x);
    part<kBetween>(at + 16 * b, x);
    part<kBetween>(at + 16 * c, x);
    part<kBetween>(at + 16 * d, x);
    part<kBetween>(at + 16 * e, x);
    part<kBetween>(at + 16 * f, x);
    part<kBetween>(at + 16 * g, x);
    part<kBetween>(at + 16 * h, x);
    at += threads_of_grid() / 32 * 4096;
  }
}

#define OF(BETWEEN)                                                                        \
  extern "C" __global__ void store_rows_along_##BETWEEN(char* out, int trips) {            \
    tiles<BETWEEN, 0, 1, 2, 3, 4, 5, 6, 7>(out, trips);                                    \
  }                                                                                        \
  extern "C" __global__ void store_rows_apart_##BETWEEN(char* out, int trips) {            \
    tiles<BETWEEN, 0, 2, 4, 6, 1, 3, 5, 7>(out, trips);                                    \
  }                                                                                        \
  extern "C" __global__ void store_rows_mixed_##BETWEEN(char* out, int trips) {            \
    tiles<BETWEEN, 0, 2, 4, 3, 1, 5, 6, 7>(out, trips);                                    \
  }
OF(0)
OF(2)
OF(8)
