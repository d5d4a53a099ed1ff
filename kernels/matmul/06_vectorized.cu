// Matrix product, step 6: 16-byte loads from global and shared memory.
//
// Shows   vector access: a quarter of the global load and store instructions of step 5, and a tile of a that is stored
//         transposed so that both register fragments are contiguous. Rows that are not 16-byte aligned (k or n not a
//         multiple of 4) take a scalar path.
// Bound   the FMA pipe, held back by two-way bank conflicts of the fragments and by the wait for each global tile.
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); 8 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

#include "rows.cuh"

constexpr int kBlockM = 128;
constexpr int kBlockN = 128;
constexpr int kBlockK = 8;
constexpr int kThreadM = 8;
constexpr int kThreadN = 8;
constexpr int kThreads = kBlockM * kBlockN / (kThreadM * kThreadN);

struct Tiles {
  float a[kBlockK][kBlockM];  // transposed
  float b[kBlockK][kBlockN];
};

template <bool kVector>
__device__ void product(Tiles& tiles, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
                        int n, int k) {
  const int row0 = blockIdx.y * kBlockM;
  const int col0 = blockIdx.x * kBlockN;
  const int a_row = threadIdx.x / (kBlockK / 4), a_col = threadIdx.x % (kBlockK / 4) * 4;
  const int b_row = threadIdx.x / (kBlockN / 4), b_col = threadIdx.x % (kBlockN / 4) * 4;
  const int row = threadIdx.x / (kBlockN / kThreadN) * kThreadM;
  const int col = threadIdx.x % (kBlockN / kThreadN) * kThreadN;

  float sum[kThreadM][kThreadN] = {};
  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    const float4 a_four = load_four<kVector>(a, row0 + a_row, k0 + a_col, m, k);
    tiles.a[a_col + 0][a_row] = a_four.x;
    tiles.a[a_col + 1][a_row] = a_four.y;
    tiles.a[a_col + 2][a_row] = a_four.z;
    tiles.a[a_col + 3][a_row] = a_four.w;
    *reinterpret_cast<float4*>(&tiles.b[b_row][b_col]) = load_four<kVector>(b, k0 + b_row, col0 + b_col, k, n);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kBlockK; ++i) {
      float a_part[kThreadM], b_part[kThreadN];
#pragma unroll
      for (int r = 0; r < kThreadM; r += 4) {
        *reinterpret_cast<float4*>(&a_part[r]) = *reinterpret_cast<const float4*>(&tiles.a[i][row + r]);
      }
#pragma unroll
      for (int s = 0; s < kThreadN; s += 4) {
        *reinterpret_cast<float4*>(&b_part[s]) = *reinterpret_cast<const float4*>(&tiles.b[i][col + s]);
      }
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
    for (int s = 0; s < kThreadN; s += 4) {
      store_four<kVector>(c, row0 + row + r, col0 + col + s, m, n,
                          make_float4(sum[r][s], sum[r][s + 1], sum[r][s + 2], sum[r][s + 3]));
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sgemm_vectorized(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(sizeof(float4)) Tiles tiles;
  if (rows_are_vectors(a, k) && rows_are_vectors(b, n) && rows_are_vectors(c, n)) {
    product<true>(tiles, a, b, c, m, n, k);
  } else {
    product<false>(tiles, a, b, c, m, n, k);
  }
}
