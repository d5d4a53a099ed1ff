// Calibration: the constant cache.
//
// Isolates  indexed loads of constant memory, each waiting for the last, over `mask` + 1 bytes in steps of `step`: a line
//           that stays, footprints beyond the first cache, and the first touch of a line.
// Supports  issue.constant_hit_cycles, constant_miss_cycles, constant_line_bytes.
// Launch    132 blocks of 32.
// Args      out[threads], iterations, mask, step (bytes). Every iteration is 8 loads.

#include "micro.cuh"

__constant__ unsigned table[16384];

extern "C" __global__ void constant_chase(unsigned* out, int iterations, unsigned mask, unsigned step) {
  unsigned at = (threadIdx.x & 0) + step, loaded = threadIdx.x >> 10;
  COUNTED_LOOP(iterations) {
    REPEAT_8(loaded = *reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(table) + at + loaded);
             at = (at + step) & mask;)
  }
  out[thread_of_grid()] = loaded;
}
