// Matrix product, step 5: each thread computes an 8 x 8 tile of c in registers.
//
// Shows   register tiles: 16 shared floats serve 64 FMAs (the compiler joins them to 4 loads of 16 bytes); few warps an SM,
//         instruction-level parallelism instead.
// Bound   the FMA pipe begins to show, held back by bank conflicts of the 16-byte loads and eight scalar global loads a step.
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); 8 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

constexpr int kBlockM = 128;
constexpr int kBlockN = 128;
constexpr int kBlockK = 8;
constexpr int kThreadM = 8;
constexpr int kThreadN = 8;
constexpr int kThreads = kBlockM * kBlockN / (kThreadM * kThreadN);

extern "C" __global__ void __launch_bounds__(kThreads)
    sgemm_coarsened_2d(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[kBlockM][kBlockK];
  __shared__ float b_tile[kBlockK][kBlockN];

  const int row0 = blockIdx.y * kBlockM;
  const int col0 = blockIdx.x * kBlockN;
  const int a_row = threadIdx.x / kBlockK, a_col = threadIdx.x % kBlockK;
  const int b_row = threadIdx.x / kBlockN, b_col = threadIdx.x % kBlockN;
  const int row = threadIdx.x / (kBlockN / kThreadN) * kThreadM;
  const int col = threadIdx.x % (kBlockN / kThreadN) * kThreadN;

  float sum[kThreadM][kThreadN] = {};
  for (int k0 = 0; k0 < k; k0 += kBlockK) {
#pragma unroll
    for (int i = 0; i < kBlockM; i += kThreads / kBlockK) {
      const int from = row0 + a_row + i;
      a_tile[a_row + i][a_col] = from < m && k0 + a_col < k ? a[from * k + k0 + a_col] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kBlockK; i += kThreads / kBlockN) {
      const int from = k0 + b_row + i;
      b_tile[b_row + i][b_col] = from < k && col0 + b_col < n ? b[from * n + col0 + b_col] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kBlockK; ++i) {
      float a_part[kThreadM], b_part[kThreadN];
#pragma unroll
      for (int r = 0; r < kThreadM; ++r) a_part[r] = a_tile[row + r][i];
#pragma unroll
      for (int s = 0; s < kThreadN; ++s) b_part[s] = b_tile[i][col + s];
#pragma unroll
      for (int r = 0; r < kThreadM; ++r) {
#pragma unroll
        for (int s = 0; s < kThreadN; ++s) sum[r][s] += a_part[r] * b_part[s];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int r = 0; r < kThreadM; ++r) {
#pragma unroll
    for (int s = 0; s < kThreadN; ++s) {
      if (row0 + row + r < m && col0 + col + s < n) c[(row0 + row + r) * n + col0 + col + s] = sum[r][s];
    }
  }
}
