// Matrix product, step 4: each thread computes a column of 8 elements of c.
//
// Shows   thread coarsening: one shared load of b serves 8 FMAs, and a is read as a broadcast of 16 bytes: 3 shared loads for
//         8 FMAs instead of 10.
// Bound   less the shared-memory pipe (mio_throttle falls), more barriers and the wait for the next tile.
// Launch  block 512, grid (ceil(n / 64), ceil(m / 64)); 4 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

constexpr int kBlockM = 64;
constexpr int kBlockN = 64;
constexpr int kBlockK = 8;
constexpr int kThreadM = 8;

extern "C" __global__ void __launch_bounds__(kBlockM* kBlockN / kThreadM)
    sgemm_coarsened_1d(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[kBlockM][kBlockK];
  __shared__ float b_tile[kBlockK][kBlockN];

  const int row0 = blockIdx.y * kBlockM;
  const int col0 = blockIdx.x * kBlockN;
  // What this thread loads: one element of each tile.
  const int a_row = threadIdx.x / kBlockK, a_col = threadIdx.x % kBlockK;
  const int b_row = threadIdx.x / kBlockN, b_col = threadIdx.x % kBlockN;
  // What it computes: kThreadM rows of one column.
  const int row = threadIdx.x / kBlockN * kThreadM;
  const int col = threadIdx.x % kBlockN;

  float sum[kThreadM] = {};
  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    a_tile[a_row][a_col] = row0 + a_row < m && k0 + a_col < k ? a[(row0 + a_row) * k + k0 + a_col] : 0.0f;
    b_tile[b_row][b_col] = k0 + b_row < k && col0 + b_col < n ? b[(k0 + b_row) * n + col0 + b_col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kBlockK; ++i) {
      const float b_value = b_tile[i][col];
#pragma unroll
      for (int r = 0; r < kThreadM; ++r) sum[r] += a_tile[row + r][i] * b_value;
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < kThreadM; ++r) {
    if (row0 + row + r < m && col0 + col < n) c[(row0 + row + r) * n + col0 + col] = sum[r];
  }
}
