// Separate compilation: built twice with nvcc -rdc=true -c, once with -DCALLEE, and linked by nvlink. The kernel calls a
// function of the other object and reads its variable, so their addresses are filled in by a linker.
#ifdef CALLEE
__device__ float factors[64] = {1, 2, 3, 4};
__device__ __noinline__ float series(float x, int n) {
  float sum = x;
  for (int i = 0; i < n; ++i) sum = sum * x + 1.0f;
  return sum;
}
#else
extern __device__ float factors[64];
__device__ float series(float x, int n);
extern "C" __global__ void separate(float* y, const float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = series(x[i], 3 + (i & 3)) * factors[i & 3];
}
#endif
