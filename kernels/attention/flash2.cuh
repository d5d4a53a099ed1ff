// FlashAttention-2, forward and backward, on tensor cores. Heads are [head][length][kHead]; `group` query heads share a
// head of keys and values.
#pragma once

#include <math_constants.h>

#include "../common/tensor.cuh"
#include "dropout.cuh"

constexpr float kLog2E = 1.4426950408889634f;

struct Shape {
  int length, group, causal;
  float scale;
  int seed, dropped;  // of 65536
};

// The words of A of one step (16 of k) from the sums of two neighbouring columns of mma: a product feeds the next one.
template <class T>
__device__ __forceinline__ void words_of_sums(uint32_t (&words)[4], const float (&left)[4], const float (&right)[4]) {
  words[0] = packed<T>(left[0], left[1]);
  words[1] = packed<T>(left[2], left[3]);
  words[2] = packed<T>(right[0], right[1]);
  words[3] = packed<T>(right[2], right[3]);
}

// The row's value in all four lanes that share it.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// ---- forward: a block has 128 queries, a warp 32 of them with all keys; each walks the keys 64 at a time.

template <class T, int kHead, bool kDropout>
struct Forward {
  static constexpr int kQueries = 128, kKeys = 64, kThreads = 128, kStrips = 2;
  using Q = Operand<Factor::A, T, kQueries, kHead, true, Order::Swizzled, kThreads>;
  using K = Operand<Factor::B, T, kKeys, kHead, true, Order::Swizzled, kThreads>;   // S = Q K^T: k is the head
  using V = Operand<Factor::B, T, kHead, kKeys, false, Order::Swizzled, kThreads>;  // O = P V: k are the keys
  static constexpr int kSharedBytes = Q::kBytes + K::kBytes + V::kBytes;

  static __device__ __forceinline__ void run(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                             T* __restrict__ o, float* __restrict__ log_sums, const Shape& shape) {
    extern __shared__ __align__(256) char shared[];
    const unsigned q_tile = shared_address(shared), k_tile = q_tile + Q::kBytes, v_tile = k_tile + K::kBytes;
    const int length = shape.length, head = blockIdx.y;
    // Of a causal grid the blocks with the most keys go first.
    const int tile = shape.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int row0 = tile * kQueries, first = threadIdx.x / 32 * 32;  // of the block, of the warp in it
    const int row = row0 + first + threadIdx.x % 32 / 4;              // of this thread, and 8, 16, 24 further on
    const int keys = shape.causal ? min(length, row0 + kQueries) : length;
    const int64_t q_head = static_cast<int64_t>(head) * length * kHead;
    const int64_t k_head = static_cast<int64_t>(head / shape.group) * length * kHead;
    const float scale = shape.scale * kLog2E;
    const Dropout dropout(shape.seed, head, length, shape.dropped);

    const typename Q::Source q_from(q + q_head, row0, 0, length, kHead, kHead);
    typename K::Source k_from(k + k_head, 0, 0, length, kHead, kHead);
    typename V::Source v_from(v + k_head, 0, 0, length, kHead, kHead);
    const int q_offset = Q::lane_offset(first), k_offset = K::lane_offset(0), v_offset = V::lane_offset(0);

    float out[kStrips][kHead / 8][4] = {};
    float largest[kStrips][2], sum[kStrips][2] = {};
#pragma unroll
    for (int i = 0; i < kStrips; ++i) largest[i][0] = largest[i][1] = -CUDART_INF_F;

    Q::template copy<true>(q_tile, q_from);
    K::template copy<true>(k_tile, k_from);
    commit_copies();
    for (int col0 = 0; col0 < keys; col0 += kKeys) {
      wait_for_copies<0>();
      __syncthreads();  // K is there, and every warp is done with V
      V::template copy<true>(v_tile, v_from);
      commit_copies();
      v_from.advance(kKeys);

      float s[kStrips][kKeys / 8][4] = {};
#pragma unroll
      for (int step = 0; step < kHead / 16; ++step) {
        uint32_t a[kStrips][4], b[kKeys / 16][4];
#pragma unroll
        for (int i = 0; i < kStrips; ++i) Q::load(a[i], q_tile, q_offset, i, step);
#pragma unroll
        for (int j = 0; j < kKeys / 16; ++j) K::load(b[j], k_tile, k_offset, j, step);
        multiply_strips<T>(s, a, b);
      }
      wait_for_copies<0>();
      __syncthreads();  // V is there, and every warp is done with K
      if (col0 + kKeys < keys) {
        k_from.at += kKeys * kHead;  // K is walked along its rows: keys, not the head
        k_from.rows -= kKeys;
        K::template copy<true>(k_tile, k_from);
      }
      commit_copies();

      if (col0 + kKeys > length || (shape.causal && col0 + kKeys > row0 + 1)) mask(s, row, col0, length, shape.causal);
#pragma unroll
      for (int i = 0; i < kStrips; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float most = largest[i][half];
#pragma unroll
          for (int j = 0; j < kKeys / 8; ++j) most = fmaxf(most, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
          // Tile 0 holds key 0, which no query masks: from there on `most` is finite.
          most = row_max(most);
          const float kept = exp2f((largest[i][half] - most) * scale), shift = most * scale;
          largest[i][half] = most;
          float added = 0;
#pragma unroll
          for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
            for (int e = 2 * half; e < 2 * half + 2; ++e) {
              s[i][j][e] = exp2f(s[i][j][e] * scale - shift);
              added += s[i][j][e];
            }
          }
          sum[i][half] = sum[i][half] * kept + added;  // of this lane's keys; the lanes are added up at the end
#pragma unroll
          for (int j = 0; j < kHead / 8; ++j) {
            out[i][j][2 * half] *= kept;
            out[i][j][2 * half + 1] *= kept;
          }
        }
      }
      if constexpr (kDropout) drop(s, dropout, row, col0);

#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
        uint32_t p[kStrips][4];
#pragma unroll
        for (int i = 0; i < kStrips; ++i) words_of_sums<T>(p[i], s[i][2 * step], s[i][2 * step + 1]);
#pragma unroll
        for (int j = 0; j < kHead / 16; ++j) {
          uint32_t b[1][4];
          V::load(b[0], v_tile, v_offset, j, step);
#pragma unroll
          for (int i = 0; i < kStrips; ++i) {
            Tensor<T>::multiply(out[i][2 * j], p[i], b[0][0], b[0][1]);
            Tensor<T>::multiply(out[i][2 * j + 1], p[i], b[0][2], b[0][3]);
          }
        }
      }
    }

#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float total = row_sum(sum[i][half]);
        const float scaled = (kDropout ? dropout.kept_scale : 1.0f) / total;
#pragma unroll
        for (int j = 0; j < kHead / 8; ++j) {
          out[i][j][2 * half] *= scaled;
          out[i][j][2 * half + 1] *= scaled;
        }
        const int r = row + i * 16 + half * 8;
        if (threadIdx.x % 4 == 0 && r < length) {
          log_sums[static_cast<int64_t>(head) * length + r] = largest[i][half] * scale + log2f(total);
        }
      }
    }
    store_strips<true>(o + q_head, row0 + first, 0, length, kHead, kHead, out);
  }

  // Keys beyond the length, or after the query, count for nothing.
  static __device__ __forceinline__ void mask(float (&s)[kStrips][kKeys / 8][4], int row, int col0, int length,
                                              int causal) {
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int col = col0 + j * 8 + threadIdx.x % 4 * 2 + e % 2;
          if (col >= length || (causal && col > row + i * 16 + e / 2 * 8)) s[i][j][e] = -CUDART_INF_F;
        }
      }
    }
  }

  static __device__ __forceinline__ void drop(float (&s)[kStrips][kKeys / 8][4], const Dropout& dropout, int row,
                                              int col0) {
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int j = 0; j < kKeys / 8; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const uint32_t bits = dropout.bits(row + i * 16 + half * 8, col0 + j * 8 + threadIdx.x % 4 * 2);
          if (!dropout.keeps(bits, 0)) s[i][j][2 * half] = 0;
          if (!dropout.keeps(bits, 1)) s[i][j][2 * half + 1] = 0;
        }
      }
    }
  }
};

// ---- backward

// delta[row] = sum of dO O along the head, a warp a row; also clears what dQ is summed up in.
template <class T, int kHead>
__device__ __forceinline__ void delta_of_rows(const T* __restrict__ o, const T* __restrict__ d_o,
                                              float* __restrict__ delta, float* __restrict__ dq_sums, int rows) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (row >= rows) return;
  float sum = 0;
#pragma unroll
  for (int i = threadIdx.x % 32; i < kHead; i += 32) {
    const int64_t at = static_cast<int64_t>(row) * kHead + i;
    sum += static_cast<float>(o[at]) * static_cast<float>(d_o[at]);
    dq_sums[at] = 0;
  }
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffff, sum, lanes);
  if (threadIdx.x % 32 == 0) delta[row] = sum;
}

// A block has 128 keys of a head of keys, a warp 16 of them, and walks the queries 64 at a time: it makes S^T and P^T
// anew, keeps dK and dV in registers, and adds its share of dQ in memory.
template <class T, int kHead, bool kDropout>
struct Backward {
  static constexpr int kQueries = 64, kKeys = 128, kThreads = 256;
  using KRows = Operand<Factor::A, T, kKeys, kHead, true, Order::Swizzled, kThreads>;  // S^T = K Q^T, dP^T = V dO^T
  using QColumns = Operand<Factor::B, T, kQueries, kHead, true, Order::Swizzled, kThreads>;
  using QRows = Operand<Factor::B, T, kHead, kQueries, false, Order::Swizzled, kThreads>;  // dK = dS^T Q, dV = P^T dO
  using DS = Operand<Factor::A, T, kQueries, kKeys, false, Order::Swizzled, kThreads>;     // dQ = dS K
  using KColumns = Operand<Factor::B, T, kHead, kKeys, false, Order::Swizzled, kThreads>;
  static constexpr int kStageBytes = 2 * QColumns::kBytes;
  static constexpr int kRowBytes = 2 * kQueries * int(sizeof(float));  // log sums and deltas of a stage
  static constexpr int kSharedBytes = 2 * KRows::kBytes + 2 * kStageBytes + DS::kBytes + 2 * kRowBytes;
  using Sums = float[1][kQueries / 8][4];

  // s = A B of 16 keys and all queries of a stage.
  static __device__ __forceinline__ void multiply(Sums& s, unsigned a_tile, int a_offset, unsigned b_tile,
                                                  int b_offset) {
#pragma unroll
    for (int step = 0; step < kHead / 16; ++step) {
      uint32_t a[1][4], b[kQueries / 16][4];
      KRows::load(a[0], a_tile, a_offset, 0, step);
#pragma unroll
      for (int j = 0; j < kQueries / 16; ++j) QColumns::load(b[j], b_tile, b_offset, j, step);
      multiply_strips<T>(s, a, b);
    }
  }

  // sums += s B, with s (of 16 keys and the queries) as it lies in registers.
  static __device__ __forceinline__ void multiply_sums(float (&sums)[1][kHead / 8][4], const Sums& s, unsigned b_tile,
                                                       int b_offset) {
#pragma unroll
    for (int step = 0; step < kQueries / 16; ++step) {
      uint32_t a[4];
      words_of_sums<T>(a, s[0][2 * step], s[0][2 * step + 1]);
#pragma unroll
      for (int j = 0; j < kHead / 16; ++j) {
        uint32_t b[4];
        QRows::load(b, b_tile, b_offset, j, step);
        Tensor<T>::multiply(sums[0][2 * j], a, b[0], b[1]);
        Tensor<T>::multiply(sums[0][2 * j + 1], a, b[2], b[3]);
      }
    }
  }

  static __device__ __forceinline__ void run(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
                                             const T* __restrict__ d_o, const float* __restrict__ log_sums,
                                             const float* __restrict__ delta, float* __restrict__ dq_sums,
                                             T* __restrict__ dk, T* __restrict__ dv, const Shape& shape) {
    extern __shared__ __align__(256) char shared[];
    const unsigned k_tile = shared_address(shared), v_tile = k_tile + KRows::kBytes, ring = v_tile + KRows::kBytes;
    const unsigned ds_tile = ring + 2 * kStageBytes;
    float* const row_values = reinterpret_cast<float*>(shared + 2 * KRows::kBytes + 2 * kStageBytes + DS::kBytes);
    const int length = shape.length, kv_head = blockIdx.y, col0 = blockIdx.x * kKeys;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int key = col0 + warp * 16 + lane / 4;  // of this thread, and 8 further on
    const int64_t kv_at = static_cast<int64_t>(kv_head) * length * kHead;
    const float scale = shape.scale * kLog2E;
    // The tiles of queries: those of each head of the group that see these keys.
    const int first_tile = shape.causal ? col0 / kQueries : 0, tiles = (length + kQueries - 1) / kQueries;
    const int a_head = tiles - first_tile, all = a_head * shape.group;

    const int a_offset = KRows::lane_offset(warp * 16), b_offset = QColumns::lane_offset(0);
    const int rows_offset = QRows::lane_offset(0);
    const int ds_offset = DS::lane_offset(warp % 4 * 16), half_offset = KColumns::lane_offset(warp / 4 * (kHead / 2));

    const auto copy = [&](int i) {
      const int head = kv_head * shape.group + i / a_head, row0 = (first_tile + i % a_head) * kQueries;
      const int64_t at = static_cast<int64_t>(head) * length;
      const unsigned to = ring + i % 2 * kStageBytes;
      QColumns::template copy<true>(to, typename QColumns::Source(q + at * kHead, row0, 0, length, kHead, kHead));
      QColumns::template copy<true>(to + QColumns::kBytes,
                                    typename QColumns::Source(d_o + at * kHead, row0, 0, length, kHead, kHead));
      if (threadIdx.x < 2 * kQueries) {
        const bool of_delta = threadIdx.x >= kQueries;
        const int row = row0 + threadIdx.x % kQueries;
        // A query beyond the length has an infinite sum: its weights are zero.
        const float beyond = of_delta ? 0.0f : CUDART_INF_F;
        row_values[i % 2 * 2 * kQueries + threadIdx.x] =
            row < length ? (of_delta ? delta : log_sums)[at + row] : beyond;
      }
      commit_copies();
    };

    float dk_sums[1][kHead / 8][4] = {}, dv_sums[1][kHead / 8][4] = {};
    KRows::template copy<true>(k_tile, typename KRows::Source(k + kv_at, col0, 0, length, kHead, kHead));
    KRows::template copy<true>(v_tile, typename KRows::Source(v + kv_at, col0, 0, length, kHead, kHead));
    copy(0);
    for (int i = 0; i < all; ++i) {
      wait_for_copies<0>();
      __syncthreads();  // this stage is there, and every warp is done with the other and with dS
      if (i + 1 < all) copy(i + 1);
      const unsigned q_tile = ring + i % 2 * kStageBytes, do_tile = q_tile + QColumns::kBytes;
      const float* const row_log = row_values + i % 2 * 2 * kQueries;
      const int head = kv_head * shape.group + i / a_head, row0 = (first_tile + i % a_head) * kQueries;

      Sums p = {}, ds = {};
      multiply(p, k_tile, a_offset, q_tile, b_offset);
      multiply(ds, v_tile, a_offset, do_tile, b_offset);
      const bool masked = col0 + kKeys > length || (shape.causal && row0 < col0 + kKeys - 1);
      const Dropout dropout(shape.seed, head, length, shape.dropped);
#pragma unroll
      for (int j = 0; j < kQueries / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int at = j * 8 + lane % 4 * 2 + e % 2, row = row0 + at, col = key + e / 2 * 8;
          float weight = exp2f(p[0][j][e] * scale - row_log[at]);
          if (masked && (col >= length || (shape.causal && col > row))) weight = 0;
          float from_output = ds[0][j][e];
          p[0][j][e] = weight;
          if constexpr (kDropout) {
            const bool kept = dropout.keeps(dropout.bits(row, col), col);
            p[0][j][e] = kept ? weight * dropout.kept_scale : 0;
            from_output = kept ? from_output * dropout.kept_scale : 0;
          }
          ds[0][j][e] = weight * (from_output - row_log[kQueries + at]);
        }
      }
      multiply_sums(dv_sums, p, do_tile, rows_offset);
      multiply_sums(dk_sums, ds, q_tile, rows_offset);

      // dS^T goes through shared memory, since dQ sums over the keys of all warps.
#pragma unroll
      for (int j = 0; j < kQueries / 8; ++j) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned to = ds_tile + DS::Tile::at(warp * 16 + half * 8 + lane / 4, j) + lane % 4 * 4;
          const uint32_t pair = packed<T>(ds[0][j][2 * half], ds[0][j][2 * half + 1]);
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(pair) : "memory");
        }
      }
      __syncthreads();
      float dq[1][kHead / 16][4] = {};
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
        uint32_t a[1][4], b[kHead / 32][4];
        DS::load(a[0], ds_tile, ds_offset, 0, step);
#pragma unroll
        for (int j = 0; j < kHead / 32; ++j) KColumns::load(b[j], k_tile, half_offset, j, step);
        multiply_strips<T>(dq, a, b);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = row0 + warp % 4 * 16 + e / 2 * 8 + lane / 4;
        if (row >= length) continue;
        float* const to = dq_sums + (static_cast<int64_t>(head) * length + row) * kHead + warp / 4 * (kHead / 2);
#pragma unroll
        for (int j = 0; j < kHead / 16; ++j) atomicAdd(to + j * 8 + lane % 4 * 2 + e % 2, dq[0][j][e] * shape.scale);
      }
    }

#pragma unroll
    for (int j = 0; j < kHead / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) dk_sums[0][j][e] *= shape.scale;
    }
    store_strips<true>(dk + kv_at, col0 + warp * 16, 0, length, kHead, kHead, dk_sums);
    store_strips<true>(dv + kv_at, col0 + warp * 16, 0, length, kHead, kHead, dv_sums);
  }
};
