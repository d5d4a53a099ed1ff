// Calibration: L2 and the way to it.
//
// Isolates  loads that wait for the last, over a footprint that lies in L2 or is one line; the bandwidth of one SM, a few and
//           all, by footprint (near and far lines, replication); writes; atomics on own addresses and on one.
// Supports  crossbar.{request_cycles,response_cycles,far_cycles,sm_requests_per_cycle_x16,sm_response_bytes_per_cycle,
//           gpc_response_bytes_per_cycle,sm_write_bytes_per_cycle,cpc_write_bytes_per_cycle,fabric_bytes_per_cycle},
//           l2.{bytes,hit_cycles,slices,slice_bytes_per_cycle,clock_ratio,atomic_interval,replicate_far_lines}.
// Launch    by case. Loads go past L1.

#include "micro.cuh"

// One block: all its warps touch a sector of every line of `mask` + 1 bytes, then the first warp chases `iterations` x 8 loads
// through them, `step` bytes on each time (an odd number of lines: every line once).
extern "C" __global__ void l2_chase(const char* in, unsigned* out, int iterations, unsigned mask, unsigned step) {
  unsigned sum = 0;
#pragma unroll 4
  for (unsigned at = threadIdx.x * 128; at <= mask; at += blockDim.x * 128)
    asm volatile("{ .reg .u32 v; ld.global.cg.u32 v, [%1]; xor.b32 %0, %0, v; }" : "+r"(sum) : "l"(in + at));
  out[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  unsigned at = 0, loaded = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(loaded = chase_l2(in + at, loaded); at = (at + step) & mask;)
  }
  out[threadIdx.x] = loaded;
}

// All threads of the grid together read steps x 4 x 16 bytes a thread, `passes` times.
extern "C" __global__ void l2_read(const uint4* in, unsigned* out, int passes, int steps) {
  const unsigned threads = threads_of_grid();
  unsigned sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const uint4* at = in + thread_of_grid();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      uint4 v[4];
#pragma unroll
      for (int k = 0; k < 4; ++k, at += threads) v[k] = load_l2(at);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum ^= mixed(v[k]);
    }
  }
  out[thread_of_grid()] = sum;
}

// The same, written.
extern "C" __global__ void l2_write(uint4* out, int passes, int steps) {
  const unsigned x = threadIdx.x, y = x * 3, z = x * 5, w = x * 7;
  const unsigned threads = threads_of_grid();
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    uint4* at = out + thread_of_grid();
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
      for (int k = 0; k < 4; ++k, at += threads)
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");
    }
  }
}

// Every thread adds to words[(thread x words) / 32], 8 times an iteration: 32 gives every thread its own word, 1 a word for
// every warp, 0 one word for all.
extern "C" __global__ void l2_red(float* sums, int iterations, int words) {
  float* mine = sums + (thread_of_grid() * words >> 5);
  const float value = threadIdx.x;
  COUNTED_LOOP(iterations) { REPEAT_8(asm volatile("red.global.add.f32 [%0], %1;" ::"l"(mine), "f"(value) : "memory");) }
}

// Every lane adds to a line of its own.
extern "C" __global__ void l2_red_lines(float* sums, int iterations) {
  float* mine = sums + thread_of_grid() * 32;
  const float value = threadIdx.x;
  COUNTED_LOOP(iterations) { REPEAT_8(asm volatile("red.global.add.f32 [%0], %1;" ::"l"(mine), "f"(value) : "memory");) }
}

// Atomics that wait for the last: the memory holds zeros and keeps them.
extern "C" __global__ void l2_atom_chase(char* in, unsigned* out, int iterations) {
  unsigned old = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(asm volatile("{ .reg .u64 p; cvt.u64.u32 p, %0; add.u64 p, p, %1; atom.global.and.b32 %0, [p], %2; }"
                          : "+r"(old) : "l"(in), "r"(iterations) : "memory");)
  }
  out[thread_of_grid()] = old;
}
