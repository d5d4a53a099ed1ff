// Element-wise, step 3: three stacked sigmoids, forward and backward, with the activations stored or recomputed.
//
// Shows   recomputation: stored, 8 memory accesses an element (forward x -> s1, s2, out; backward s1, s2, grad_out ->
//         grad_in); recomputed, 5 (x -> out; x, grad_out -> grad_in), for more instructions.
// Bound   HBM, until the recomputed exponentials and divisions fill the issue slots.
// Launch  block 256, grid ceil(n / 256): sigmoids_forward_stored then sigmoids_backward_stored, or the two _recomputed.
// Args    all arrays [n] fp32; n.

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// The derivative of a sigmoid, from its value.
__device__ inline float slope(float s) { return s * (1.0f - s); }

extern "C" __global__ void sigmoids_forward_stored(const float* __restrict__ x, float* __restrict__ s1, float* __restrict__ s2,
                                                   float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float first = sigmoid(x[i]);
  const float second = sigmoid(first);
  s1[i] = first;
  s2[i] = second;
  out[i] = sigmoid(second);
}

extern "C" __global__ void sigmoids_backward_stored(const float* __restrict__ s1, const float* __restrict__ s2,
                                                    const float* __restrict__ grad_out, float* __restrict__ grad_in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float second = s2[i];
  grad_in[i] = grad_out[i] * slope(sigmoid(second)) * slope(second) * slope(s1[i]);
}

extern "C" __global__ void sigmoids_forward_recomputed(const float* __restrict__ x, float* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sigmoid(sigmoid(sigmoid(x[i])));
}

extern "C" __global__ void sigmoids_backward_recomputed(const float* __restrict__ x, const float* __restrict__ grad_out,
                                                        float* __restrict__ grad_in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float first = sigmoid(x[i]);
  const float second = sigmoid(first);
  grad_in[i] = grad_out[i] * slope(sigmoid(second)) * slope(second) * slope(first);
}
