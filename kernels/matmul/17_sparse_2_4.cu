// Matrix product, step 17: A with two of every four neighbours along k zero, on sparse tensor cores.
//
// Shows   mma.sp multiplies 32 of k in the time of 16: of each four elements of A the two that are kept and, in 4 bits,
//         where they were. A takes half the memory and half the shared-memory reads; B is read as before, so a block
//         that was bound by it stays so. The first kernel keeps the two of largest magnitude and packs them.
// Bound   shared memory (mio_throttle) and then the tensor pipe; the first kernel HBM.
// Launch  sparse_compress_f16: block 256, grid ceil(ceil(m / 16) ceil(k / 64) 32 / 256).
//         tensor_sparse_f16: block 256, grid (ceil(n / 256), ceil(m / 128)); 123 KiB of dynamic shared memory.
// Args    a[m][k], kept[M][K / 2], places[M / 16][K / 16][8] 32-bit, m, k with M = m up to a multiple of 16 and K = k
//         to one of 64; then kept, places, b[k][n], c[m][n], m, n, k; row-major fp16, sums in fp32.

#include "../common/tensor.cuh"

constexpr int kBlockM = 128;
constexpr int kBlockN = 256;
constexpr int kBlockK = 64;
constexpr int kWarpM = 64;
constexpr int kWarpN = 64;
constexpr int kStages = 3;
constexpr int kThreads = 256;
constexpr int kStrips = kWarpM / 16;
constexpr int kColumns = kWarpN / 8;  // mma of eight columns

// ---- packing

// Whether the i-th of four is one of the two largest; of equals the earlier.
__device__ __forceinline__ bool is_kept(const float (&four)[4], int i) {
  int larger = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) larger += j < i ? four[j] >= four[i] : four[j] > four[i];
  return larger < 2;
}

// Sixteen of k in rows r and r + 8 of a strip: what is kept of each, and one word that says where it was.
extern "C" __global__ void __launch_bounds__(kThreads)
    sparse_compress_f16(const __half* __restrict__ a, __half* __restrict__ kept, uint32_t* __restrict__ places, int m,
                        int k) {
  const int groups = (k + 63) / 64 * 4, strips = (m + 15) / 16;
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int group = i / 8 % groups, strip = i / 8 / groups;
  if (strip >= strips) return;
  uint32_t word = 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = strip * 16 + half * 8 + i % 8;
    __half out[8];
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      __half value[4];
      float size[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int col = group * 16 + q * 4 + e;
        value[e] = row < m && col < k ? a[static_cast<int64_t>(row) * k + col] : __float2half_rn(0.0f);
        size[e] = fabsf(__half2float(value[e]));
      }
      const bool first = is_kept(size, 0), second = is_kept(size, 1), third = is_kept(size, 2);
      const int low = first ? 0 : second ? 1 : 2, high = first && second ? 1 : (first || second) && third ? 2 : 3;
      out[2 * q] = low == 0 ? value[0] : low == 1 ? value[1] : value[2];
      out[2 * q + 1] = high == 1 ? value[1] : high == 2 ? value[2] : value[3];
      word |= static_cast<uint32_t>(low | high << 2) << (half * 16 + q * 4);
    }
    *reinterpret_cast<uint4*>(&kept[static_cast<int64_t>(row) * groups * 8 + group * 8]) =
        *reinterpret_cast<const uint4*>(out);
  }
  places[i] = word;
}

// ---- product

// d += a b over 32 of k. Lanes 0 and 1 of every four have the places of the first 32 of a tile, 2 and 3 those of the
// second.
template <int kWhich>
__device__ __forceinline__ void multiply_sparse(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[4],
                                                uint32_t places) {
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, %13;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(places),
        "n"(kWhich));
}

__device__ __forceinline__ uint32_t load_shared_word(unsigned at) {
  uint32_t word;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(at) : "memory");
  return word;
}

using A = Operand<Factor::A, __half, kBlockM, kBlockK / 2, true, Order::Swizzled, kThreads>;
using B = Operand<Factor::B, __half, kBlockN, kBlockK, false, Order::Swizzled, kThreads>;
constexpr int kPlacesBytes = kBlockM / 16 * (kBlockK / 16) * 32;  // a strip's are contiguous
constexpr int kStageBytes = A::kBytes + B::kBytes + kPlacesBytes;

struct Words {
  uint32_t a[kStrips][4], b[kColumns][4];
};

template <bool kVector>
__device__ __forceinline__ void product(const __half* __restrict__ kept, const uint32_t* __restrict__ places,
                                        const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) {
  extern __shared__ __align__(128) char shared[];
  const unsigned ring = shared_address(shared);
  const int row0 = blockIdx.y * kBlockM, col0 = blockIdx.x * kBlockN;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = warp / (kBlockN / kWarpN) * kWarpM, col = warp % (kBlockN / kWarpN) * kWarpN;
  const int a_offset = A::lane_offset(row);
  const int b_offset = B::Tile::at(lane, col / 8);  // a row of 32 of k each
  const int places_offset = row / 16 * (kBlockK / 16) * 32 + lane % 4 * 32 + lane / 4 * 4;
  const int tiles = (k + kBlockK - 1) / kBlockK, depth = tiles * kBlockK / 2;

  A::Source a_from(kept, row0, 0, (m + 15) / 16 * 16, depth, depth);
  B::Source b_from(b, 0, col0, k, n, n);
  // The first 64 threads copy a chunk of places each: eight of a strip, which has groups x 8 words.
  const int strip = row0 / 16 + threadIdx.x / 8;
  const uint32_t* places_from = places + static_cast<int64_t>(strip) * (depth / 8) * 8 + threadIdx.x % 8 * 4;
  const bool places_inside = strip * 16 < m;

  const auto copy = [&](int stage) {
    const unsigned to = ring + stage * kStageBytes;
    A::copy<true>(to, a_from);
    B::copy<kVector>(to + A::kBytes, b_from);
    if (threadIdx.x < 64) copy_async(to + A::kBytes + B::kBytes + threadIdx.x * 16, places_from, places_inside);
    a_from.advance(kBlockK / 2);
    b_from.advance(kBlockK);
    places_from += kBlockK / 16 * 8;
  };
  const auto load = [&](Words& words, int stage, int step) {
    const unsigned from = ring + stage * kStageBytes;
#pragma unroll
    for (int i = 0; i < kStrips; ++i) A::load(words.a[i], from, a_offset, i, step);
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      load_matrices_transposed(words.b[j],
                               from + A::kBytes + B::Tile::along(b_offset, j * 16) + step * 32 * B::Tile::kPitch);
    }
  };
  const auto load_places = [&](uint32_t(&to)[kStrips], int stage) {
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
      to[i] = load_shared_word(ring + stage * kStageBytes + A::kBytes + B::kBytes + places_offset +
                               i * (kBlockK / 16) * 32);
    }
  };

  float sums[kStrips][kColumns][4] = {};
#pragma unroll 1
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < tiles) copy(s);
    commit_copies();
  }
  int used = 0, freed = kStages - 1;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // this tile is there, and every warp is done with the one before
    Words words;
    uint32_t where[kStrips];
    load_places(where, used);
    load(words, used, 0);
    if (tile + kStages - 1 < tiles) copy(freed);
    commit_copies();
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) multiply_sparse<0>(sums[i][j], words.a[i], words.b[j], where[i]);
    }
    load(words, used, 1);
#pragma unroll
    for (int i = 0; i < kStrips; ++i) {
#pragma unroll
      for (int j = 0; j < kColumns; ++j) multiply_sparse<1>(sums[i][j], words.a[i], words.b[j], where[i]);
    }
    freed = used;
    used = used + 1 == kStages ? 0 : used + 1;
  }
  store_strips<kVector>(c, row0 + row, col0 + col, m, n, n, sums);
}

extern "C" __global__ void __launch_bounds__(kThreads)
    tensor_sparse_f16(const __half* __restrict__ kept, const uint32_t* __restrict__ places,
                      const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) {
  if (rows_are_chunks(b, n) && rows_are_chunks(c, n)) {
    product<true>(kept, places, b, c, m, n, k);
  } else {
    product<false>(kept, places, b, c, m, n, k);
  }
}
