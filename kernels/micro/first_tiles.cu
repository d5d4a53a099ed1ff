// Calibration: how long blocks that begin together wait for their first tiles, which come from memory by asynchronous copies.
//
// Isolates  tiles of 128 rows of 64 bytes (tall), of 32 rows of 256 bytes (wide) and both, as a step of a product takes them: by one
//           block and by all SMs, each with tiles of its own or with some that others read too, one step or several before the wait.
// Supports  l2.coalescer_cycles, hbm.t_faw, crossbar.gpc_response_bytes_per_cycle.
// Launch    block 256, 96 KiB of dynamic shared memory. Blocks that follow each other `columns` apart read the same wide tiles; those of
//           one row of columns the same tall ones.
// Args      out, in, columns, bytes from row to row, steps.

#include "micro.cuh"

static __device__ __forceinline__ void copy_16(unsigned to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

template <bool kTall, bool kWide>
static __device__ __forceinline__ void tiles(unsigned* out, const char* in, int columns, int pitch, int steps) {
  extern __shared__ char room[];
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 16 * threadIdx.x;
  const unsigned row = blockIdx.x / columns, column = blockIdx.x % columns;
  const char* tall = in + (row * 128 + threadIdx.x / 4) * static_cast<size_t>(pitch) + threadIdx.x % 4 * 16;
  const char* wide = in + (size_t{1} << 28) + threadIdx.x / 16 * static_cast<size_t>(pitch) + column * 256 + threadIdx.x % 16 * 16;
  COUNTED_LOOP(steps) {
    if (kTall) {
      copy_16(to, tall);
      copy_16(to + 4096, tall + 64 * static_cast<size_t>(pitch));
      tall += 64;
    }
    if (kWide) {
      copy_16(to + 8192, wide);
      copy_16(to + 12288, wide + 16 * static_cast<size_t>(pitch));
      wide += 32 * static_cast<size_t>(pitch);
    }
    to += 16384;
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  asm volatile("cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  out[thread_of_grid()] = *reinterpret_cast<unsigned*>(room + 16 * threadIdx.x);
}

#define TILES(NAME, TALL, WIDE)                                                                                  \
  extern "C" __global__ void first_tiles_##NAME(unsigned* out, const char* in, int columns, int pitch, int steps) { \
    tiles<TALL, WIDE>(out, in, columns, pitch, steps);                                                           \
  }
TILES(tall, true, false)
TILES(wide, false, true)
TILES(both, true, true)
