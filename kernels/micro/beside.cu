// Calibration: what loads from shared memory cost the FFMAs that are issued beside them.
//
// Isolates  the way of what is loaded into the registers: 64 independent FFMAs with 2 to 16 loads of one, two or four registers among
//           them, whose lanes read words of their own (a wavefront brings 128 bytes) or all the same ones (it brings two registers
//           of every lane); and 8 x 8 outer products of what was loaded just before, or a step ahead.
// Supports  memory_pipe.port_wavefront_cycles.
// Launch    132 blocks (one an SM) of 1 to 16 warps.
// Args      out[threads], iterations, bytes between lanes (of the outer products: of either side). An iteration is 64 FFMAs; of the
//           outer products four steps of 64.

#include "micro.cuh"

constexpr int kFfmas = 64;

template <int kWords>
static __device__ __forceinline__ void load(unsigned* to, unsigned at) {
  if (kWords == 1) asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(to[0]) : "r"(at) : "memory");
  if (kWords == 2) asm volatile("ld.volatile.shared.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(at) : "memory");
  if (kWords == 4)
    asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(at) : "memory");
}

template <int kLoads, int kWords>
static __device__ __forceinline__ void beside(float* out, int iterations, int apart) {
  __shared__ __align__(16) unsigned words[1024];
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) words[i] = i;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(words)) + threadIdx.x % 32 * apart;
  float sum[32], a[4], b[8];
#pragma unroll
  for (int j = 0; j < 32; ++j) sum[j] = 0.5f * (threadIdx.x + j);
#pragma unroll
  for (int j = 0; j < 4; ++j) a[j] = 0.25f * (threadIdx.x - j);
#pragma unroll
  for (int j = 0; j < 8; ++j) b[j] = 0.125f * (threadIdx.x * j);
  constexpr int kEvery = kLoads > 0 ? kFfmas / kLoads : kFfmas + 1;
  unsigned loaded[kLoads > 0 ? kLoads : 1][4] = {};
  __syncthreads();
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < kFfmas; ++k) {
      asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(sum[k % 32]) : "f"(a[k % 32 / 8]), "f"(b[k % 8]));
      if (kLoads > 0 && k % kEvery == 0) load<kWords>(loaded[k / kEvery], at);
    }
  }
  float total = 0;
#pragma unroll
  for (int j = 0; j < 32; ++j) total += sum[j];
  unsigned used = 0;
#pragma unroll
  for (int j = 0; j < kLoads; ++j) used ^= loaded[j][0];
  out[thread_of_grid()] = total + used;
}

#define BESIDE(LOADS, WORDS)                                                                                       \
  extern "C" __global__ void beside_##LOADS##_of_##WORDS(float* out, int iterations, int apart) {                  \
    beside<LOADS, WORDS>(out, iterations, apart);                                                                  \
  }
BESIDE(0, 1)
BESIDE(2, 1) BESIDE(4, 1) BESIDE(8, 1) BESIDE(16, 1)
BESIDE(2, 2) BESIDE(4, 2) BESIDE(8, 2) BESIDE(16, 2)
BESIDE(2, 4) BESIDE(4, 4) BESIDE(8, 4) BESIDE(16, 4)

// Two loads of four values for each side of an 8 x 8 product, of the step itself or of the next one.
template <bool kAhead>
static __device__ __forceinline__ void product(float* out, int iterations, int apart_a, int apart_b) {
  __shared__ __align__(16) unsigned words[2048];
  for (int i = threadIdx.x; i < 2048; i += blockDim.x) words[i] = i;
  __syncthreads();
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(words));
  const unsigned at_a = at + threadIdx.x % 32 * apart_a, at_b = at + 4096 + threadIdx.x % 32 * apart_b;
  float sum[8][8] = {};
  unsigned a[2][8], b[2][8];
  const auto fetch = [&](int into, int step) {
    load<4>(a[into], at_a + step * 16);
    load<4>(a[into] + 4, at_a + 512 + step * 16);
    load<4>(b[into], at_b + step * 16);
    load<4>(b[into] + 4, at_b + 512 + step * 16);
  };
  if (kAhead) fetch(0, 0);
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int now = kAhead ? step % 2 : 0;
      fetch(kAhead ? 1 - now : 0, step);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += __uint_as_float(a[now][i]) * __uint_as_float(b[now][j]);
      }
    }
  }
  float total = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 8; ++j) total += sum[i][j];
  }
  out[thread_of_grid()] = total;
}

extern "C" __global__ void beside_product(float* out, int iterations, int apart_a, int apart_b) {
  product<false>(out, iterations, apart_a, apart_b);
}
extern "C" __global__ void beside_product_ahead(float* out, int iterations, int apart_a, int apart_b) {
  product<true>(out, iterations, apart_a, apart_b);
}
