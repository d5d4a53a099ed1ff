// Calibration: when dirty lines leave L2.
//
// Isolates  lines written in whole, in half or in a quarter; copies, whose reads push out what was written; lines read again after
//           they were written, which tells lines written back from lines that left; how much room lines take that are written in
//           whole, or word by word.
// Supports  l2.dirty_share, l2.victim_choices and the policies in sim/timing/memory/l2_slice.h.
// Launch    a block of 1024 threads an SM; a step is 16 KiB a block, 2.16 MB together. Loads go past L1.

#include "micro.cuh"

static __device__ __forceinline__ void write_16(uint4* at, unsigned value) {
  asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(value) : "memory");
}

// Every block reads `reads` steps of its own for each that it writes.
extern "C" __global__ void l2_copy(uint4* out, const uint4* in, int writes, int reads) {
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * blockDim.x + threadIdx.x;
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * writes * reads * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += blockDim.x) {
    unsigned sum = 0;
#pragma unroll 1
    for (int k = 0; k < reads; ++k, from += blockDim.x) sum ^= mixed(load_l2(from));
    write_16(to, sum);
  }
}

// The first `sectors` sectors of every line.
extern "C" __global__ void l2_write_sectors(uint4* out, int writes, int sectors) {
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += blockDim.x)
    if (threadIdx.x % 8 < 2 * sectors) write_16(to, threadIdx.x);
}

// Writes, reads `reads` steps of another buffer, then what was written.
extern "C" __global__ void l2_write_find(uint4* out, const uint4* in, unsigned* sink, int writes, int reads) {
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * blockDim.x + threadIdx.x;
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * reads * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < writes; ++i) write_16(to + i * blockDim.x, threadIdx.x);
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < reads; ++i, from += blockDim.x) sum ^= mixed(load_l2(from));
#pragma unroll 1
  for (int i = 0; i < writes; ++i) sum ^= mixed(load_l2(to + i * blockDim.x));
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}

// Writes, then reads steps `from` to `to` of what was written `passes` times; in every pass a block reads what its `shift`-th
// neighbour read before.
extern "C" __global__ void l2_write_refind(uint4* out, unsigned* sink, int writes, int from, int to, int passes, int shift) {
  const unsigned long long mine = static_cast<unsigned long long>(writes) * blockDim.x;
  for (int i = 0; i < writes; ++i) write_16(out + blockIdx.x * mine + i * blockDim.x + threadIdx.x, threadIdx.x);
  unsigned sum = 0, chunk = blockIdx.x;
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
    chunk += shift;
    if (chunk >= gridDim.x) chunk -= gridDim.x;
    const uint4* at = out + chunk * mine + threadIdx.x;
#pragma unroll 1
    for (int i = from; i < to; ++i) sum ^= mixed(load_l2(at + i * blockDim.x));
  }
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}

// After every step that it writes, a block reads `times` of its `hot` steps in turn.
extern "C" __global__ void l2_write_hot(uint4* out, const uint4* in, unsigned* sink, int writes, int hot, int times) {
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * blockDim.x + threadIdx.x;
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * hot * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  int turn = 0;
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += blockDim.x) {
    write_16(to, threadIdx.x);
#pragma unroll 1
    for (int k = 0; k < times; ++k) {
      sum ^= mixed(load_l2(from + turn * blockDim.x));
      turn = turn + 1 == hot ? 0 : turn + 1;
    }
  }
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}

// Writes the same steps `passes` times, having read them first if so asked.
extern "C" __global__ void l2_rewrite(uint4* out, unsigned* sink, int writes, int passes, int read) {
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * blockDim.x + threadIdx.x;
  unsigned sum = 0;
  if (read) {
#pragma unroll 1
    for (int i = 0; i < writes; ++i) sum ^= mixed(load_l2(to + i * blockDim.x));
  }
#pragma unroll 1
  for (int pass = 0; pass < passes; ++pass) {
#pragma unroll 1
    for (int i = 0; i < writes; ++i) write_16(to + i * blockDim.x, sum + pass);
  }
}

// Reads `reads` steps, writes `writes` pairs of steps, reads what it read before. A thread writes 16 bytes at a time, its
// neighbours what lies beside them, or (`words`) a sector of its own word by word.
extern "C" __global__ void l2_read_write_read(uint4* out, const uint4* in, unsigned* sink, int reads, int writes, int words) {
  const uint4* from = in + static_cast<unsigned long long>(blockIdx.x) * reads * blockDim.x + threadIdx.x;
  uint4* to = out + static_cast<unsigned long long>(blockIdx.x) * writes * 2 * blockDim.x;
  unsigned sum = 0;
#pragma unroll 1
  for (int i = 0; i < reads; ++i) sum ^= mixed(load_l2(from + i * blockDim.x));
#pragma unroll 1
  for (int i = 0; i < writes; ++i, to += 2 * blockDim.x) {
    if (words) {
      unsigned* sector = reinterpret_cast<unsigned*>(to + 2 * threadIdx.x);
#pragma unroll
      for (int k = 0; k < 8; ++k) asm volatile("st.global.u32 [%0], %1;" ::"l"(sector + k), "r"(sum) : "memory");
    } else {
      write_16(to + threadIdx.x, sum);
      write_16(to + blockDim.x + threadIdx.x, sum);
    }
  }
#pragma unroll 1
  for (int i = 0; i < reads; ++i) sum ^= mixed(load_l2(from + i * blockDim.x));
  if (sum == 0x12345) sink[threadIdx.x] = sum;
}
