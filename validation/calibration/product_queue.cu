// How many products of warpgroups wait beside their warps before one of them waits itself, on a machine with a GPU:
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -I ../../kernels -o product_queue product_queue.cu
//   ./product_queue > product_queue.csv
// One block of up to four warpgroups, each of which sends 24 products one after another and reads the clock behind each.
// A row is a product of the first warp of a group: cycles since all groups began, before it (-1) and behind it, and those at which
// the wait for all of them ended (24).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/hopper.cuh"

constexpr int kProducts = 24, kClocks = kProducts + 2;

__device__ __forceinline__ unsigned ticks() {
  unsigned t;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
  return t;
}

template <int kColumns>
__global__ void __launch_bounds__(512 * 64 / (kColumns / 2), 1) queue(unsigned* out) {
  extern __shared__ __align__(1024) char factors[];
  for (unsigned i = threadIdx.x; i < (48u << 10) / 4; i += blockDim.x) reinterpret_cast<unsigned*>(factors)[i] = 0;
  publish_to_async();
  const uint64_t a = factor_along_k(factors), b = factor_across_k(factors + (16 << 10), 64 * kSwizzledRow);
  float sums[kColumns / 2] = {};
  unsigned at[kClocks];
  __syncthreads();
  begin_products();
  at[0] = ticks();
#pragma unroll
  for (int i = 0; i < kProducts; ++i) {
    if constexpr (kColumns == 128)
      PRODUCT_128("f16", sums, a, b, 1);
    else
      PRODUCT_256("f16", sums, a, b, 1);
    at[i + 1] = ticks();
  }
  commit_products();
  wait_for_products();
  at[kClocks - 1] = ticks();
  float all = 0;
  for (float sum : sums) all += sum;
  if (all == 12345) out[0] = 1;
  if (threadIdx.x % 128 == 0)
    for (int i = 0; i < kClocks; ++i) out[threadIdx.x / 128 * kClocks + i] = at[i];
}

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(result));
  std::exit(1);
}

template <int kColumns>
void run(int most_groups, unsigned* out) {
  check(cudaFuncSetAttribute(queue<kColumns>, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  for (int groups = 1; groups <= most_groups; ++groups) {
    for (int time = 0; time < 2; ++time) {  // the first brings the code
      queue<kColumns><<<1, groups * 128, 64 << 10>>>(out);
      check(cudaDeviceSynchronize());
    }
    std::vector<unsigned> at(groups * kClocks);
    check(cudaMemcpy(at.data(), out, at.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned first = at[0];
    for (int g = 1; g < groups; ++g)
      if (static_cast<int>(at[g * kClocks] - first) < 0) first = at[g * kClocks];
    for (int g = 0; g < groups; ++g)
      for (int i = 0; i < kClocks; ++i) std::printf("%d,%d,%d,%d,%u\n", kColumns, groups, g, i - 1, at[g * kClocks + i] - first);
  }
}

int main() {
  unsigned* out;
  check(cudaMalloc(&out, 4096));
  std::puts("columns,groups,group,product,cycles");
  run<128>(4, out);
  run<256>(2, out);
}
