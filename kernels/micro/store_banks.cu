// Calibration: how many lines of stores L1 keeps in each bank of its tags, and how long a store is on its way.
//
// Isolates  two stores to the same words, with 1 to 8 dependent FFMA (4 cycles each) between them (store_gap); rows whose pitch decides
//           in which banks of tags their lines lie, and whether their words pass the banks of data together; 16 stores a trip to
//           the same words (store_rate).
// Supports  the merging of stores (sim/timing/sm/memory_pipe.cpp).
// Launch    by case. `per` lanes side by side have a word each of a row.
// Args      out, trips, pitch, per, rows, and zero, which is added to each address and nobody knows: the compiler neither drops a store
//           nor moves it.

#include "micro.cuh"

static __device__ __forceinline__ void store_word(char* at, float value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(__float_as_uint(value)) : "memory");
}

constexpr int kRegion = 1 << 17;  // bytes a warp has in a trip

#define FUSED asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));

#define GAP(FUSES)                                                                                             \
  extern "C" __global__ void store_gap_##FUSES(char* out, int trips, int pitch, int per, int rows, int zero) { \
    const unsigned lane = threadIdx.x & 31;                                                                    \
    if (lane / per >= rows) return;                                                                            \
    char* at = out + thread_of_grid() / 32 * kRegion + lane / per * pitch + lane % per * 4;                    \
    float x = lane;                                                                                            \
    COUNTED_LOOP(trips) {                                                                                      \
      REPEAT_64(FUSED)                                                                                         \
      store_word(at, x);                                                                                       \
      if (zero != 0) break;                                                                                    \
      _Pragma("unroll") for (int i = 0; i < FUSES; ++i) FUSED                                                  \
      store_word(at + zero, x);                                                                                \
      at += threads_of_grid() / 32 * kRegion;                                                                  \
    }                                                                                                          \
  }
GAP(1)
GAP(2)
GAP(3)
GAP(4)
GAP(5)
GAP(6)
GAP(7)
GAP(8)

extern "C" __global__ void store_rate(char* out, int trips, int pitch, int per, int rows, int zero) {
  const unsigned lane = threadIdx.x & 31;
  if (lane / per >= rows) return;
  char* at = out + thread_of_grid() / 32 * kRegion + lane / per * pitch + lane % per * 4;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int i = 0; i < 16; ++i) store_word(at + i * zero, 1.0f);
  }
}
