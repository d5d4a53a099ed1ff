// Calibration: what L2 keeps, what it writes back, and which reads it merges.
//
// Isolates  dirty lines left in L2 and written to memory, against what was written, what was read afterwards, how often, and the
//           time that passed; lines read again by the same SM or by another, against the footprint; words at hashed places;
//           parts of sectors; SMs that read the same lines at the same time, or a little later.
// Supports  l2.{bytes,ways,replicate_far_lines,fetch_bytes}, the policies in sim/timing/memory/l2_slice.h, and the read coalescer.
// Launch    by case; blocks of 1024 threads handle 64 KiB a step. Loads go past L1.

#include "micro.cuh"

constexpr int kPieces = 4;  // of 16 bytes a thread, a step

static __device__ __forceinline__ unsigned read_step(const uint4* at) {
  uint4 v[kPieces];
#pragma unroll
  for (int k = 0; k < kPieces; ++k) v[k] = load_l2(at + k * blockDim.x);
  unsigned sum = 0;
#pragma unroll
  for (int k = 0; k < kPieces; ++k) sum ^= mixed(v[k]);
  return sum;
}

static __device__ __forceinline__ void write_step(uint4* at) {
#pragma unroll
  for (int k = 0; k < kPieces; ++k)
    asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at + k * blockDim.x), "r"(threadIdx.x) : "memory");
}

// Every block writes `writes` steps of its own, then reads `reads` steps of its own `passes` times.
extern "C" __global__ void l2_write_read(uint4* out, const uint4* in, unsigned* sink, int writes, int reads, int passes) {
  const unsigned step = kPieces * blockDim.x;
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * step + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += step) write_step(to);
  unsigned sum = 0;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * reads * step + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < reads; ++i, from += step) sum ^= read_step(from);
  }
  sink[thread_of_grid()] = sum;
}

// Every block writes, then the first warp of the grid computes for `wait` x 256 cycles.
extern "C" __global__ void l2_write_wait(uint4* out, float* sink, int writes, int wait) {
  const unsigned step = kPieces * blockDim.x;
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * step + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += step) write_step(to);
  if (thread_of_grid() >= 32) return;
  float x = threadIdx.x;
  COUNTED_LOOP(wait) { REPEAT_64(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));) }
  sink[threadIdx.x] = x;
}

// The grid reads grid x `steps` steps, `passes` times; in every pass a block reads what its `shift`-th neighbour read before.
extern "C" __global__ void l2_reread(const uint4* in, unsigned* sink, int passes, int steps, int shift) {
  const unsigned step = kPieces * blockDim.x;
  unsigned sum = 0, chunk = blockIdx.x;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    const uint4* from = in + static_cast<unsigned long long>(chunk) * steps * step + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < steps; ++i, from += step) sum ^= read_step(from);
    chunk += shift;
    if (chunk >= gridDim.x) chunk -= gridDim.x;
  }
  sink[thread_of_grid()] = sum;
}

// Words at hashed places of `mask` + 1 words.
extern "C" __global__ void l2_scattered(const unsigned* in, unsigned* sink, int count, unsigned mask) {
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    unsigned x = (i * threads_of_grid() + thread_of_grid()) * 0x9E3779B1u;
    x ^= x >> 15;
    x *= 0x85EBCA77u;
    x ^= x >> 13;
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(in + (x & mask)));
    sum ^= v;
  }
  sink[thread_of_grid()] = sum;
}

// A word every `stride` words, `count` times a thread; then, as above, `reads` steps to drive them out.
extern "C" __global__ void l2_write_parts(unsigned* out, const uint4* in, unsigned* sink, int count, int stride, int reads) {
  unsigned* to = out + static_cast<unsigned long long>(thread_of_grid()) * stride;
#pragma unroll 1
  for (int i = 0; i < count; ++i, to += static_cast<unsigned long long>(threads_of_grid()) * stride)
    asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(threadIdx.x) : "memory");
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * reads * kPieces * blockDim.x + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < reads; ++i, from += kPieces * blockDim.x) sum ^= read_step(from);
  sink[thread_of_grid()] = sum;
}

// Blocks of one warp; `group` neighbouring blocks (a power of two) read the same `count` x 4 lines, each block `delay` x 4
// cycles later than its neighbour.
extern "C" __global__ void l2_together(const uint4* in, float* sink, int count, int group, int delay) {
  float x = threadIdx.x;
  COUNTED_LOOP(delay * static_cast<int>(blockIdx.x & (group - 1))) { asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)); }
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x / group) * count * 32 + threadIdx.x;
  unsigned sum = 0;
#pragma unroll 4
  for (int i = 0; i < count; ++i, from += 32) sum ^= mixed(load_l2(from));
  sink[thread_of_grid()] = x + sum;
}
