// Copy, step 3: the input begins `offset` elements late.
//
// Shows   misalignment: with an offset that is not a multiple of 8 floats a warp's load touches 5 sectors for the 4 it needs;
//         the fifth is its neighbour's too, so L1 and L2 make up for it and HBM hardly notices.
// Bound   HBM.
// Launch  block 256, grid ceil(n / 256).
// Args    in[n + offset], out[n] fp32, n, offset.

extern "C" __global__ void copy_offset(const float* __restrict__ in, float* __restrict__ out, int n, int offset) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i + offset];
}
