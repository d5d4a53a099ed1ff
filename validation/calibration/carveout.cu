// Which shared-memory carve-out the driver chooses, by threads, registers and shared bytes of a block. On a machine with
// a GPU and Nsight Compute:
//   nvcc -arch=sm_90 -o carveout carveout.cu
//   ncu --csv --page raw --print-units base --clock-control none --metrics launch__shared_mem_config_size,
//     launch__registers_per_thread,launch__shared_mem_per_block_allocated,launch__block_size ./carveout
// One block a launch, no preference stated. What was seen is in ../profiles/h200-sxm/carveout.csv.
#include <cstdio>
#include <initializer_list>

// About `Values` + 10 registers: that many loads are in flight over a barrier. In assembly, which no compiler moves.
template <int Values>
__global__ void hold(const float* in, float* out) {
  float v[Values];
#pragma unroll
  for (int i = 0; i < Values; ++i) asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(v[i]) : "l"(in + i * 32 + threadIdx.x % 32));
  __syncthreads();
#pragma unroll
  for (int i = 0; i < Values; ++i) asm volatile("st.volatile.global.f32 [%0], %1;" ::"l"(out + threadIdx.x), "f"(v[i]));
}

template <int Values>
void sweep(float* in, float* out, std::initializer_list<int> threads, std::initializer_list<int> bytes) {
  cudaFuncSetAttribute(hold<Values>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024);
  for (const int t : threads) {
    for (const int b : bytes) {
      hold<Values><<<1, t, b>>>(in, out);
      if (cudaGetLastError() != cudaSuccess) fprintf(stderr, "not launched: %d values, %d threads, %d bytes\n", Values, t, b);
    }
  }
}

int main() {
  float *in = nullptr, *out = nullptr;
  cudaMalloc(&in, 1 << 20);
  cudaMalloc(&out, 1 << 20);
  cudaMemset(in, 0, 1 << 20);
  const std::initializer_list<int> threads = {32,  64,  96,  112, 128, 144, 160, 192, 224, 256, 288, 320,
                                              384, 448, 512, 576, 640, 672, 704, 768, 832, 896, 960, 1024};
  const std::initializer_list<int> few_threads = {32, 64, 128, 192, 256, 384, 512, 768, 1024};
  const std::initializer_list<int> bytes = {0,    128,   256,   512,   1024,  1536,  2048,  3072,  4096,  5120,  6144,  7168,
                                            8192, 10240, 12288, 16384, 20480, 24576, 32768, 40960, 49152, 65536, 81920, 98304, 114688};
  const std::initializer_list<int> few_bytes = {0, 128, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768};
  sweep<4>(in, out, threads, bytes);
  sweep<24>(in, out, few_threads, few_bytes);
  sweep<32>(in, out, few_threads, few_bytes);
  sweep<48>(in, out, few_threads, few_bytes);
  sweep<64>(in, out, few_threads, few_bytes);
  sweep<84>(in, out, few_threads, few_bytes);
  sweep<110>(in, out, few_threads, few_bytes);
  sweep<130>(in, out, few_threads, few_bytes);
  sweep<160>(in, out, few_threads, few_bytes);
  sweep<220>(in, out, few_threads, few_bytes);
  const cudaError_t end = cudaDeviceSynchronize();
  if (end != cudaSuccess) fprintf(stderr, "%s\n", cudaGetErrorString(end));
  return end != cudaSuccess;
}
