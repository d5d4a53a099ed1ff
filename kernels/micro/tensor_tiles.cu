// Calibration: a warp's tile of products as matrix kernels have it, from registers and from shared memory.
//
// Isolates  the interval of products whose factors are all different and each shared by a row or column of the tile (what the
//           operand cache saves, and loses where warps take turns); the same with both factors of the next step loaded
//           meanwhile, by ldmatrix or as words.
// Supports  tensor.*, memory_pipe.port_wavefront_cycles.
// Launch    132 blocks (one an SM) of 4, 8 or 16 warps.
// Args      out[threads] of 8 bytes, trips, in[1024] words. A trip is 2 x rows x columns products a warp.

#include "micro.cuh"
#include "mma.cuh"

using Half = f16_16816_f32;

static __device__ __forceinline__ unsigned word(const unsigned* in) {
  unsigned v;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(v) : "l"(in));
  return v;
}

template <int kRows, int kColumns>
static __device__ __forceinline__ void store(double* out, const float (&sums)[kRows][kColumns][4]) {
  float all = 0;
#pragma unroll
  for (int i = 0; i < kRows * kColumns * 4; ++i) all += sums[i / 4 / kColumns][i / 4 % kColumns][i % 4];
  out[thread_of_grid()] = all;
}

// Factors stay in registers: those of two steps, in turn.
template <int kRows, int kColumns>
static __device__ __forceinline__ void held(double* out, int trips, const unsigned* in) {
  unsigned a[2][kRows][4], b[2][kColumns][2];
  in += threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 8 * kRows; ++i) a[i / 4 / kRows][i / 4 % kRows][i % 4] = word(in + i);
#pragma unroll
  for (int i = 0; i < 4 * kColumns; ++i) b[i / 2 / kColumns][i / 2 % kColumns][i % 2] = word(in + 64 + i);
  float sums[kRows][kColumns][4] = {};
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int step = 0; step < 2; ++step)
#pragma unroll
      for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int column = 0; column < kColumns; ++column)
          Half::multiply(sums[row][column], a[step][row], b[step][column]);
  }
  store(out, sums);
}

enum class By { kMatrix, kWord };

// Factors of the step to come are loaded before the products of this one.
template <int kRows, int kColumns, By kBy>
static __device__ __forceinline__ void loaded(double* out, int trips, const unsigned* in) {
  __shared__ __align__(128) unsigned room[8192];
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) room[i] = in[i % 1024];
  __syncthreads();
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(room)) + threadIdx.x % 32 * (kBy == By::kMatrix ? 16 : 4);
  unsigned a[2][kRows][4], b[2][kColumns][2];
  const auto load = [&](int step) {
    constexpr int kStep = (4 * kRows + 2 * kColumns) * 128;
    const auto four = [&](unsigned& p, unsigned& q, unsigned& r, unsigned& s, int place) {
      if constexpr (kBy == By::kMatrix) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(p), "=r"(q), "=r"(r), "=r"(s) : "r"(at + step * kStep + place * 512) : "memory");
      } else {
        unsigned* const to[] = {&p, &q, &r, &s};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(*to[i]) : "r"(at + step * kStep + place * 512 + i * 128) : "memory");
      }
    };
#pragma unroll
    for (int row = 0; row < kRows; ++row) four(a[step][row][0], a[step][row][1], a[step][row][2], a[step][row][3], row);
#pragma unroll
    for (int two = 0; two < kColumns / 2; ++two)
      four(b[step][2 * two][0], b[step][2 * two][1], b[step][2 * two + 1][0], b[step][2 * two + 1][1], kRows + two);
  };
  float sums[kRows][kColumns][4] = {};
  load(0);
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      load(1 - step);
#pragma unroll
      for (int row = 0; row < kRows; ++row)
#pragma unroll
        for (int column = 0; column < kColumns; ++column)
          Half::multiply(sums[row][column], a[step][row], b[step][column]);
    }
  }
  store(out, sums);
}

#define TILE(ROWS, COLUMNS)                                                                                          \
  extern "C" __global__ void __launch_bounds__(256) tile_held_##ROWS##x##COLUMNS(double* out, int trips, const unsigned* in) { \
    held<ROWS, COLUMNS>(out, trips, in);                                                                             \
  }                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) tile_matrix_##ROWS##x##COLUMNS(double* out, int trips, const unsigned* in) { \
    loaded<ROWS, COLUMNS, By::kMatrix>(out, trips, in);                                                              \
  }                                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256) tile_word_##ROWS##x##COLUMNS(double* out, int trips, const unsigned* in) { \
    loaded<ROWS, COLUMNS, By::kWord>(out, trips, in);                                                                \
  }
TILE(2, 4)
TILE(4, 4)
TILE(2, 8)
TILE(4, 8)
