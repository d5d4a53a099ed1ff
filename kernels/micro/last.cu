// Calibration: how long a block waits for the last of its lines.
//
// Isolates  the latest of 1 to 32 lines from memory that the warps of a block read together: partitions, refresh and banks make one later
//           than another, and a tile waits for all of them. Lines `pitch` bytes apart, on one SM or on all.
// Supports  hbm.t_rfc, crossbar.far_cycles.
// Launch    1 block, or one on each SM; a warp a line.
// Args      in[pitch * warps of grid * steps], out[threads of grid], steps, pitch in bytes.

#include "micro.cuh"

extern "C" __global__ void last_line(const char* in, unsigned* out, int steps, unsigned pitch) {
  const unsigned warps = threads_of_grid() / 32;
  const char* at = in + static_cast<size_t>(thread_of_grid() / 32) * pitch + threadIdx.x % 32 * 4;
  unsigned sum = 0;
  COUNTED_LOOP(steps) {
    unsigned x;
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
    sum ^= x;
    if (sum == 12345u) out[0] = sum;  // the comparison waits for it; nobody's is
    __syncthreads();
    at += static_cast<size_t>(warps) * pitch;
  }
  out[thread_of_grid()] = sum;
}
