// Calibration: how many loads an SM has under way.
//
// Isolates  what is full when warps that load without end have to wait before any data has come: loads of 1, 2, 4, 8 and 32 lines, each
//           warp's 24 one after another. The clocks at which they are sent stand still once as many loads, or lines, wait for
//           data as can.
// Supports  l1.loads_in_flight, l1.miss_lines.
// Launch    1 block an SM, of 512 or 1024.
// Args      in[threads of grid * 24 * words a lane], out[32 * warps of grid]: when each load of a warp had been sent, since the first,
//           when all data was there, and when it began; read with `forewarp-run --dump out=FILE`.

#include "micro.cuh"

constexpr int kLoads = 24;

static __device__ __forceinline__ unsigned word(const char* at) {
  unsigned x;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  return x;
}

static __device__ __forceinline__ unsigned two_words(const char* at) {
  unsigned x;
  asm volatile("{ .reg .u32 y; ld.global.v2.u32 {%0, y}, [%1]; }" : "=r"(x) : "l"(at) : "memory");
  return x;
}

static __device__ __forceinline__ unsigned four_words(const char* at) {
  unsigned x;
  asm volatile("{ .reg .u32 y, z, w; ld.global.v4.u32 {%0, y, z, w}, [%1]; }" : "=r"(x) : "l"(at) : "memory");
  return x;
}

#define IN_FLIGHT(NAME, LOAD, LANE_BYTES)                                                                              \
  extern "C" __global__ void in_flight_##NAME(const char* in, unsigned* out) {                                         \
    const unsigned warp = thread_of_grid() / 32, lane = threadIdx.x % 32;                                              \
    const char* at = in + static_cast<size_t>(warp) * (kLoads * 32 * LANE_BYTES) + lane * LANE_BYTES;                  \
    unsigned value[kLoads], sent[kLoads], sum = 0;                                                                     \
    const unsigned start = clock_now();                                                                                \
    _Pragma("unroll") for (int k = 0; k < kLoads; ++k) {                                                               \
      value[k] = LOAD(at + k * 32 * LANE_BYTES);                                                                       \
      sent[k] = clock_now() - start;                                                                                   \
    }                                                                                                                  \
    _Pragma("unroll") for (int k = 0; k < kLoads; ++k) sum += value[k];                                                \
    asm volatile("mov.b32 %0, %0;" : "+r"(sum)::"memory");                                                             \
    const unsigned done = clock_now() - start + (sum == 12345u);                                                       \
    if (lane != 0) return;                                                                                             \
    _Pragma("unroll") for (int k = 0; k < kLoads; ++k) out[32 * warp + k] = sent[k];                                   \
    out[32 * warp + kLoads] = done;                                                                                    \
    out[32 * warp + kLoads + 1] = start;                                                                               \
  }

IN_FLIGHT(lines_1, word, 4)
IN_FLIGHT(lines_2, two_words, 8)
IN_FLIGHT(lines_4, four_words, 16)
IN_FLIGHT(lines_8, word, 32)
IN_FLIGHT(lines_32, word, 128)
