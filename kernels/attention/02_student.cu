// Attention, step 2: a student's FlashAttention. A pair of launches for each tile of B_r queries and B_c = 64 keys.
//
// Shows   what launches cost: n / B_r * n / 64 pairs of small kernels, so the time halves each time B_r doubles; and what
//         shared memory costs: the second kernel has one warp a block, so its 24 KiB (or 16 KiB) decide the occupancy.
// Bound   launch overhead; within a launch, latency at a few percent of occupancy.
// Launch  student_qk                block (32, 32), grid (2, ceil(rows / 32)): the tile's S, from two 32 x 32 tiles
//         student_softmax_pv_24k    block 32, grid ceil(rows / 32): V tile and this warp's rows of S in shared memory
//         student_softmax_pv_16k    the same with those rows in registers: only the V tile in shared memory
//         In order of keys, for every tile of queries: col0 = 0 first, which starts the running maximum and sum.
// Args    q, k, v, o [n][64]; s [rows][64], the tile's scores; row_max, row_sum [n]; rows = B_r, row0 and col0 the tile's
//         first query and key; fp32, one head.

#include <math_constants.h>

#include "rows.cuh"

constexpr int kBlock = 32;
constexpr int kKeys = 64;  // B_c

extern "C" __global__ void student_qk(const float* __restrict__ q, const float* __restrict__ k, float* __restrict__ s, int n,
                                      int rows, int row0, int col0, float scale) {
  __shared__ float q_tile[kBlock][kBlock];
  __shared__ float k_tile[kBlock][kBlock];  // transposed: a 32-way conflict at the store, none in the loop

  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kBlock + y;
  const int col = blockIdx.x * kBlock + x;
  const int key = col0 + blockIdx.x * kBlock + y;  // the key this thread loads; it computes col

  float sum = 0.0f;
  for (int d0 = 0; d0 < kHead; d0 += kBlock) {
    q_tile[y][x] = row < rows && row0 + row < n ? q[(row0 + row) * kHead + d0 + x] : 0.0f;
    k_tile[x][y] = key < n ? k[key * kHead + d0 + x] : 0.0f;
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kBlock; ++d) sum += q_tile[y][d] * k_tile[d][x];
    __syncthreads();
  }
  if (row < rows) s[row * kKeys + col] = col0 + col < n ? sum * scale : -CUDART_INF_F;
}

// What a row has seen before this tile, and how its old output and this tile's share combine.
struct Online {
  float old_scale;
  float new_scale;
};

__device__ inline Online update_row(float* __restrict__ row_max, float* __restrict__ row_sum, int row, bool first,
                                    float tile_max, float tile_sum) {
  const float old_max = first ? -CUDART_INF_F : row_max[row];
  const float old_sum = first ? 0.0f : row_sum[row];
  const float new_max = fmaxf(old_max, tile_max);
  const float kept = old_sum * expf(old_max - new_max);
  const float added = expf(tile_max - new_max);
  const float new_sum = kept + tile_sum * added;
  row_max[row] = new_max;
  row_sum[row] = new_sum;
  return {kept / new_sum, added / new_sum};
}

__device__ inline void update_output(float* __restrict__ o, bool first, Online online, float4 share) {
  float4 out = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (!first) add_scaled(out, online.old_scale, *reinterpret_cast<const float4*>(o));
  add_scaled(out, online.new_scale, share);
  *reinterpret_cast<float4*>(o) = out;
}

extern "C" __global__ void __launch_bounds__(kBlock)
    student_softmax_pv_24k(const float* __restrict__ s, const float* __restrict__ v, float* __restrict__ o,
                           float* __restrict__ row_max, float* __restrict__ row_sum, int n, int rows, int row0, int col0) {
  __shared__ __align__(16) float v_tile[kKeys][kHead];
  __shared__ float s_tile[kBlock][kKeys];  // row r is rotated by r: no conflicts when every lane walks its own row

  load_rows<kKeys, kBlock>(v_tile, v, col0, n);
  const int tile_row0 = blockIdx.x * kBlock;
  for (int r = 0; r < kBlock && tile_row0 + r < rows; ++r) {
    for (int c = threadIdx.x; c < kKeys; c += kBlock) s_tile[r][(c + r) % kKeys] = s[(tile_row0 + r) * kKeys + c];
  }
  __syncwarp();

  const int lane = threadIdx.x;
  const int row = row0 + tile_row0 + lane;
  if (tile_row0 + lane >= rows || row >= n) return;
  const bool first = col0 == 0;

  float tile_max = -CUDART_INF_F;
  for (int c = 0; c < kKeys; ++c) tile_max = fmaxf(tile_max, s_tile[lane][(c + lane) % kKeys]);
  float tile_sum = 0.0f;
  float4 share[kHead / 4] = {};
  for (int c = 0; c < kKeys; ++c) {
    const float weight = expf(s_tile[lane][(c + lane) % kKeys] - tile_max);
    tile_sum += weight;
#pragma unroll
    for (int d = 0; d < kHead / 4; ++d) add_scaled(share[d], weight, four_at(&v_tile[c][d * 4]));
  }

  const Online online = update_row(row_max, row_sum, row, first, tile_max, tile_sum);
#pragma unroll
  for (int d = 0; d < kHead / 4; ++d) update_output(o + row * kHead + d * 4, first, online, share[d]);
}

extern "C" __global__ void __launch_bounds__(kBlock)
    student_softmax_pv_16k(const float* __restrict__ s, const float* __restrict__ v, float* __restrict__ o,
                           float* __restrict__ row_max, float* __restrict__ row_sum, int n, int rows, int row0, int col0) {
  __shared__ __align__(16) float v_tile[kKeys][kHead];

  load_rows<kKeys, kBlock>(v_tile, v, col0, n);
  __syncwarp();

  const int tile_row = blockIdx.x * kBlock + threadIdx.x;
  const int row = row0 + tile_row;
  if (tile_row >= rows || row >= n) return;
  const bool first = col0 == 0;

  float4 weights[kKeys / 4];
  float tile_max = -CUDART_INF_F;
#pragma unroll
  for (int c = 0; c < kKeys / 4; ++c) {
    weights[c] = *reinterpret_cast<const float4*>(s + tile_row * kKeys + c * 4);
    tile_max = fmaxf(tile_max, fmaxf(fmaxf(weights[c].x, weights[c].y), fmaxf(weights[c].z, weights[c].w)));
  }
  float tile_sum = 0.0f;
#pragma unroll
  for (int c = 0; c < kKeys / 4; ++c) {
    weights[c] = make_float4(expf(weights[c].x - tile_max), expf(weights[c].y - tile_max), expf(weights[c].z - tile_max),
                             expf(weights[c].w - tile_max));
    tile_sum += weights[c].x + weights[c].y + weights[c].z + weights[c].w;
  }

  const Online online = update_row(row_max, row_sum, row, first, tile_max, tile_sum);
#pragma unroll 1
  for (int d = 0; d < kHead; d += 4) {
    float4 share = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int c = 0; c < kKeys / 4; ++c) {
      add_scaled(share, weights[c].x, four_at(&v_tile[c * 4 + 0][d]));
      add_scaled(share, weights[c].y, four_at(&v_tile[c * 4 + 1][d]));
      add_scaled(share, weights[c].z, four_at(&v_tile[c * 4 + 2][d]));
      add_scaled(share, weights[c].w, four_at(&v_tile[c * 4 + 3][d]));
    }
    update_output(o + row * kHead + d, first, online, share);
  }
}
