// What the calibration kernels share. They are ordinary kernels; a quantity is the slope of their cycles between two trip
// counts, so everything outside the counted loop (launch, cold caches, the last store) cancels.
//
// The counted loop stays a loop (`#pragma unroll 1`) around a body unrolled by these macros, and the operations measured are
// volatile assembly, so that the compiler neither merges nor drops them. Every thread stores its result once.
#pragma once

#define REPEAT_2(...) __VA_ARGS__ __VA_ARGS__
#define REPEAT_4(...) REPEAT_2(__VA_ARGS__) REPEAT_2(__VA_ARGS__)
#define REPEAT_8(...) REPEAT_4(__VA_ARGS__) REPEAT_4(__VA_ARGS__)
#define REPEAT_16(...) REPEAT_8(__VA_ARGS__) REPEAT_8(__VA_ARGS__)
#define REPEAT_32(...) REPEAT_16(__VA_ARGS__) REPEAT_16(__VA_ARGS__)
#define REPEAT_64(...) REPEAT_32(__VA_ARGS__) REPEAT_32(__VA_ARGS__)

#define COUNTED_LOOP(iterations) _Pragma("unroll 1") for (int iteration = 0; iteration < (iterations); ++iteration)

static __device__ __forceinline__ unsigned thread_of_grid() { return blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ __forceinline__ unsigned threads_of_grid() { return gridDim.x * blockDim.x; }

// The SM's clock, read where the program says so.
static __device__ __forceinline__ unsigned clock_now() {
  unsigned now;
  asm volatile("mov.u32 %0, %clock;" : "=r"(now)::"memory");
  return now;
}

// A step of a pointer chase: loads at + loaded, where memory holds zeros and `loaded` is the result of the step before. The
// addresses are therefore known without memory, yet each load waits for the last. `at` is computed off the critical path.
static __device__ __forceinline__ unsigned chase_cached(const char* at, unsigned loaded) {
  asm volatile("{ .reg .u64 p; cvt.u64.u32 p, %0; add.u64 p, p, %1; ld.global.u32 %0, [p]; }" : "+r"(loaded) : "l"(at));
  return loaded;
}

// The same past L1.
static __device__ __forceinline__ unsigned chase_l2(const char* at, unsigned loaded) {
  asm volatile("{ .reg .u64 p; cvt.u64.u32 p, %0; add.u64 p, p, %1; ld.global.cg.u32 %0, [p]; }" : "+r"(loaded) : "l"(at));
  return loaded;
}

// 16 bytes past L1.
static __device__ __forceinline__ uint4 load_l2(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}

static __device__ __forceinline__ unsigned mixed(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }
