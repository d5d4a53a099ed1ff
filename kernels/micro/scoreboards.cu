// Calibration: how many loads of a warp one of its scoreboards counts.
//
// Isolates  what a warp waits for that loads without end while the SM and its queues have room: each load's clock stands still
//           once the scoreboard that all of them count on is full, until the first has its data.
// Supports  issue.scoreboard_limit.
// Launch    1 block of 1 to 8 warps.
// Args      in[at least threads * 72 * words a lane], out[96 * warps]: when each load of a warp had been sent, since the first, and when
//           all data was there; read with `forewarp-run --dump out=FILE`.

#include "micro.cuh"

constexpr int kLoads = 72;

// Without the barrier, ptxas lets each clock wait for the last: 40 cycles a load instead of 8.
#define SCOREBOARDS(NAME, LANE_BYTES, LOAD)                                                                            \
  extern "C" __global__ void scoreboards_##NAME(const char* in, unsigned* out) {                                       \
    const unsigned warp = thread_of_grid() / 32, lane = threadIdx.x % 32;                                              \
    const char* at = in + static_cast<size_t>(warp) * (kLoads * 32 * LANE_BYTES) + lane * LANE_BYTES;                  \
    unsigned value[kLoads], sent[kLoads], sum = 0;                                                                     \
    __syncthreads();                                                                                                   \
    const unsigned start = clock_now();                                                                                \
    _Pragma("unroll") for (int k = 0; k < kLoads; ++k) {                                                               \
      asm volatile(LOAD : "=r"(value[k]) : "l"(at + k * 32 * LANE_BYTES) : "memory");                                  \
      sent[k] = clock_now() - start;                                                                                   \
    }                                                                                                                  \
    _Pragma("unroll") for (int k = 0; k < kLoads; ++k) sum += value[k];                                                \
    asm volatile("mov.b32 %0, %0;" : "+r"(sum)::"memory");                                                             \
    const unsigned done = clock_now() - start;                                                                         \
    if (lane == 0) {                                                                                                   \
      _Pragma("unroll") for (int k = 0; k < kLoads; ++k) out[96 * warp + k] = sent[k];                                 \
      out[96 * warp + kLoads] = done + (sum == 12345u);                                                                \
    }                                                                                                                  \
  }

SCOREBOARDS(32, 4, "ld.global.u32 %0, [%1];")
SCOREBOARDS(64, 8, "{ .reg .u32 y; ld.global.v2.u32 {%0, y}, [%1]; }")
