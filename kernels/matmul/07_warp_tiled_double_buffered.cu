// Matrix product, step 7: a tile a warp, and two shared buffers so that the next tile is fetched while this one is used.
//
// Shows   warp tiles of 64 x 32 (lanes 8 x 4, each four 4 x 4 parts, so that fragments are read without bank conflicts; a row
//         of padding does the same for the transposed store of a) and software pipelining: one barrier a step, global latency
//         behind 512 FMAs a thread. Rows that are not 16-byte aligned take a scalar path.
// Bound   the FMA pipe (math_pipe_throttle, dispatch and register-port stalls).
// Launch  block 256, grid (ceil(n / 128), ceil(m / 128)); 16.25 KiB of static shared memory.
// Args    a[m][k], b[k][n], c[m][n], m, n, k; row-major fp32.

#include "rows.cuh"

constexpr int kBlockM = 128;
constexpr int kBlockN = 128;
constexpr int kBlockK = 8;
constexpr int kWarpM = 64;
constexpr int kWarpN = 32;
constexpr int kLanesM = 8;
constexpr int kLanesN = 4;
constexpr int kPart = 4;  // a lane's 8 x 8 results are 2 x 2 parts of 4 x 4
constexpr int kPad = 4;
constexpr int kThreads = kBlockM * kBlockN / 64;

struct Tiles {
  float a[2][kBlockK][kBlockM + kPad];  // transposed
  float b[2][kBlockK][kBlockN];
};

__device__ inline void store_tile(Tiles& tiles, int buffer, int a_row, int a_col, float4 a_four, int b_row, int b_col,
                                  float4 b_four) {
  tiles.a[buffer][a_col + 0][a_row] = a_four.x;
  tiles.a[buffer][a_col + 1][a_row] = a_four.y;
  tiles.a[buffer][a_col + 2][a_row] = a_four.z;
  tiles.a[buffer][a_col + 3][a_row] = a_four.w;
  *reinterpret_cast<float4*>(&tiles.b[buffer][b_row][b_col]) = b_four;
}

template <bool kVector>
__device__ void product(Tiles& tiles, const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m,
                        int n, int k) {
  const int row0 = blockIdx.y * kBlockM;
  const int col0 = blockIdx.x * kBlockN;
  const int a_row = threadIdx.x / (kBlockK / 4), a_col = threadIdx.x % (kBlockK / 4) * 4;
  const int b_row = threadIdx.x / (kBlockN / 4), b_col = threadIdx.x % (kBlockN / 4) * 4;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int row = warp / (kBlockN / kWarpN) * kWarpM + lane / kLanesN * kPart;
  const int col = warp % (kBlockN / kWarpN) * kWarpN + lane % kLanesN * kPart;

  float4 a_four = load_four<kVector>(a, row0 + a_row, a_col, m, k);
  float4 b_four = load_four<kVector>(b, b_row, col0 + b_col, k, n);
  store_tile(tiles, 0, a_row, a_col, a_four, b_row, b_col, b_four);
  __syncthreads();

  float sum[2][2][kPart][kPart] = {};
  int buffer = 0;
  for (int k0 = 0; k0 < k; k0 += kBlockK) {
    const int next = k0 + kBlockK;
    if (next < k) {
      a_four = load_four<kVector>(a, row0 + a_row, next + a_col, m, k);
      b_four = load_four<kVector>(b, next + b_row, col0 + b_col, k, n);
    }
#pragma unroll
    for (int i = 0; i < kBlockK; ++i) {
      float a_part[2][kPart], b_part[2][kPart];
#pragma unroll
      for (int p = 0; p < 2; ++p) {
        *reinterpret_cast<float4*>(a_part[p]) =
            *reinterpret_cast<const float4*>(&tiles.a[buffer][i][row + p * kLanesM * kPart]);
        *reinterpret_cast<float4*>(b_part[p]) =
            *reinterpret_cast<const float4*>(&tiles.b[buffer][i][col + p * kLanesN * kPart]);
      }
#pragma unroll
      for (int p = 0; p < 2; ++p) {
#pragma unroll
        for (int q = 0; q < 2; ++q) {
#pragma unroll
          for (int r = 0; r < kPart; ++r) {
#pragma unroll
            for (int s = 0; s < kPart; ++s) sum[p][q][r][s] += a_part[p][r] * b_part[q][s];
          }
        }
      }
    }
    if (next < k) {
      buffer ^= 1;
      store_tile(tiles, buffer, a_row, a_col, a_four, b_row, b_col, b_four);
      __syncthreads();
    }
  }

#pragma unroll
  for (int p = 0; p < 2; ++p) {
#pragma unroll
    for (int r = 0; r < kPart; ++r) {
#pragma unroll
      for (int q = 0; q < 2; ++q) {
        const float* four = sum[p][q][r];
        store_four<kVector>(c, row0 + row + p * kLanesM * kPart + r, col0 + col + q * kLanesN * kPart, m, n,
                            make_float4(four[0], four[1], four[2], four[3]));
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    sgemm_warp_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
  __shared__ __align__(sizeof(float4)) Tiles tiles;
  if (rows_are_vectors(a, k) && rows_are_vectors(b, n) && rows_are_vectors(c, n)) {
    product<true>(tiles, a, b, c, m, n, k);
  } else {
    product<false>(tiles, a, b, c, m, n, k);
  }
}
