// Calibration: reductions of one, two and four values a lane, and of few lanes a sector.
//
// Isolates  the rate at which L2 adds 4, 8 and 16 bytes a lane, lanes side by side, every warp at a place of its own (reduce_*); what
//           an atomic of a few lanes a row takes, as sums of an mma fragment are added up in memory: rows of a block's own, and
//           tiles that all blocks go through, in step or each from another on (reduce_rows).
// Supports  l2.atomic_interval.
// Launch    132 blocks (one an SM) of any size.
// Args      out, trips, then by kernel. A trip is 8 reductions a thread.

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

// A warp adds to rows `pitch` words apart, in each with `lanes` lanes `spread` words apart, eight times 8 words further. Blocks have
// places `apart` words from each other; block b begins with tile b * from, and every trip goes to the next of `tiles`, `step` words on.
extern "C" __global__ void reduce_rows(float* out, int trips, unsigned lanes, unsigned spread, unsigned pitch, unsigned apart,
                                       unsigned from, unsigned tiles, unsigned step) {
  const unsigned lane = threadIdx.x & 31, rows = 32 / lanes;
  float* const place = out + blockIdx.x * apart + (threadIdx.x / 32 * rows + lane / lanes) * pitch + lane % lanes * spread;
  unsigned tile = blockIdx.x * from % tiles;
  COUNTED_LOOP(trips) {
    float* const at = place + tile * step;
#pragma unroll
    for (int k = 0; k < 8; ++k) asm volatile("red.global.add.f32 [%0], %1;" ::"l"(at + 8 * k), "f"(1.0f) : "memory");
    tile = tile + 1 == tiles ? 0 : tile + 1;
  }
}
