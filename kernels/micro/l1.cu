// Calibration: the L1 data cache.
//
// Isolates  loads that wait for the last and hit; loads that do not, by width and by the distance between lanes (sectors and
//           lines a request); stores of whole lines, which pass through to L2.
// Supports  l1.{hit_cycles,tags_per_cycle,data_bytes_per_cycle,store_bytes_per_cycle}, latency.global_read_release,
//           memory_pipe.{lsu_interval,writeback_bytes_per_cycle}, crossbar.sm_write_bytes_per_cycle.
// Launch    132 blocks of 32 to 1024, or one.
// Args      in (zeros; 64 KiB), out[threads], iterations, stride (floats between lanes). Every iteration is 8 operations.

#include "micro.cuh"

// 32 KiB in steps of 128 bytes, all lanes at one address.
extern "C" __global__ void l1_chase(const char* in, unsigned* out, int iterations) {
  unsigned at = 0, loaded = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(loaded = chase_cached(in + at, loaded); at = (at + 128) & 0x7fff;)
  }
  out[thread_of_grid()] = loaded;
}

// The same from 32 lanes that are `stride` floats apart, 4 KiB by 4 KiB.
extern "C" __global__ void l1_chase_strided(const char* in, unsigned* out, int iterations, int stride) {
  const char* mine = in + 4 * (threadIdx.x & 31) * stride;
  unsigned at = 0, loaded = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(loaded = chase_cached(mine + at, loaded); at = (at + 4096) & 0x7fff;)
  }
  out[thread_of_grid()] = loaded;
}

// Eight loads 4 KiB apart; the first address goes to and fro by 128 bytes, so that no load is the same as the last.
#define LOADS(NAME, TYPE, MIXED)                                                                     \
  extern "C" __global__ void NAME(const char* in, unsigned* out, int iterations, int stride) {       \
    const char* mine = in + 4 * (threadIdx.x & 31) * stride;                                         \
    unsigned sum = 0;                                                                                \
    COUNTED_LOOP(iterations) {                                                                       \
      const char* at = mine + (iteration & 1) * 128;                                                 \
      TYPE v[8];                                                                                     \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) v[k] = *reinterpret_cast<const TYPE*>(at + k * 4096); \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) sum ^= MIXED(v[k]);                              \
    }                                                                                                \
    out[thread_of_grid()] = sum;                                                                     \
  }

static __device__ __forceinline__ unsigned mixed(unsigned v) { return v; }
static __device__ __forceinline__ unsigned mixed(uint2 v) { return v.x ^ v.y; }

LOADS(l1_load_32, unsigned, mixed)
LOADS(l1_load_64, uint2, mixed)
LOADS(l1_load_128, uint4, mixed)

// Every warp stores whole lines of its own, over and over: 8 of 128 or of 512 bytes.
extern "C" __global__ void l1_store_32(unsigned* out, int iterations) {
  unsigned* mine = out + (thread_of_grid() / 32) * 256 + (threadIdx.x & 31);
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < 8; ++k) asm volatile("st.global.u32 [%0], %1;" ::"l"(mine + 32 * k), "r"(iteration) : "memory");
  }
}

extern "C" __global__ void l1_store_128(uint4* out, int iterations) {
  uint4* mine = out + (thread_of_grid() / 32) * 256 + (threadIdx.x & 31);
  const unsigned x = threadIdx.x, y = x * 3, z = x * 5, w = x * 7;
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < 8; ++k)
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(mine + 32 * k), "r"(x), "r"(y), "r"(z), "r"(w)
                   : "memory");
  }
}
