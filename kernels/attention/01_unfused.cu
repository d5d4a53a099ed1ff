// Attention, step 1: three kernels, with S = Q K^T and P = softmax(S) written to memory in between.
//
// Shows   traffic quadratic in the length: S and P of every head are written and read back (4 x length^2 x 4 bytes a head).
// Bound   HBM once S and P leave L2; the products themselves are register-tiled.
// Launch  attention_qk            block 256, grid (ceil(length / 64), ceil(length / 64), heads): x is the key
//         attention_softmax_rows  block 256, grid heads * length
//         attention_pv            block 256, grid (ceil(length / 64), heads)
// Args    q, k, v, o [heads][length][64]; s, p [heads][length][length]; causal: 0, or 1 to mask keys after the query; fp32.

#include "../common/block.cuh"
#include "rows.cuh"

constexpr int kTile = 64;     // queries and keys a block
constexpr int kSide = 16;     // threads a side of the block, 4 x 4 results each
constexpr int kThreads = kSide * kSide;
constexpr int kPer = kTile / kSide;
constexpr int kPitch = kTile + 4;  // rows a bank group apart

extern "C" __global__ void __launch_bounds__(kThreads)
    attention_qk(const float* __restrict__ q, const float* __restrict__ k, float* __restrict__ s, int length, float scale,
                 int causal) {
  __shared__ __align__(16) float q_tile[kTile][kPitch];
  __shared__ __align__(16) float k_tile[kTile][kPitch];

  const int head = blockIdx.z;
  const int row0 = blockIdx.y * kTile;
  const int col0 = blockIdx.x * kTile;
  load_rows<kTile, kThreads>(q_tile, q + head * length * kHead, row0, length);
  load_rows<kTile, kThreads>(k_tile, k + head * length * kHead, col0, length);
  __syncthreads();

  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  float sum[kPer][kPer] = {};
#pragma unroll 4
  for (int d = 0; d < kHead; d += 4) {
    float4 keys[kPer];
#pragma unroll
    for (int j = 0; j < kPer; ++j) keys[j] = four_at(&k_tile[x + j * kSide][d]);
#pragma unroll
    for (int i = 0; i < kPer; ++i) {
      const float4 query = four_at(&q_tile[y + i * kSide][d]);
#pragma unroll
      for (int j = 0; j < kPer; ++j) sum[i][j] = dot(query, keys[j], sum[i][j]);
    }
  }

#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int row = row0 + y + i * kSide;
#pragma unroll
    for (int j = 0; j < kPer; ++j) {
      const int col = col0 + x + j * kSide;
      if (row < length && col < length) {
        s[(head * length + row) * length + col] = causal && col > row ? -CUDART_INF_F : sum[i][j] * scale;
      }
    }
  }
}

extern "C" __global__ void attention_softmax_rows(const float* __restrict__ s, float* __restrict__ p, int length) {
  block_softmax(s + blockIdx.x * length, p + blockIdx.x * length, length);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    attention_pv(const float* __restrict__ p, const float* __restrict__ v, float* __restrict__ o, int length) {
  __shared__ __align__(16) float p_tile[kTile][kPitch];
  __shared__ __align__(16) float v_tile[kTile][kHead];

  const int head = blockIdx.y;
  const int row0 = blockIdx.x * kTile;
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;

  float4 sum[kPer] = {};
  for (int col0 = 0; col0 < length; col0 += kTile) {
    load_rows<kTile, kThreads>(v_tile, v + head * length * kHead, col0, length);
    const int lane = threadIdx.x % kTile;
    const int col = col0 + lane;
#pragma unroll 4
    for (int i = 0; i < kTile; i += kThreads / kTile) {  // rows of p are not always aligned: one float a thread
      const int tile_row = threadIdx.x / kTile + i;
      const int row = row0 + tile_row;
      p_tile[tile_row][lane] = row < length && col < length ? p[(head * length + row) * length + col] : 0.0f;
    }
    __syncthreads();
#pragma unroll 4
    for (int c = 0; c < kTile; c += 4) {
      float4 values[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) values[j] = four_at(&v_tile[c + j][x * 4]);
#pragma unroll
      for (int i = 0; i < kPer; ++i) {
        const float4 weights = four_at(&p_tile[y + i * kSide][c]);
        add_scaled(sum[i], weights.x, values[0]);
        add_scaled(sum[i], weights.y, values[1]);
        add_scaled(sum[i], weights.z, values[2]);
        add_scaled(sum[i], weights.w, values[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kPer; ++i) {
    const int row = row0 + y + i * kSide;
    if (row < length) *reinterpret_cast<float4*>(&o[(head * length + row) * kHead + x * 4]) = sum[i];
  }
}
