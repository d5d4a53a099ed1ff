// Calibration: barriers and fences.
//
// Isolates  BAR.SYNC by the warps of a block and by the blocks of an SM; memory fences after a store.
// Supports  issue.barrier_release_cycles, barrier_per_warp_cycles, membar_gpu_cycles, membar_cta_cycles, pipes.adu.interval.
// Launch    132 blocks of 32 to 1024; 264 blocks of 512: two an SM.
// Args      out[threads], iterations. Every iteration is 8 barriers, or 4 stores and fences.

#include "micro.cuh"

extern "C" __global__ void sync_threads(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_8(asm volatile("bar.sync 0;" ::: "memory");) }
  out[thread_of_grid()] = iterations;
}

#define STORE asm volatile("st.global.u32 [%0], %1;" ::"l"(out + thread_of_grid()), "r"(iteration) : "memory");

extern "C" __global__ void fence_gpu(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_4(STORE __threadfence();) }
}

extern "C" __global__ void fence_block(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_4(STORE __threadfence_block();) }
}
