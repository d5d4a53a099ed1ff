// Attention, step 4: FlashAttention-1 forward on tensor cores.
//
// Shows   the outer loop goes over keys, the inner one over queries: K and V stay in registers, O and each row's
//         maximum and sum go to memory and back at every tile of keys. The four warps of a block split the keys, so
//         that maxima and sums meet in shared memory, and so do four partial O, which are added, rescaled and divided
//         by the sum each time: per tile many more steps that are no products, and four barriers, than in step 5. A
//         head is one block: few heads leave SMs idle.
// Bound   shared memory, barriers and latency.
// Launch  block 128, grid heads; 36.5 KiB of dynamic shared memory, 72.5 with heads of 128.
// Args    q, k, v [heads][length][64 or 128] fp16, o [heads][length][...] fp32, row_max, row_sum [heads][length] fp32,
//         length, scale, causal: 0, or 1 to mask keys after the query.

#include "flash2.cuh"

template <int kHead>
struct Flash1 {
  using T = __half;
  static constexpr int kQueries = 16, kKeys = 128, kWarps = 4, kThreads = 128, kOfWarp = kKeys / kWarps;
  using Q = Operand<Factor::A, T, kQueries, kHead, true, Order::Swizzled, kThreads>;
  using K = Operand<Factor::B, T, kKeys, kHead, true, Order::Swizzled, kThreads>;
  using V = Operand<Factor::B, T, kHead, kKeys, false, Order::Swizzled, kThreads>;
  // Partial O of the warps use the memory of K and V, which are in registers by then.
  static constexpr int kPartPitch = kHead + 8;  // floats
  static constexpr int kPartBytes = kWarps * kQueries * kPartPitch * 4;
  static constexpr int kKvBytes = K::kBytes + V::kBytes;
  static constexpr int kReduceBytes = 2 * kWarps * kQueries * 4;
  static_assert(kPartBytes <= kKvBytes);

  static __device__ __forceinline__ void run(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                             float* __restrict__ o, float* __restrict__ all_max,
                                             float* __restrict__ all_sum, int length, float softmax_scale, int causal) {
    extern __shared__ __align__(256) char shared[];
    const unsigned k_tile = shared_address(shared), v_tile = k_tile + K::kBytes, q_ring = k_tile + kKvBytes;
    float* const part = reinterpret_cast<float*>(shared);
    float* const maxima = reinterpret_cast<float*>(shared + kKvBytes + 2 * Q::kBytes);  // [warp][query]
    float* const totals = maxima + kWarps * kQueries;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t head = static_cast<int64_t>(blockIdx.x) * length;
    const float scale = softmax_scale * kLog2E;
    const int q_offset = Q::lane_offset(0), k_offset = K::lane_offset(warp * kOfWarp), v_offset = V::lane_offset(0);
    const int tiles = (length + kQueries - 1) / kQueries;

    for (int col0 = 0; col0 < length; col0 += kKeys) {
      __syncthreads();
      K::template copy<true>(k_tile, typename K::Source(k + head * kHead, col0, 0, length, kHead, kHead));
      V::template copy<true>(v_tile, typename V::Source(v + head * kHead, col0, 0, length, kHead, kHead));
      const int first = causal ? col0 / kQueries : 0;
      const auto copy_queries = [&](int tile) {
        Q::template copy<true>(q_ring + tile % 2 * Q::kBytes,
                               typename Q::Source(q + head * kHead, tile * kQueries, 0, length, kHead, kHead));
        commit_copies();
      };
      copy_queries(first);
      wait_for_copies<0>();
      __syncthreads();
      uint32_t k_words[kHead / 16][kOfWarp / 16][4], v_words[kOfWarp / 16][kHead / 16][4];
#pragma unroll
      for (int step = 0; step < kHead / 16; ++step) {
#pragma unroll
        for (int j = 0; j < kOfWarp / 16; ++j) K::load(k_words[step][j], k_tile, k_offset, j, step);
      }
#pragma unroll
      for (int step = 0; step < kOfWarp / 16; ++step) {
#pragma unroll
        for (int j = 0; j < kHead / 16; ++j)
          V::load(v_words[step][j], v_tile, v_offset, j, warp * (kOfWarp / 16) + step);
      }
      __syncthreads();  // from here on that memory is the parts'

      for (int tile = first; tile < tiles; ++tile) {
        if (tile + 1 < tiles) copy_queries(tile + 1);
        const unsigned q_tile = q_ring + tile % 2 * Q::kBytes;
        const int row0 = tile * kQueries;

        float s[1][kOfWarp / 8][4] = {};
#pragma unroll
        for (int step = 0; step < kHead / 16; ++step) {
          uint32_t a[1][4];
          Q::load(a[0], q_tile, q_offset, 0, step);
          multiply_strips<T>(s, a, k_words[step]);
        }
        float most[2] = {-CUDART_INF_F, -CUDART_INF_F};
#pragma unroll
        for (int j = 0; j < kOfWarp / 8; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int col = col0 + warp * kOfWarp + j * 8 + lane % 4 * 2 + e % 2, row = row0 + e / 2 * 8 + lane / 4;
            if (col >= length || (causal && col > row)) s[0][j][e] = -CUDART_INF_F;
            most[e / 2] = fmaxf(most[e / 2], s[0][j][e]);
          }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          most[half] = row_max(most[half]);
          if (lane % 4 == 0) maxima[warp * kQueries + half * 8 + lane / 4] = most[half];
        }
        __syncthreads();
        float total[2] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int w = 0; w < kWarps; ++w) most[half] = fmaxf(most[half], maxima[w * kQueries + half * 8 + lane / 4]);
#pragma unroll
          for (int j = 0; j < kOfWarp / 8; ++j) {
#pragma unroll
            for (int e = 2 * half; e < 2 * half + 2; ++e) {
              s[0][j][e] = exp2f((s[0][j][e] - most[half]) * scale);
              total[half] += s[0][j][e];
            }
          }
          total[half] = row_sum(total[half]);
          if (lane % 4 == 0) totals[warp * kQueries + half * 8 + lane / 4] = total[half];
        }

        float out[kHead / 8][4] = {};
#pragma unroll
        for (int step = 0; step < kOfWarp / 16; ++step) {
          uint32_t a[4];
          words_of_sums<T>(a, s[0][2 * step], s[0][2 * step + 1]);
#pragma unroll
          for (int j = 0; j < kHead / 16; ++j) {
            Tensor<T>::multiply(out[2 * j], a, v_words[step][j][0], v_words[step][j][1]);
            Tensor<T>::multiply(out[2 * j + 1], a, v_words[step][j][2], v_words[step][j][3]);
          }
        }
#pragma unroll
        for (int j = 0; j < kHead / 8; ++j) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            float* const to = part + (warp * kQueries + half * 8 + lane / 4) * kPartPitch + j * 8 + lane % 4 * 2;
            *reinterpret_cast<float2*>(to) = make_float2(out[j][2 * half], out[j][2 * half + 1]);
          }
        }
        wait_for_copies<0>();  // the next queries
        __syncthreads();

        // Each warp finishes four rows: O = (old sum e^(old - new) O + e^(tile - new) sum of parts) / new sum.
#pragma unroll
        for (int i = 0; i < kQueries / kWarps; ++i) {
          const int in_tile = warp * (kQueries / kWarps) + i, row = row0 + in_tile;
          if (row >= length) continue;
          float tile_max = maxima[in_tile], tile_sum = totals[in_tile];
#pragma unroll
          for (int w = 1; w < kWarps; ++w) {
            tile_max = fmaxf(tile_max, maxima[w * kQueries + in_tile]);
            tile_sum += totals[w * kQueries + in_tile];
          }
          const float old_max = col0 == 0 ? -CUDART_INF_F : all_max[head + row];
          const float old_sum = col0 == 0 ? 0.0f : all_sum[head + row];
          const float new_max = fmaxf(old_max, tile_max);
          const float of_old = old_sum * exp2f((old_max - new_max) * scale),
                      of_tile = exp2f((tile_max - new_max) * scale);
          const float new_sum = of_old + of_tile * tile_sum, scaled = 1.0f / new_sum;
          __syncwarp();
          if (lane == 0) {
            all_max[head + row] = new_max;
            all_sum[head + row] = new_sum;
          }
#pragma unroll
          for (int d = lane; d < kHead; d += 32) {
            float sum = 0;
#pragma unroll
            for (int w = 0; w < kWarps; ++w) sum += part[(w * kQueries + in_tile) * kPartPitch + d];
            float* const to = o + (head + row) * kHead + d;
            *to = (col0 == 0 ? of_tile * sum : of_old * *to + of_tile * sum) * scaled;
          }
        }
        __syncthreads();
      }
    }
  }
};

#define FLASH1(HEAD)                                                                                                   \
  extern "C" __global__ void __launch_bounds__(128) flash1_f16_##HEAD(                                                 \
      const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v, float* __restrict__ o, \
      float* __restrict__ row_max, float* __restrict__ row_sum, int length, float scale, int causal) {                 \
    Flash1<HEAD>::run(q, k, v, o, row_max, row_sum, length, scale, causal);                                            \
  }
FLASH1(64)
FLASH1(128)
