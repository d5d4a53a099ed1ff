// Calibration: how SMs that do the same fall out of step.
//
// Isolates  the way from each SM to each line of L2 (l2_distance); how many reads of the same lines the SMs of a GPC still
//           make together after so many trips round a loop that reads a tile, meets at a barrier and computes (l2_drift).
// Supports  crossbar.tpc_cycles, crossbar.slice_cycles, l2.coalescer_requests, l2.coalescer_cycles.
// Launch    one block an SM; l2_distance 32 threads. Loads go past L1.

#include "micro.cuh"

// Two numbers a block and line, read with `forewarp-run --dump out=FILE`: the SM, and the least cycles that a load of the
// line took in `passes`, which must be two at least: the first brings it to L2. Blocks begin at different lines, so that their
// reads are not made together. A prediction of them means nothing.
extern "C" __global__ void l2_distance(const char* in, unsigned* out, int lines, int passes) {
  unsigned sm;
  asm volatile("mov.u32 %0, %smid;" : "=r"(sm));
  if (threadIdx.x != 0) return;
  const unsigned zero = chase_l2(in, 0);
  for (int i = 0; i < lines; ++i) {
    const int line = (i + 31 * static_cast<int>(blockIdx.x)) % lines;
    const char* at = in + static_cast<size_t>(line) * 128;
    unsigned least = ~0u;
    for (int pass = 0; pass < passes; ++pass) {
      const unsigned before = clock();
      if (chase_l2(at, before & zero) != 0) return;  // not before the clock was read; the comparison waits for it
      const unsigned cycles = clock() - before;
      least = cycles < least ? cycles : least;
    }
    unsigned* to = out + 2ull * (static_cast<size_t>(blockIdx.x) * lines + line);
    to[0] = sm;
    to[1] = least;
  }
}

// Every block reads the same 4 KiB a trip, `tiles` of them over and over, then works `work` x 4 cycles; thread 0 of each notes
// its SM's clock 64 times on the way, eight bytes each.
extern "C" __global__ void l2_drift(const uint4* in, unsigned long long* out, int trips, int tiles, int work) {
  __shared__ uint4 tile[256];
  float x = threadIdx.x;
  unsigned sum = 0;
  const int note = trips / 64 > 0 ? trips / 64 : 1;
#pragma unroll 1
  for (int trip = 0; trip < trips; ++trip) {
    tile[threadIdx.x] = load_l2(in + static_cast<size_t>(trip & (tiles - 1)) * 256 + threadIdx.x);
    __syncthreads();
    sum ^= mixed(tile[255 - threadIdx.x]);
    COUNTED_LOOP(work) { asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)); }
    __syncthreads();
    if (threadIdx.x == 0 && trip % note == 0 && trip / note < 64) out[blockIdx.x * 64ull + trip / note] = clock64();
  }
  if (x + sum == 12345.0f) out[0] = 0;
}

// Blocks of one warp: four neighbours read the same eight lines of L2 over and over, one at a time, about a thousand cycles apart. They
// start when a line from memory has reached all of them, each after `ones` + `twos` rounds of one and two FMAs more than its
// neighbour. Reads that are made together end together, so whoever is near enough to the first joins it for good.
extern "C" __global__ void l2_window(const char* in, float* out, int trips, int ones, int twos) {
  const char* mine = in + 128ull * (1 + 8 * (blockIdx.x / 4)) + 4 * threadIdx.x;
  const int rank = blockIdx.x % 4;
  unsigned loaded = 0;
  for (int line = 0; line < 8; ++line) loaded = chase_l2(mine + 128 * line, loaded);
  float x = chase_l2(in, loaded);  // nobody has read it before
  COUNTED_LOOP(ones * rank) { asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)); }
  COUNTED_LOOP(twos * rank) { REPEAT_2(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));) }
#pragma unroll 1
  for (int trip = 0; trip < trips; ++trip) {
    const unsigned at = __float_as_uint(x) & 0x80000000u;  // zero, but waits for the FMAs
    x += chase_l2(mine + 128 * (trip % 8), at);
    REPEAT_64(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));)
    REPEAT_64(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));)
  }
  out[thread_of_grid()] = x;
}
