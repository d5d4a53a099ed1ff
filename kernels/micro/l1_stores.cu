// Calibration: stores that L1 puts together before they go to L2, and what a store finds in L1.
//
// Isolates  eight stores to the words of one sector a lane, with 0 to 16 dependent FFMA (4 cycles each) between them; the same with
//           other warps storing beside; one lane that goes round 2 to 8 lines; stores to lines that were loaded or stored before.
// Supports  the merging of stores and the tags of L1 (sim/timing/sm/memory_pipe.cpp, l1_cache.h).
// Launch    by case. Lane i of a warp has the i-th sector of the warp's 8 lines.

#include "micro.cuh"

static __device__ __forceinline__ void store_word(unsigned* at, float value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(__float_as_uint(value)) : "memory");
}

#define STORES(NAME, BETWEEN)                                                                            \
  extern "C" __global__ void NAME(unsigned* out, int lanes, int rounds) {                                \
    float x = threadIdx.x;                                                                               \
    if (threadIdx.x % 32 >= lanes) return;                                                               \
    unsigned* row = out + thread_of_grid() * 8;                                                          \
    COUNTED_LOOP(rounds) {                                                                               \
      _Pragma("unroll") for (int word = 0; word < 8; ++word) {                                           \
        store_word(row + word, x);                                                                       \
        BETWEEN                                                                                          \
      }                                                                                                  \
      row += threads_of_grid() * 8;                                                                      \
    }                                                                                                    \
  }
#define FUSED asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));

STORES(stores_0, )
STORES(stores_1, FUSED)
STORES(stores_2, REPEAT_2(FUSED))
STORES(stores_4, REPEAT_4(FUSED))
STORES(stores_8, REPEAT_8(FUSED))
STORES(stores_16, REPEAT_16(FUSED))

// One lane a warp stores to the first sectors of `LINES` lines in turn, eight times.
#define ROUND(LINES)                                                                                     \
  extern "C" __global__ void stores_round_##LINES(unsigned* out, int rounds) {                           \
    if (threadIdx.x % 32 != 0) return;                                                                   \
    unsigned* row = out + thread_of_grid() * LINES;                                                      \
    COUNTED_LOOP(rounds) {                                                                               \
      _Pragma("unroll") for (int word = 0; word < 8; ++word)                                             \
          _Pragma("unroll") for (int line = 0; line < LINES; ++line) store_word(row + line * 32 + word, 1.0f); \
      row += threads_of_grid() * LINES;                                                                  \
    }                                                                                                    \
  }
ROUND(1)
ROUND(2)
ROUND(3)
ROUND(4)
ROUND(8)

// Half lines, by whole warps: each store fills the half that the one before has left.
extern "C" __global__ void stores_halves(unsigned* out, int rounds) {
  unsigned* row = out + thread_of_grid() / 16 * 32 + threadIdx.x % 16;
  COUNTED_LOOP(rounds) {
    store_word(row, 1.0f);
    store_word(row + 16, 1.0f);
    row += threads_of_grid() * 2;
  }
}

// What a store finds: 0 lines loaded before, 1 lines stored before, 2 the other half of a line stored before.
extern "C" __global__ void stores_find(unsigned* out, unsigned* sink, int rounds, int kind) {
  unsigned* row = out + thread_of_grid();
  unsigned sum = 0;
  COUNTED_LOOP(rounds) {
    if (kind == 0) {
      unsigned v;
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(row));
      sum += v;
    }
    if (kind == 1 || (kind == 2 && threadIdx.x % 32 < 16)) store_word(row, 2.0f);
    __syncthreads();
    if (kind != 2 || threadIdx.x % 32 >= 16) store_word(row, __uint_as_float(sum));
    row += threads_of_grid();
  }
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}

// What a load finds that follows a store: of the word that was stored (width 1), or of the whole line.
extern "C" __global__ void stores_load(unsigned* out, unsigned* sink, int rounds, int whole) {
  unsigned* row = out + thread_of_grid();
  unsigned sum = 0;
  COUNTED_LOOP(rounds) {
    const bool mine = threadIdx.x % 8 == 0;
    if (mine) store_word(row, 2.0f);
    __syncthreads();
    unsigned v = 0;
    if (whole || mine) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(row));
    sum += v;
    row += threads_of_grid();
  }
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}
