// Calibration: barriers and fences.
//
// Isolates  BAR.SYNC by the warps of a block and by the blocks of an SM, and which instructions behind it wait; when each
//           warp leaves a barrier to which one came late, and in what order loads are served that all then do; memory
//           fences after a store.
// Supports  issue.barrier_release_cycles, barrier_per_warp_cycles, membar_gpu_cycles, membar_cta_cycles, pipes.adu.interval.
// Launch    132 blocks of 32 to 1024; 264 blocks of 512: two an SM.
// Args      out[threads], iterations. Every iteration is 8 barriers, or 4 stores and fences.

#include "micro.cuh"

extern "C" __global__ void sync_threads(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_8(asm volatile("bar.sync 0;" ::: "memory");) }
  out[thread_of_grid()] = iterations;
}

// Behind each barrier two FMAs that wait for one another, which go on while others are awaited, or a root, which does not.
extern "C" __global__ void sync_then_fma(unsigned* out, int iterations) {
  float x = threadIdx.x;
  COUNTED_LOOP(iterations) {
    REPEAT_8(asm volatile("bar.sync 0;" ::: "memory"); REPEAT_2(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)::"memory");))
  }
  out[thread_of_grid()] = x;
}

extern "C" __global__ void sync_then_root(unsigned* out, int iterations) {
  float x = threadIdx.x;
  COUNTED_LOOP(iterations) {
    REPEAT_8(asm volatile("bar.sync 0;" ::: "memory"); asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x)::"memory");)
  }
  out[thread_of_grid()] = x;
}

// Each time round another warp comes 64 FMAs late. Four clocks of each warp: before BAR, behind it, where it has issued a load
// from shared memory, which waits for the barrier, and when a second one has come back: at out + 4 * (iteration + iterations *
// warp of the grid), read with `forewarp-run --dump out=FILE`.
extern "C" __global__ void release(unsigned* out, int iterations) {
  __shared__ unsigned words[1024];
  const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
  words[threadIdx.x] = 0;
  float x = threadIdx.x;
  const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(words + threadIdx.x));
  unsigned sum = 0, first, second;
  COUNTED_LOOP(iterations) {
    const int rounds = 60 + (warp == iteration % warps ? 64 : 0);
    asm volatile("bar.sync 0;" ::: "memory");
#pragma unroll 1
    for (int i = 0; i < rounds; ++i) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)::"memory");
    unsigned at[4];
    asm volatile("mov.u32 %0, %%clock;" : "=r"(at[0])::"memory");
    asm volatile("bar.sync 0;" ::: "memory");
    asm volatile("mov.u32 %0, %%clock;" : "=r"(at[1])::"memory");
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(first) : "r"(mine) : "memory");
    asm volatile("mov.u32 %0, %%clock;" : "=r"(at[2])::"memory");
    asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(second) : "r"(mine) : "memory");
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 77; @p mov.u32 %0, %%clock; }" : "=r"(at[3]) : "r"(second) : "memory");
    sum += first + second;
    if (threadIdx.x % 32 == 0)
      reinterpret_cast<uint4*>(out)[iteration + static_cast<size_t>(iterations) * (blockIdx.x * warps + warp)] =
          make_uint4(at[0], at[1], at[2], at[3]);
    __syncwarp();
  }
  if (x + sum == 12345.0f) out[0] = 0;
}

#define STORE asm volatile("st.global.u32 [%0], %1;" ::"l"(out + thread_of_grid()), "r"(iteration) : "memory");

extern "C" __global__ void fence_gpu(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_4(STORE __threadfence();) }
}

extern "C" __global__ void fence_block(unsigned* out, int iterations) {
  COUNTED_LOOP(iterations) { REPEAT_4(STORE __threadfence_block();) }
}
