// What a warpgroup's products cost. Quantities: kernels/micro/quantities.yaml.
//
// One product and its wait, an iteration: from issue to completion. Several products and one wait: what each more holds the
// tensor pipe. The factors lie in shared memory, whose contents do not matter.

#include "../common/hopper.cuh"
#include "micro.cuh"

template <int kColumns, int kProducts>
__device__ __forceinline__ void products(float* out, int iterations) {
  extern __shared__ __align__(1024) char shared[];
  for (int i = threadIdx.x; i < 6144 * (1 + static_cast<int>(blockDim.x / 128)); i += blockDim.x)
    reinterpret_cast<uint32_t*>(shared)[i] = 0;
  publish_to_async();
  __syncthreads();
  const uint64_t a = factor_along_k(shared + threadIdx.x / 128 * 8192), b = factor_across_k(shared + 16384, 8192);
  float sums[kColumns / 2] = {};
  COUNTED_LOOP(iterations) {
    begin_products();
#pragma unroll
    for (int i = 0; i < kProducts; ++i) multiply<__nv_bfloat16>(sums, further(a, i % 4 * 32), further(b, i % 4 * 2048), 1);
    commit_products();
    wait_for_products();
  }
  wait_for_products();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum += sums[i];
  out[thread_of_grid()] = sum;
}

#define PRODUCTS(NAME, COLUMNS, COUNT)                                                       \
  extern "C" __global__ void __launch_bounds__(256, 1) NAME(float* out, int iterations) {     \
    products<COLUMNS, COUNT>(out, iterations);                                         \
  }
PRODUCTS(wgmma_128_1, 128, 1)
PRODUCTS(wgmma_128_2, 128, 2)
PRODUCTS(wgmma_128_4, 128, 4)
PRODUCTS(wgmma_128_8, 128, 8)
PRODUCTS(wgmma_256_1, 256, 1)
PRODUCTS(wgmma_256_2, 256, 2)
PRODUCTS(wgmma_256_4, 256, 4)
PRODUCTS(wgmma_256_8, 256, 8)
