// A tile of C = A B by one block: a tile of each operand goes through registers into shared memory, all wait, all
// multiply.
#pragma once

#include "../common/tensor.cuh"

constexpr int kBlockM = 128;
constexpr int kBlockN = 128;
constexpr int kBlockK = 32;
constexpr int kWarpM = 64;
constexpr int kWarpN = 32;
constexpr int kThreads = 256;

template <Order kOrder, class T>
struct Staged {
  using A = Operand<Factor::A, T, kBlockM, kBlockK, true, kOrder, kThreads>;
  using B = Operand<Factor::B, T, kBlockN, kBlockK, false, kOrder, kThreads>;

  template <bool kVector>
  static __device__ __forceinline__ void product(const void* shared, const T* __restrict__ a, const T* __restrict__ b,
                                                 T* __restrict__ c, int m, int n, int k) {
    const unsigned a_tile = shared_address(shared), b_tile = a_tile + A::kBytes;
    const int row0 = blockIdx.y * kBlockM, col0 = blockIdx.x * kBlockN;
    const int warp = threadIdx.x / 32;
    const int row = warp / (kBlockN / kWarpN) * kWarpM, col = warp % (kBlockN / kWarpN) * kWarpN;
    const int a_offset = A::lane_offset(row), b_offset = B::lane_offset(col);
    typename A::Source a_from(a, row0, 0, m, k, k);
    typename B::Source b_from(b, 0, col0, k, n, n);

    float sums[kWarpM / 16][kWarpN / 8][4] = {};
    for (int k0 = 0; k0 < k; k0 += kBlockK) {
      uint4 a_chunks[A::kPasses], b_chunks[B::kPasses];
#pragma unroll
      for (int pass = 0; pass < A::kPasses; ++pass) a_chunks[pass] = a_from.template fetch<kVector>(pass);
#pragma unroll
      for (int pass = 0; pass < B::kPasses; ++pass) b_chunks[pass] = b_from.template fetch<kVector>(pass);
#pragma unroll
      for (int pass = 0; pass < A::kPasses; ++pass) store_shared(A::place(a_tile, pass), a_chunks[pass]);
#pragma unroll
      for (int pass = 0; pass < B::kPasses; ++pass) store_shared(B::place(b_tile, pass), b_chunks[pass]);
      a_from.advance(kBlockK);
      b_from.advance(kBlockK);
      __syncthreads();
#pragma unroll
      for (int step = 0; step < kBlockK / 16; ++step) {
        uint32_t a_words[kWarpM / 16][4], b_words[kWarpN / 16][4];
#pragma unroll
        for (int i = 0; i < kWarpM / 16; ++i) A::load(a_words[i], a_tile, a_offset, i, step);
#pragma unroll
        for (int j = 0; j < kWarpN / 16; ++j) B::load(b_words[j], b_tile, b_offset, j, step);
        multiply_strips<T>(sums, a_words, b_words);
      }
      __syncthreads();
    }
    store_strips<kVector>(c, row0 + row, col0 + col, m, n, n, sums);
  }
};

template <Order kOrder, class T>
__device__ __forceinline__ void staged_product(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ c,
                                               int m, int n, int k) {
  using Block = Staged<kOrder, T>;
  __shared__ __align__(128) char shared[Block::A::kBytes + Block::B::kBytes];
  if (rows_are_chunks(a, k) && rows_are_chunks(b, n) && rows_are_chunks(c, n)) {
    Block::template product<true>(shared, a, b, c, m, n, k);
  } else {
    Block::template product<false>(shared, a, b, c, m, n, k);
  }
}
