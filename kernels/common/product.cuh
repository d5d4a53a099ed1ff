// A tile of C = A B by one block, with tensor cores: copies run some tiles ahead in a ring of shared memory, and while
// a step of k is multiplied the words of the next are on their way to registers. Everything else is a template
// argument.
#pragma once

#include "tensor.cuh"

// What a product is made of. kWarpM x kWarpN of C a warp; kStages tiles of kBlockK in the ring.
template <class T, int kBlockM_, int kBlockN_, int kBlockK_, int kWarpM_, int kWarpN_, int kStages_,
          bool kAAlongK = true, bool kBAlongK = sizeof(T) != 2, Order kOrder = Order::Swizzled>
struct Product {
  using Word = typename Tensor<T>::Word;
  using Sum = typename Tensor<T>::Sum;
  using Result = typename Tensor<T>::Result;
  static constexpr int kBlockM = kBlockM_, kBlockN = kBlockN_, kBlockK = kBlockK_, kWarpM = kWarpM_, kWarpN = kWarpN_;
  static constexpr int kStages = kStages_;
  static constexpr bool kBRowsAlongK = kBAlongK;
  static constexpr int kThreads = kBlockM / kWarpM * (kBlockN / kWarpN) * 32;
  using A = Operand<Factor::A, T, kBlockM, kBlockK, kAAlongK, kOrder, kThreads>;
  using B = Operand<Factor::B, T, kBlockN, kBlockK, kBAlongK, kOrder, kThreads>;
  static constexpr int kStageBytes = A::kBytes + B::kBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kDepth = 8 * sizeof(Word) / sizeof(T);  // elements of k in a step
  static constexpr int kSteps = kBlockK / kDepth;
  static constexpr int kStripsM = kWarpM / 16, kStripsN = kWarpN / 16;
  static_assert(kSteps % 2 == 0 && kStages >= 2, "words are fetched a step ahead, in two sets");

  struct Words {
    Word a[kStripsM][4], b[kStripsN][4];
  };

  // Where A and B are read: from tile row0, col0 of C on. A is m x k, or k x m where k does not run along its rows.
  struct Sources {
    typename A::Source a;
    typename B::Source b;

    __device__ __forceinline__ Sources(const T* a, const T* b, int row0, int col0, int m, int n, int k)
        : a(a, kAAlongK ? row0 : 0, kAAlongK ? 0 : row0, kAAlongK ? m : k, kAAlongK ? k : m, kAAlongK ? k : m),
          b(b, kBAlongK ? col0 : 0, kBAlongK ? 0 : col0, kBAlongK ? n : k, kBAlongK ? k : n, kBAlongK ? k : n) {}

    __device__ __forceinline__ void advance(int tiles) {
      a.advance(tiles * kBlockK);
      b.advance(tiles * kBlockK);
    }
  };

  // The warp's sums and where it reads its operands in a stage.
  unsigned ring;
  int row, col;     // of the warp in the block's tile
  int used, freed;  // stages
  int a_offset, b_offset;
  Words words[2];
  Sum sums[kStripsM][2 * kStripsN][4];

  __device__ __forceinline__ explicit Product(const void* shared) : ring(shared_address(shared)) {
    const int warp = threadIdx.x / 32;
    row = warp / (kBlockN / kWarpN) * kWarpM;
    col = warp % (kBlockN / kWarpN) * kWarpN;
    a_offset = A::lane_offset(row);
    b_offset = B::lane_offset(col);
    clear();
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < kStripsM; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kStripsN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[i][j][e] = 0;
      }
    }
  }

  __device__ __forceinline__ unsigned stage(int index) const { return ring + index * kStageBytes; }

  template <bool kVector>
  __device__ __forceinline__ void copy(int index, const Sources& from) const {
    A::template copy<kVector>(stage(index), from.a);
    B::template copy<kVector>(stage(index) + A::kBytes, from.b);
  }

  // The share of one step in the copy of a tile: the copies are spread over all steps but the last.
  template <bool kVector>
  __device__ __forceinline__ void copy_part(int index, const Sources& from, int step) const {
    if constexpr (kVector) {
#pragma unroll
      for (int pass = 0; pass < A::kPasses; ++pass) {
        if (pass * (kSteps - 1) / A::kPasses == step) A::template copy<true>(stage(index), from.a, pass);
      }
#pragma unroll
      for (int pass = 0; pass < B::kPasses; ++pass) {
        if (pass * (kSteps - 1) / B::kPasses == step) B::template copy<true>(stage(index) + A::kBytes, from.b, pass);
      }
    } else if (step == 0) {
      copy<false>(index, from);  // no matter when: it waits for every chunk
    }
  }

  __device__ __forceinline__ void load(Words& to, int index, int step) const {
#pragma unroll
    for (int i = 0; i < kStripsM; ++i) A::load(to.a[i], stage(index), a_offset, i, step);
#pragma unroll
    for (int j = 0; j < kStripsN; ++j) B::load(to.b[j], stage(index) + A::kBytes, b_offset, j, step);
  }

  // Starts the first copies of `tiles` tiles of k. `next(from)` moves the sources to the following tile.
  template <bool kVector, class Next>
  __device__ __forceinline__ void start(Sources& from, int tiles, Next next) {
#pragma unroll 1
    for (int s = 0; s < kStages - 1; ++s) {
      if (s < tiles) {
        copy<kVector>(s, from);
        next(from);
      }
      commit_copies();
    }
    wait_for_copies<kStages - 2>();
    __syncthreads();
    used = 0;
    freed = kStages - 1;
    load(words[0], used, 0);
  }

  // Adds one tile to the sums; `more` says that there is another tile to copy.
  template <bool kVector, class Next>
  __device__ __forceinline__ void multiply_tile(Sources& from, bool more, Next next) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step == kSteps - 1) {
        // Every warp has taken its last words out of this stage, and the next tile has arrived.
        if (more) next(from);
        commit_copies();
        wait_for_copies<kStages - 2>();
        __syncthreads();
        freed = used;
        used = used + 1 == kStages ? 0 : used + 1;
      }
      load(words[(step + 1) % 2], used, (step + 1) % kSteps);
      if (step < kSteps - 1 && more) copy_part<kVector>(freed, from, step);
      multiply_strips<T>(sums, words[step % 2].a, words[step % 2].b);
    }
  }

  // Adds `tiles` tiles of k to the sums.
  template <bool kVector, class Next>
  __device__ __forceinline__ void multiply(Sources& from, int tiles, Next next) {
    start<kVector>(from, tiles, next);
    for (int tile = 0; tile < tiles; ++tile) multiply_tile<kVector>(from, tile + kStages - 1 < tiles, next);
  }

  template <bool kVector>
  __device__ __forceinline__ void multiply(Sources& from, int tiles) {
    multiply<kVector>(from, tiles, [](Sources& s) { s.advance(1); });
  }

  template <bool kVector, class To>
  __device__ __forceinline__ void store(To* c, int row0, int col0, int m, int n) const {
    store_strips<kVector>(c, row0 + row, col0 + col, m, n, n, sums);
  }
};

// The tile at row0, col0 of C = A B, of a matrix of m x n.
template <class Block, bool kVector, class T, class Result>
__device__ __forceinline__ void product_tile(const T* __restrict__ a, const T* __restrict__ b, Result* __restrict__ c,
                                             int row0, int col0, int m, int n, int k) {
  extern __shared__ __align__(128) char shared[];
  Block block(shared);
  typename Block::Sources from(a, b, row0, col0, m, n, k);
  block.template multiply<kVector>(from, (k + Block::kBlockK - 1) / Block::kBlockK);
  block.template store<kVector>(c, row0, col0, m, n);
}

// Whether every row of A, B and C is a whole number of 16-byte chunks, for copies and paired stores.
template <class Block, class T, class Result>
__device__ __forceinline__ bool all_rows_are_chunks(const T* a, const T* b, const Result* c, int n, int k) {
  return rows_are_chunks(a, k) && rows_are_chunks(b, Block::kBRowsAlongK ? k : n) && rows_are_chunks(c, n);
}
