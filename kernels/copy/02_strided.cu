// Copy, step 2: every stride-th element, by argument.
//
// Shows   bytes moved against bytes asked for: sectors a request grow from 4 to 32 as the stride goes from 1 to 8 floats, and
//         past that DRAM burst sections and rows go on growing while the sectors do not.
// Bound   HBM in sectors, not in bytes asked for.
// Launch  block 256, grid ceil(n / 256); n elements are copied.
// Args    in, out [n * stride] fp32, n, stride.

extern "C" __global__ void copy_strided(const float* __restrict__ in, float* __restrict__ out, int n, int stride) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i * stride] = in[i * stride];
}
