// Matrix product, step 1: one thread an element of c, threadIdx.x walks down the rows.
//
// Shows   an uncoalesced product: the 32 lanes of a warp read 32 different rows of a (32 sectors a request, 4 bytes used of
//         each) and write one column of c, while b is one broadcast address.
// Bound   L1 and L2 throughput (lg_throttle, long_scoreboard); about ten times slower than step 2.
// Launch  block (32, 32), grid (ceil(m / 32), ceil(n / 32)): x is the row.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

extern "C" __global__ void sgemm_naive_uncoalesced(const float* __restrict__ a, const float* __restrict__ b,
                                                   float* __restrict__ c, int m, int n, int k) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;

  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}
