// Calibration: what lies between a block and its successor in the same place.
//
// Isolates  the time from a block's last warp to its successor's first instruction, and whether stores under way lengthen it
//           (turnover_work: a store between two stretches of arithmetic; turnover_copy: one load and one store a thread).
// Supports  launch.block_start_cycles, launch.block_end_cycles, launch.warp_start_interval, issue.exit_cycles.
// Launch    any grid; dynamic shared memory sets how many blocks an SM holds.
// Args      record[warps]: the SM's clock as the warp starts, as its first stretch (or load) is over, as it has stored, and its
//           SM and hardware warp; read with `forewarp-run --dump record=FILE`. Trips of 64 dependent FFMA.

#include "micro.cuh"

static __device__ __forceinline__ unsigned place() {
  unsigned sm, warp;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  return sm << 16 | warp;
}

static __device__ __forceinline__ float chained(float value, int trips) {
  COUNTED_LOOP(trips) { REPEAT_64(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(value));) }
  return value;
}

// The store lies `after` trips before the end: with enough of them nothing is under way when the warp exits.
extern "C" __global__ void turnover_work(uint4* record, int before, int after) {
  const unsigned start = clock_now();
  float value = chained(threadIdx.x, before);
  const unsigned middle = clock_now();
  if (threadIdx.x % 32 == 0) record[thread_of_grid() / 32] = make_uint4(start, middle, __float_as_uint(value), place());
  value = chained(value, after);
  if (value == 12345.0f) record[0].z = 0;
}

// A thread copies 4 bytes, as the streams of the ladders do.
extern "C" __global__ void turnover_copy(const float* in, float* out, uint4* record) {
  const unsigned start = clock_now();
  const unsigned thread = thread_of_grid();
  float value = in[thread];
  asm volatile("add.f32 %0, %0, 0f3F800000;" : "+f"(value)::"memory");
  const unsigned loaded = clock_now();
  out[thread] = value;
  const unsigned stored = clock_now();
  if (threadIdx.x % 32 == 0) record[thread / 32] = make_uint4(start, loaded, stored, place());
}

// The same without the store of each thread. The compiler reads the second clock before the load has come back.
extern "C" __global__ void turnover_read(const float* in, uint4* record) {
  const unsigned start = clock_now();
  const unsigned thread = thread_of_grid();
  float value = in[thread];
  asm volatile("add.f32 %0, %0, 0f3F800000;" : "+f"(value)::"memory");
  const unsigned loaded = clock_now();
  if (threadIdx.x % 32 == 0) record[thread / 32] = make_uint4(start, loaded, __float_as_uint(value), place());
}
