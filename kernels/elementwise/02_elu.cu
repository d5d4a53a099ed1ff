// Element-wise, step 2: ELU, where(x < 0, alpha (exp x - 1), x), as three kernels and as one.
//
// Shows   operator fusion with a select: apart, 7 memory accesses an element (one of them a byte, written and read); fused, 2.
//         Both sides are computed and one is selected: no divergence.
// Bound   HBM.
// Launch  block 256, grid ceil(n / 256). Apart, in order: elu_negative, elu_exponential, elu_where.
// Args    x[n] fp32, mask[n] bytes, e[n] fp32, y[n] fp32, alpha, n.

extern "C" __global__ void elu_negative(const float* __restrict__ x, unsigned char* __restrict__ mask, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) mask[i] = x[i] < 0.0f;
}

extern "C" __global__ void elu_exponential(const float* __restrict__ x, float* __restrict__ e, float alpha, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) e[i] = alpha * (expf(x[i]) - 1.0f);
}

extern "C" __global__ void elu_where(const unsigned char* __restrict__ mask, const float* __restrict__ e,
                                     const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float negative = e[i];
  const float positive = x[i];
  y[i] = mask[i] ? negative : positive;
}

extern "C" __global__ void elu_fused(const float* __restrict__ x, float* __restrict__ y, float alpha, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float positive = x[i];
  const float negative = alpha * (expf(positive) - 1.0f);
  y[i] = positive < 0.0f ? negative : positive;
}
