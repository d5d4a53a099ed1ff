// Matrix product, step 3: 32 x 32 tiles of a and b in shared memory.
//
// Shows   tiling: each input element is read from global memory n / 32 times instead of n times.
// Bound   the shared-memory pipe (mio_throttle) and the barrier: an FMA needs one element of each tile; the compiler joins
//         four of a into one 16-byte load, which leaves 5 shared loads for 4 FMAs.
// Launch  block (32, 32), grid (ceil(n / 32), ceil(m / 32)); 8 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

constexpr int kTile = 32;

extern "C" __global__ void sgemm_shared_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                              int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile];

  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int col = blockIdx.x * kTile + x;

  float sum = 0.0f;
  for (int k0 = 0; k0 < k; k0 += kTile) {
    a_tile[y][x] = row < m && k0 + x < k ? a[row * k + k0 + x] : 0.0f;
    b_tile[y][x] = k0 + y < k && col < n ? b[(k0 + y) * n + col] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}
