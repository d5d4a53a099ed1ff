// nvcc -O3 -cubin -arch=sm_90 runtime.cu
// Calls into the CUDA runtime: printf from some lanes, an assertion that holds or fails, memory from the device heap.
#include <cassert>
#include <cstdio>

__global__ void prints(float* data) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i % 8 == 0) printf("%d %f\n", i, data[i]);
  data[i] += 1;
}

__global__ void asserts(float* data, int bound) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i < bound);
  data[i] += 1;
}

__global__ void allocates(float** data) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  data[i] = static_cast<float*>(malloc(16));
}
