// Element-wise, step 1: y = sin^2 x + cos^2 x as five kernels and as one.
//
// Shows   operator fusion: apart, x, the four values in between and y make 11 memory accesses an element; fused, 2.
// Bound   HBM for the five; the fused one is near the balance of HBM and issue, since the argument is reduced first (the path
//         for |x| > 105615 walks a table of constants; no input here takes it).
// Launch  block 256, grid ceil(n / 256). Apart, in order: sin_elements, square_elements, cos_elements, square_elements,
//         add_elements.
// Args    in[n] (add: x[n], y[n]), out[n], n; fp32.

extern "C" __global__ void sin_elements(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sinf(in[i]);
}

extern "C" __global__ void cos_elements(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cosf(in[i]);
}

extern "C" __global__ void square_elements(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * in[i];
}

extern "C" __global__ void add_elements(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out,
                                        int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

extern "C" __global__ void sin_cos_fused(const float* __restrict__ in, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sine, cosine;
  sincosf(in[i], &sine, &cosine);
  out[i] = sine * sine + cosine * cosine;
}
