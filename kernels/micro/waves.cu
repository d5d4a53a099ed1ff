// Calibration: thread blocks over the SMs, and the tails of waves.
//
// Isolates  which SM each block goes to, when it starts and when it ends (block_place: what a grid's order does to blocks of
//           unequal length); cycles of grids just under, at and just over a whole number of waves (block_work, block_copy).
// Supports  launch.blocks_per_cycle_x16, launch.block_start_cycles, launch.block_end_cycles, chip.tpcs_per_gpc, the order in
//           which blocks are dealt out.
// Launch    any grid; dynamic shared memory sets how many blocks an SM holds.
// Args      by kernel. A block of block_work and block_place runs trips + step * (blockIdx.x % modulus) x 64 dependent FFMA.

#include "micro.cuh"

static __device__ __forceinline__ float chained(int trips) {
  float value = threadIdx.x;
  COUNTED_LOOP(trips) { REPEAT_64(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));) }
  return value;
}

extern "C" __global__ void block_work(float* out, int trips, int step, int modulus) {
  const float value = chained(trips + step * (blockIdx.x % modulus));
  out[thread_of_grid()] = value;
}

static __device__ __forceinline__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)::"memory");
  return now;
}

// Four numbers a block: its SM, the GPU's clock in ns as it starts and as it ends, and the SM's own clock as it starts; read with
// `forewarp-run --dump out=FILE`. A prediction of them means nothing.
extern "C" __global__ void block_place(unsigned long long* where, int trips, int step, int modulus) {
  const unsigned long long start = nanoseconds();
  const unsigned long long clock = clock64();
  const float value = chained(trips + step * (blockIdx.x % modulus));
  if (threadIdx.x != 0) return;
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  unsigned long long* at = where + 4ull * blockIdx.x;
  at[0] = sm + (value == 12345.0f ? 1000 : 0);
  at[1] = start;
  at[2] = nanoseconds();
  at[3] = clock;
}

// A block copies `steps` times 16 bytes a thread.
extern "C" __global__ void block_copy(const uint4* in, uint4* out, int steps) {
  const size_t first = (static_cast<size_t>(blockIdx.x) * steps) * blockDim.x + threadIdx.x;
  _Pragma("unroll 4") for (int step = 0; step < steps; ++step) out[first + step * blockDim.x] = in[first + step * blockDim.x];
}
