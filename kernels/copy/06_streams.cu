// Copy, step 6: the stream that memory bandwidth is measured with, an element of 8 bytes a thread.
//
// Shows   bandwidth against bytes in flight: with shared memory that lets two blocks on an SM, the block size sets how many
//         warps have loads under way.
// Bound   latency with small blocks, HBM with large ones.
// Launch  any block, grid ceil(n / block).
// Args    a[n], b[n] fp64, n.

extern "C" __global__ void stream_scale(double* __restrict__ a, const double* __restrict__ b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = b[i] * 1.2;
}
