// Calibration: who goes next when a memory queue is full.
//
// Isolates  the order in which warps of a sub-partition get the places of a full queue: every warp sends memory instructions,
//           then multiplies. Served in turn, all warps come to their multiplications together, and these add to the time; served
//           one warp after another, they hide behind the others' memory instructions. `out` holds the SM's clock of each warp
//           after each eighth of its memory instructions.
// Supports  the choice among ready warps (sim/timing/sm/sm_issue.cpp), memory_pipe.queue_entries.
// Launch    132 blocks of 128 to 1024.
// Args      out[warps of grid * 10], eighths of trips of 16 memory instructions, trips of 64 FFMA after them.

#include "micro.cuh"

#define LDS "ld.volatile.shared.u32 %0, [%1];"
#define LDS_BY_8 "ld.volatile.shared.u32 %0, [%2];"
#define LDG "ld.global.ca.u32 %0, [%3];"

// Warps of a sub-partition take turns to do FIRST or SECOND.
#define QUEUE(NAME, FIRST, SECOND)                                                                                          \
  extern "C" __global__ void NAME(unsigned* out, const unsigned* in, int trips, int multiplications) {                     \
    __shared__ unsigned words[32 * 8];                                                                                      \
    for (int i = threadIdx.x; i < 32 * 8; i += blockDim.x) words[i] = 0;                                                    \
    __syncthreads();                                                                                                        \
    const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(words));                                           \
    const unsigned at = base + 4 * (threadIdx.x & 31), far = base + 32 * (threadIdx.x & 31);                                \
    const unsigned long long global = reinterpret_cast<unsigned long long>(in + (threadIdx.x & 31));                        \
    const bool second = (threadIdx.x / 128) % 2 == 1;                                                                       \
    unsigned x = 0, sum = 0, clocks[10];                                                                                    \
    clocks[0] = clock_now();                                                                                                \
    _Pragma("unroll") for (int eighth = 1; eighth <= 8; ++eighth) {                                                         \
      if (second) {                                                                                                         \
        COUNTED_LOOP(trips) { REPEAT_16(asm volatile(SECOND : "=r"(x) : "r"(at), "r"(far), "l"(global) : "memory"); sum ^= x;) }    \
      } else {                                                                                                              \
        COUNTED_LOOP(trips) { REPEAT_16(asm volatile(FIRST : "=r"(x) : "r"(at), "r"(far), "l"(global) : "memory"); sum ^= x;) }     \
      }                                                                                                                     \
      clocks[eighth] = clock_now();                                                                                         \
    }                                                                                                                       \
    float a[4] = {1.0f, 2.0f, 3.0f, static_cast<float>(sum)};                                                               \
    COUNTED_LOOP(multiplications) {                                                                                         \
      REPEAT_16(asm volatile("fma.rn.f32 %0, %0, %0, %0; fma.rn.f32 %1, %1, %1, %1; fma.rn.f32 %2, %2, %2, %2; "            \
                             "fma.rn.f32 %3, %3, %3, %3;" : "+f"(a[0]), "+f"(a[1]), "+f"(a[2]), "+f"(a[3]));)               \
    }                                                                                                                       \
    clocks[9] = clock_now();                                                                                                \
    if ((threadIdx.x & 31) != 0) return;                                                                                    \
    unsigned* of_warp = out + thread_of_grid() / 32 * 10;                                                                   \
    _Pragma("unroll") for (int i = 0; i < 10; ++i) of_warp[i] = clocks[i] + (a[0] + a[1] + a[2] + a[3] == 0.12345f);        \
  }

QUEUE(queue_shared, LDS, LDS)
QUEUE(queue_global, LDG, LDG)
QUEUE(queue_shared_and_global, LDS, LDG)
QUEUE(queue_shared_and_conflicts, LDS, LDS_BY_8)
