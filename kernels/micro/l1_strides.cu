// Calibration: words at strides out of L1, as RRZE gpu-strides reads them.
//
// Isolates  the cycles of an SM a load takes when its lanes lie `stride` words apart, all of it in L1: bank conflicts against lines.
// Supports  l1.tags_per_cycle, memory_pipe.shared_wavefront_cycles.
// Launch    blocks of 512 threads, one an SM.
// Args      in[31 x stride + 1] holds zeros; out[threads]; iterations of 8 loads a thread; stride in words.

#include "micro.cuh"

extern "C" __global__ void l1_strides(const char* in, unsigned* out, int iterations, int stride) {
  const char* at = in + threadIdx.x % 32 * 4ull * stride;
  unsigned loaded[8] = {};
  COUNTED_LOOP(iterations) {
    _Pragma("unroll") for (int j = 0; j < 8; ++j) loaded[j] = chase_cached(at, loaded[j]);
  }
  unsigned sum = 0;
  _Pragma("unroll") for (int j = 0; j < 8; ++j) sum ^= loaded[j];
  out[thread_of_grid()] = sum;
}
