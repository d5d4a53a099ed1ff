// Matrix product, step 2: one thread an element of c, threadIdx.x walks along a row.
//
// Shows   coalescing alone: the same arithmetic as step 1, but a warp now reads 32 neighbouring columns of b (4 sectors a
//         request), writes 32 neighbours of c, and a is the broadcast.
// Bound   L1 throughput and latency of the two loads each FMA needs (lg_throttle, long_scoreboard).
// Launch  block (32, 32), grid (ceil(n / 32), ceil(m / 32)): x is the column.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

extern "C" __global__ void sgemm_coalesced(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                           int m, int n, int k) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || col >= n) return;

  float sum = 0.0f;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
  c[row * n + col] = sum;
}
