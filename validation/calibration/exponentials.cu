// What exponentials cost a warp that has others of its own under way, on a machine with a GPU:
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o exponentials exponentials.cu
//   ./exponentials > exponentials.csv
// One block of 1, 2, 4 or 8 warps; each goes 64 times round an unrolled loop. A row is cycles of the slowest warp for an exponential.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int kTurns = 64;

__device__ __forceinline__ unsigned ticks() {
  unsigned t;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
  return t;
}
__device__ __forceinline__ void exponential(float& x) { asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x)); }
__device__ __forceinline__ void add(float& sum, float x) { asm volatile("add.f32 %0, %0, %1;" : "+f"(sum) : "f"(x)); }
__device__ __forceinline__ void scale(float& x, float by, float plus) {
  asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(by), "f"(plus));
}

// The first, short pass brings the code.
#define KERNEL(NAME, TURN)                                                            \
  __global__ void NAME(unsigned* out, float* values) {                                \
    float x[16], sum[4] = {}, y = values[threadIdx.x], z = values[threadIdx.x + 1];   \
    for (int i = 0; i < 16; ++i) x[i] = values[threadIdx.x + i];                      \
    unsigned begin = 0;                                                               \
    for (int pass = 0; pass < 2; ++pass) {                                            \
      __syncthreads();                                                                \
      begin = ticks();                                                                \
      _Pragma("unroll 1") for (int turn = 0; turn < (pass ? kTurns : 2); ++turn) {    \
        _Pragma("unroll") for (int k = 0; k < 64; ++k) { TURN; }                      \
      }                                                                               \
    }                                                                                 \
    const unsigned end = ticks();                                                     \
    float all = y + z;                                                                \
    for (int i = 0; i < 16; ++i) all += x[i];                                         \
    for (int i = 0; i < 4; ++i) all += sum[i];                                        \
    values[threadIdx.x + 512] = all;                                                  \
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = end - begin;                   \
  }

KERNEL(chain, exponential(x[0]))
KERNEL(chain_add, exponential(x[0]); add(x[0], y))
KERNEL(chain_scale, exponential(x[0]); scale(x[0], y, z))
KERNEL(two_chains_add, exponential(x[k % 2]); add(x[k % 2], y))
KERNEL(apart, exponential(x[k % 16]))
KERNEL(pairs_add, exponential(x[k % 16]);
       if (k % 2 == 1) { add(x[(k + 13) % 16], x[(k + 14) % 16]); add(sum[k / 2 % 2], x[(k + 13) % 16]); })
KERNEL(add_1_before, exponential(x[k % 16]); add(sum[k % 4], x[(k + 15) % 16]))
KERNEL(add_2_before, exponential(x[k % 16]); add(sum[k % 4], x[(k + 14) % 16]))
KERNEL(add_3_before, exponential(x[k % 16]); add(sum[k % 4], x[(k + 13) % 16]))
KERNEL(add_6_before, exponential(x[k % 16]); add(sum[k % 4], x[(k + 10) % 16]))
KERNEL(scale_add_2_before, scale(x[k % 16], y, z); exponential(x[k % 16]); add(sum[k % 4], x[(k + 14) % 16]))
KERNEL(scale_add_6_before, scale(x[k % 16], y, z); exponential(x[k % 16]); add(sum[k % 4], x[(k + 10) % 16]))

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(result));
  std::exit(1);
}

int main() {
  unsigned* out;
  float* values;
  check(cudaMalloc(&out, 4096));
  check(cudaMalloc(&values, 4096));
  check(cudaMemset(values, 0, 4096));
  std::puts("kernel,warps,cycles");
  const auto run = [&](const char* name, void (*kernel)(unsigned*, float*)) {
    for (const int warps : {1, 2, 4, 8}) {
      kernel<<<1, warps * 32>>>(out, values);
      std::vector<unsigned> took(warps);
      check(cudaMemcpy(took.data(), out, took.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
      std::printf("%s,%d,%.2f\n", name, warps, *std::max_element(took.begin(), took.end()) / (64.0 * kTurns));
    }
  };
#define RUN(NAME) run(#NAME, NAME)
  RUN(chain);
  RUN(chain_add);
  RUN(chain_scale);
  RUN(two_chains_add);
  RUN(apart);
  RUN(pairs_add);
  RUN(add_1_before);
  RUN(add_2_before);
  RUN(add_3_before);
  RUN(add_6_before);
  RUN(scale_add_2_before);
  RUN(scale_add_6_before);
}
