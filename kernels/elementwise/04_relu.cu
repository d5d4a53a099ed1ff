// Element-wise, step 4: ReLU in fp32, in fp16, and in fp16 two elements a thread.
//
// Shows   precision and intensity: 8 bytes a FLOP in fp32, 4 in fp16. One half a lane asks for 2 sectors a request instead of
//         4, so the pairs are what keeps as many bytes in flight as fp32 does.
// Bound   HBM.
// Launch  block 256, grid ceil(n / 256); relu_f16_pairs: grid ceil(n / 512).
// Args    x[n], y[n] of the type; n (pairs: n is even).

#include <cuda_fp16.h>

extern "C" __global__ void relu_f32(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f);
}

extern "C" __global__ void relu_f16(const __half* __restrict__ x, __half* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hmax(x[i], __half(0.0f));
}

extern "C" __global__ void relu_f16_pairs(const __half2* __restrict__ x, __half2* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 2) y[i] = __hmax2(x[i], __half2(0.0f, 0.0f));
}
