// Attention, step 3: FlashAttention forward in one kernel.
//
// Shows   online softmax: a block keeps 64 queries and walks the keys 32 at a time; S and P never leave the SM, so traffic is
//         linear in the length (times the blocks that read K and V again, from L2). A causal block stops at its diagonal.
// Bound   the FMA and shared-memory pipes.
// Launch  block 128, grid (ceil(length / 64), heads); 43.5 KiB of static shared memory.
// Args    q, k, v, o [heads][length][64]; length; scale; causal: 0, or 1 to mask keys after the query; fp32.

#include <math_constants.h>

#include "rows.cuh"

constexpr int kQueries = 64;
constexpr int kKeys = 32;
constexpr int kThreads = 128;
constexpr int kLanesX = 8;   // lanes of a warp along the keys (or along the head), 4 along the queries
constexpr int kPerRow = 4;   // queries a thread: warp * 16 + i * 4 + lane / 8
constexpr int kPerCol = 4;   // keys a thread: lane % 8 + j * 8
constexpr int kPitch = kHead + 4;
constexpr int kPitchP = kKeys + 8;

extern "C" __global__ void __launch_bounds__(kThreads)
    flash_attention(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                    float* __restrict__ o, int length, float scale, int causal) {
  __shared__ __align__(16) float q_tile[kQueries][kPitch];
  __shared__ __align__(16) float k_tile[kKeys][kPitch];
  __shared__ __align__(16) float v_tile[kKeys][kHead];
  __shared__ __align__(16) float p_tile[kQueries][kPitchP];  // each warp writes and reads its own 16 rows

  const int head = blockIdx.y * length * kHead;
  const int row0 = blockIdx.x * kQueries;
  const int lane = threadIdx.x % 32;
  const int x = lane % kLanesX;
  const int y = threadIdx.x / 32 * 16 + lane / kLanesX;  // of this thread's queries, y + 4 i

  float row_max[kPerRow], row_sum[kPerRow] = {};
#pragma unroll
  for (int i = 0; i < kPerRow; ++i) row_max[i] = -CUDART_INF_F;
  float4 out[kPerRow][2] = {};  // columns x * 4 .. + 3, and the same 32 further on

  load_rows<kQueries, kThreads>(q_tile, q + head, row0, length);
  const int keys = causal ? min(length, row0 + kQueries) : length;
  for (int col0 = 0; col0 < keys; col0 += kKeys) {
    load_rows<kKeys, kThreads>(k_tile, k + head, col0, length);
    load_rows<kKeys, kThreads>(v_tile, v + head, col0, length);
    __syncthreads();

    float score[kPerRow][kPerCol] = {};
#pragma unroll 4
    for (int d = 0; d < kHead; d += 4) {
      float4 key[kPerCol];
#pragma unroll
      for (int j = 0; j < kPerCol; ++j) key[j] = four_at(&k_tile[x + j * kLanesX][d]);
#pragma unroll
      for (int i = 0; i < kPerRow; ++i) {
        const float4 query = four_at(&q_tile[y + i * 4][d]);
#pragma unroll
        for (int j = 0; j < kPerCol; ++j) score[i][j] = dot(query, key[j], score[i][j]);
      }
    }

#pragma unroll
    for (int i = 0; i < kPerRow; ++i) {
      float largest = row_max[i];
#pragma unroll
      for (int j = 0; j < kPerCol; ++j) {
        const int col = col0 + x + j * kLanesX;
        const bool masked = col >= length || (causal && col > row0 + y + i * 4);
        score[i][j] = masked ? -CUDART_INF_F : score[i][j] * scale;
        largest = fmaxf(largest, score[i][j]);
      }
#pragma unroll
      for (int lanes = kLanesX / 2; lanes > 0; lanes /= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, lanes));
      }

      // The first tile holds key 0, which no query masks: from there on `largest` is finite.
      const float kept = expf(row_max[i] - largest);
      float sum = 0.0f;
#pragma unroll
      for (int j = 0; j < kPerCol; ++j) {
        const float weight = expf(score[i][j] - largest);
        p_tile[y + i * 4][x + j * kLanesX] = weight;
        sum += weight;
      }
      row_max[i] = largest;
      row_sum[i] = row_sum[i] * kept + sum;  // of this lane's keys; the lanes are added up at the end
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        out[i][half] = make_float4(out[i][half].x * kept, out[i][half].y * kept, out[i][half].z * kept, out[i][half].w * kept);
      }
    }
    __syncwarp();

#pragma unroll 2
    for (int c = 0; c < kKeys; c += 4) {
      float4 weights[kPerRow];
#pragma unroll
      for (int i = 0; i < kPerRow; ++i) weights[i] = four_at(&p_tile[y + i * 4][c]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float4 value[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) value[j] = four_at(&v_tile[c + j][x * 4 + half * 32]);
#pragma unroll
        for (int i = 0; i < kPerRow; ++i) {
          add_scaled(out[i][half], weights[i].x, value[0]);
          add_scaled(out[i][half], weights[i].y, value[1]);
          add_scaled(out[i][half], weights[i].z, value[2]);
          add_scaled(out[i][half], weights[i].w, value[3]);
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kPerRow; ++i) {
    float sum = row_sum[i];
#pragma unroll
    for (int lanes = kLanesX / 2; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
    const int row = row0 + y + i * 4;
    if (row >= length) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float4 result = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
      add_scaled(result, 1.0f / sum, out[i][half]);
      *reinterpret_cast<float4*>(&o[head + row * kHead + x * 4 + half * 32]) = result;
    }
  }
}
