// Tensor-core products as mma.sync sees them (Ampere on): instructions, fragments, and tiles of operands in shared
// memory.
//
// Whatever the type, mma.sync multiplies 16 rows of A by 8 columns of B over eight words of k: 16 halves, 8 tf32 or
// fp64, 32 bytes. A lane holds four words of A (rows r and r + 8, words w and w + 4 with r = lane / 4, w = lane % 4),
// two of B, four sums. A strip is 16 rows of A or, for two neighbouring mma, 16 columns of B: four words either way, in
// the order in which mma wants them in neighbouring registers, (r, w) (r + 8, w) (r, w + 4) (r + 8, w + 4) of A and (c,
// w) (c, w + 4) (c + 8, w) (c + 8, w + 4) of B.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

struct Tf32 {
  float value;
};
struct E4m3 {
  uint8_t bits;
};

// ---- instructions

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// 16 bytes past L1 into shared memory, or zeros where `inside` is false: then nothing is read.
__device__ __forceinline__ void copy_async(unsigned to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0) : "memory");
}

__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

__device__ __forceinline__ void store_shared(unsigned to, uint4 v) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}

__device__ __forceinline__ void load_matrices(uint32_t (&words)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}

__device__ __forceinline__ void load_matrices_transposed(uint32_t (&words)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(at)
               : "memory");
}

__device__ __forceinline__ double load_shared_double(unsigned at) {
  double value;
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(value) : "r"(at) : "memory");
  return value;
}

// ---- types: a word of k, a sum, and d += a b

#define TENSOR_MULTIPLY(SHAPE_AND_TYPES, CONSTRAINT)                                                         \
  asm("mma.sync.aligned." SHAPE_AND_TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+" CONSTRAINT(d[0]), "+" CONSTRAINT(d[1]), "+" CONSTRAINT(d[2]), "+" CONSTRAINT(d[3])               \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))

template <class T>
struct Tensor;

template <>
struct Tensor<__half> {
  using Word = uint32_t;
  using Sum = float;
  using Result = __half;
  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
    TENSOR_MULTIPLY("m16n8k16.row.col.f32.f16.f16.f32", "f");
  }
};

template <>
struct Tensor<__nv_bfloat16> {
  using Word = uint32_t;
  using Sum = float;
  using Result = __nv_bfloat16;
  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
    TENSOR_MULTIPLY("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
  }
};

template <>
struct Tensor<Tf32> {
  using Word = uint32_t;
  using Sum = float;
  using Result = float;
  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
    TENSOR_MULTIPLY("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
  }
};

template <>
struct Tensor<int8_t> {
  using Word = uint32_t;
  using Sum = int;
  using Result = int;
  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
    TENSOR_MULTIPLY("m16n8k32.row.col.s32.s8.s8.s32", "r");
  }
};

template <>
struct Tensor<E4m3> {
  using Word = uint32_t;
  using Sum = float;
  using Result = float;

#if __CUDA_ARCH__ < 890
  // Two bytes as halves: sign, exponent and mantissa move into place, and 2^8 makes up for the exponent's bias, also of
  // subnormals. (NaN, 0x7f, becomes 480: there are none here.)
  static __device__ __forceinline__ uint32_t widen(uint32_t word, int pair) {
    const uint32_t bytes = __byte_perm(word, 0, pair == 0 ? 0x1404 : 0x3424);  // each byte on top of 16 bits
    const uint32_t halves = (bytes & 0x80008000u) | (bytes & 0x7f007f00u) >> 1;
    const __half2 scaled = __hmul2(*reinterpret_cast<const __half2*>(&halves), __float2half2_rn(256.0f));
    return *reinterpret_cast<const uint32_t*>(&scaled);
  }
#endif

  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
#if __CUDA_ARCH__ >= 890
    TENSOR_MULTIPLY("m16n8k32.row.col.f32.e4m3.e4m3.f32", "f");
#else
    // No fp8 before sm_89: two products of halves, the lower two bytes of each word and the upper two. That deals k out
    // to the words in another order, the same for A and B.
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const uint32_t halves[4] = {widen(a[0], pair), widen(a[1], pair), widen(a[2], pair), widen(a[3], pair)};
      Tensor<__half>::multiply(d, halves, widen(b0, pair), widen(b1, pair));
    }
#endif
  }
};

template <>
struct Tensor<double> {
  using Word = double;
  using Sum = double;
  using Result = double;
  static __device__ __forceinline__ void multiply(Sum (&d)[4], const Word (&a)[4], Word b0, Word b1) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
    multiply_quarter(d[0], d[1], a[0], b0);
    multiply_quarter(d[2], d[3], a[1], b0);
    multiply_quarter(d[0], d[1], a[2], b1);
    multiply_quarter(d[2], d[3], a[3], b1);
#endif
  }
  static __device__ __forceinline__ void multiply_quarter(Sum& d0, Sum& d1, Word a, Word b) {
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d0), "+d"(d1)
        : "d"(a), "d"(b));
  }
};

// Two sums as they are stored.
__device__ __forceinline__ __half2 pair_of(float x, float y, __half*) { return __floats2half2_rn(x, y); }
__device__ __forceinline__ __nv_bfloat162 pair_of(float x, float y, __nv_bfloat16*) {
  return __floats2bfloat162_rn(x, y);
}
__device__ __forceinline__ float2 pair_of(float x, float y, float*) { return make_float2(x, y); }
__device__ __forceinline__ int2 pair_of(int x, int y, int*) { return make_int2(x, y); }
__device__ __forceinline__ double2 pair_of(double x, double y, double*) { return make_double2(x, y); }

__device__ __forceinline__ __half result_of(float x, __half*) { return __float2half_rn(x); }
__device__ __forceinline__ __nv_bfloat16 result_of(float x, __nv_bfloat16*) { return __float2bfloat16_rn(x); }
template <class T>
__device__ __forceinline__ T result_of(T x, T*) {
  return x;
}

template <class T>
__device__ __forceinline__ uint32_t packed(float x, float y) {
  const auto pair = pair_of(x, y, static_cast<T*>(nullptr));
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// ---- tiles in shared memory

// Where the 16-byte chunks of a row go. A warp reads eight rows (fp64: four) at one chunk: in rows of 64 bytes or more
// these meet in one or two bank groups. Padding shifts each row by a chunk and costs memory; the swizzle exchanges
// chunks in a row.
enum class Order { Plain, Padded, Swizzled };

template <int kRows, int kRowBytes, Order kOrder, int kWordBytes = 4>
struct SharedTile {
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kPitch = kRowBytes + (kOrder == Order::Padded ? 16 : 0);
  static constexpr int kBytes = kRows * kPitch;

  static __device__ __forceinline__ int at(int row, int chunk) {
    if constexpr (kOrder == Order::Swizzled) {
      constexpr int kWays = kChunks < 8 ? kChunks : 8;
      chunk ^= static_cast<unsigned>(row) * kWays / 8 * (kWordBytes / 4) % kWays;
    }
    return row * kPitch + chunk * 16;
  }

  // A position `by` bytes further along the row than `offset`, which lies at a multiple of the power of two above `by`.
  static __device__ __forceinline__ int along(int offset, int by) {
    return kOrder == Order::Swizzled ? offset ^ by : offset + by;
  }
};

// A tile of an operand: kExtent rows of A or columns of B, kDepth of k. kDepthInRow says that k runs along the rows of
// memory (A as it is, B transposed); otherwise a row of memory is kExtent long (B as it is, A transposed; 16-bit types
// only).
enum class Factor { A, B };

template <Factor kFactor, class T, int kExtent, int kDepth, bool kDepthInRow, Order kOrder, int kThreads>
struct Operand {
  static constexpr int kRows = kDepthInRow ? kExtent : kDepth;
  static constexpr int kPerChunk = 16 / sizeof(T);
  using Tile =
      SharedTile<kRows, (kDepthInRow ? kDepth : kExtent) * int(sizeof(T)), kOrder, sizeof(typename Tensor<T>::Word)>;
  static constexpr int kBytes = Tile::kBytes;
  static constexpr int kPasses = kRows * Tile::kChunks / kThreads;
  static constexpr int kRowsAPass = kThreads / Tile::kChunks;
  static_assert(kPasses * kThreads == kRows * Tile::kChunks && kThreads % Tile::kChunks == 0,
                "a chunk for every thread");
  static_assert(kDepthInRow || sizeof(T) == 2,
                "only 16-bit elements can be transposed on the way out of shared memory");

  // The part of memory that is walked: `rows` x `cols` elements with so many in a row; the tile begins at row, col.
  struct Source {
    const T* at;            // this thread's first chunk
    int rows, cols, pitch;  // rows and columns that are left from there on

    __device__ __forceinline__ Source(const T* matrix, int row, int col, int all_rows, int all_cols, int row_pitch) {
      row += threadIdx.x / Tile::kChunks;
      col += threadIdx.x % Tile::kChunks * kPerChunk;
      at = matrix + static_cast<int64_t>(row) * row_pitch + col;
      rows = all_rows - row;
      cols = all_cols - col;
      pitch = row_pitch;
    }

    __device__ __forceinline__ void advance(int depth) {
      if constexpr (kDepthInRow) {
        at += depth;
        cols -= depth;
      } else {
        at += static_cast<int64_t>(depth) * pitch;
        rows -= depth;
      }
    }

    // The chunk of one pass by way of registers, whatever its alignment. Zeros outside the matrix.
    template <bool kVector>
    __device__ __forceinline__ uint4 fetch(int pass) const {
      uint4 chunk = make_uint4(0, 0, 0, 0);
      const T* from = at + static_cast<int64_t>(pass * kRowsAPass) * pitch;
      if (pass * kRowsAPass >= rows) return chunk;
      if constexpr (kVector) {
        if (cols > 0) chunk = *reinterpret_cast<const uint4*>(from);
      } else {
        T element[kPerChunk];
        *reinterpret_cast<uint4*>(element) = chunk;
#pragma unroll
        for (int i = 0; i < kPerChunk; ++i) {
          if (i < cols) element[i] = from[i];
        }
        chunk = *reinterpret_cast<const uint4*>(element);
      }
      return chunk;
    }
  };

  static __device__ __forceinline__ unsigned place(unsigned tile, int pass) {
    return tile + Tile::at(threadIdx.x / Tile::kChunks + pass * kRowsAPass, threadIdx.x % Tile::kChunks);
  }

  // Starts one pass of the copy of a tile; with kVector the rows are whole chunks, 16-byte aligned.
  template <bool kVector>
  static __device__ __forceinline__ void copy(unsigned tile, const Source& from, int pass) {
    if constexpr (kVector) {
      copy_async(place(tile, pass), from.at + static_cast<int64_t>(pass * kRowsAPass) * from.pitch,
                 pass * kRowsAPass < from.rows && from.cols > 0);
    } else {
      store_shared(place(tile, pass), from.template fetch<false>(pass));
    }
  }

  template <bool kVector>
  static __device__ __forceinline__ void copy(unsigned tile, const Source& from) {
#pragma unroll(kVector ? kPasses : 1)
    for (int pass = 0; pass < kPasses; ++pass) copy<kVector>(tile, from, pass);
  }

  // Where this lane begins to read the strips of a warp whose part starts at `first` of the tile's extent.
  static __device__ __forceinline__ int lane_offset(int first) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 8) return Tile::at(first + lane / 4, lane % 4 / 2) + lane % 2 * 8;
    // Eight lanes address a matrix each: which of the two bits above is the half of the extent, which that of the
    // words?
    const int half = kFactor == Factor::A ? lane / 8 % 2 : lane / 16,
              words = kFactor == Factor::A ? lane / 16 : lane / 8 % 2;
    if constexpr (kDepthInRow) return Tile::at(first + half * 8 + lane % 8, words);
    return Tile::at(words * 8 + lane % 8, first / 8 + half);
  }

  // Words of one strip: the `strip`-th of 16, `step`-th of eight words of k.
  static __device__ __forceinline__ void load(typename Tensor<T>::Word (&words)[4], unsigned tile, int offset,
                                              int strip, int step) {
    if constexpr (sizeof(T) == 8) {
      const unsigned at = tile + Tile::along(offset, step * 64) + strip * 16 * Tile::kPitch;
      const unsigned further = tile + Tile::along(offset, step * 64 + 32) + strip * 16 * Tile::kPitch;
      words[0] = load_shared_double(at);
      words[kFactor == Factor::A ? 1 : 2] = load_shared_double(at + 8 * Tile::kPitch);
      words[kFactor == Factor::A ? 2 : 1] = load_shared_double(further);
      words[3] = load_shared_double(further + 8 * Tile::kPitch);
    } else if constexpr (kDepthInRow) {
      load_matrices(words, tile + Tile::along(offset, step * 32) + strip * 16 * Tile::kPitch);
    } else {
      load_matrices_transposed(words, tile + Tile::along(offset, strip * 32) + step * 16 * Tile::kPitch);
    }
  }
};

// sums += A B of a warp, of one step of k: strips of A against pairs of columns of B.
template <class T, int kStripsA, int kStripsB>
__device__ __forceinline__ void multiply_strips(typename Tensor<T>::Sum (&sums)[kStripsA][2 * kStripsB][4],
                                                const typename Tensor<T>::Word (&a)[kStripsA][4],
                                                const typename Tensor<T>::Word (&b)[kStripsB][4]) {
#pragma unroll
  for (int i = 0; i < kStripsA; ++i) {
#pragma unroll
    for (int j = 0; j < kStripsB; ++j) {
      Tensor<T>::multiply(sums[i][2 * j], a[i], b[j][0], b[j][1]);
      Tensor<T>::multiply(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
    }
  }
}

// Stores a warp's sums at row, col of a matrix. kPairs says that rows are a whole number of pairs, aligned as pairs.
template <bool kPairs, class Result, class Sum, int kStripsM, int kStripsN>
__device__ __forceinline__ void store_strips(Result* __restrict__ c, int row, int col, int rows, int cols, int pitch,
                                             const Sum (&sums)[kStripsM][kStripsN][4]) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kStripsM; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int r = row + i * 16 + half * 8 + lane / 4;
      if (r >= rows) continue;
      Result* to = c + static_cast<int64_t>(r) * pitch;
#pragma unroll
      for (int j = 0; j < kStripsN; ++j) {
        const int q = col + j * 8 + lane % 4 * 2;
        const Sum x = sums[i][j][half * 2], y = sums[i][j][half * 2 + 1];
        if constexpr (kPairs) {
          using Pair = decltype(pair_of(x, y, c));
          if (q < cols) *reinterpret_cast<Pair*>(to + q) = pair_of(x, y, c);
        } else {
          if (q < cols) to[q] = result_of(x, c);
          if (q + 1 < cols) to[q + 1] = result_of(y, c);
        }
      }
    }
  }
}

// Whether rows of so many elements are whole 16-byte chunks.
template <class T>
__device__ __forceinline__ bool rows_are_chunks(const T* matrix, int cols) {
  return static_cast<int64_t>(cols) * sizeof(T) % 16 == 0 && reinterpret_cast<uint64_t>(matrix) % 16 == 0;
}
