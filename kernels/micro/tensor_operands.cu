// Calibration: what a product of mma.sync reads and who reads its sums.
//
// Isolates  chains over a factor in place of the sums, and over another pipe (an addition, a conversion, a special function, a
//           store to shared memory and its load): what the sums take to each; overwriting a factor right after its last
//           reader, by arithmetic and by a load; factors of their own for every product against shared ones (operand cache,
//           register ports), and a warp's tile of 2 x 4 and 4 x 8 products as matrix kernels have them.
// Supports  tensor.*, issue.register_window_cycles.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads] of 8 bytes, trips. A trip is 32 products a warp.

#include "micro.cuh"
#include "mma.cuh"

using Half = f16_16816_f32;
using Narrow = f16_16816_f16;

#define FACTORS(COUNT_A, COUNT_B)                                                                                 \
  unsigned a[COUNT_A][4], b[COUNT_B][2];                                                                           \
  _Pragma("unroll") for (int j = 0; j < COUNT_A; ++j)                                                              \
    _Pragma("unroll") for (int i = 0; i < 4; ++i) a[j][i] = trips & (1024 << (4 * j + i));                          \
  _Pragma("unroll") for (int j = 0; j < COUNT_B; ++j)                                                              \
    _Pragma("unroll") for (int i = 0; i < 2; ++i) b[j][i] = trips & (512 << (2 * j + i));

template <class Form, int kCount>
static __device__ __forceinline__ void store(double* out, typename Form::Sum (&sums)[kCount][Form::kD]) {
  typename Form::Sum all = 0;
  _Pragma("unroll") for (int c = 0; c < kCount; ++c)
    _Pragma("unroll") for (int i = 0; i < Form::kD; ++i) all += sums[c][i];
  out[thread_of_grid()] = all;
}

// ---- A chain over another operand, or over another pipe and back.

// Sums of halves take as many registers as a factor B.
#define INTO_B(TO, FROM)                                                                                          \
  asm volatile(MMA("m16n8k16.row.col.f16.f16.f16.f16") "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"            \
               : "=r"(TO[0]), "=r"(TO[1])                                                                         \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(FROM[0]), "r"(FROM[1]), "r"(0), "r"(0))
extern "C" __global__ void chain_into_b(double* out, int trips) {
  unsigned a[4], sums[2][2] = {{0, 0}, {0, 0}};
#pragma unroll
  for (int i = 0; i < 4; ++i) a[i] = trips & (1024 << i);
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      INTO_B(sums[1], sums[0]);
      INTO_B(sums[0], sums[1]);
    }
  }
  store<Narrow>(out, sums);
}

// Single sums as a factor A: four registers either way.
extern "C" __global__ void chain_into_a(double* out, int trips) {
  const unsigned b[2] = {static_cast<unsigned>(trips & 512), static_cast<unsigned>(trips & 1024)};
  unsigned one[4] = {0, 0, 0, 0}, two[4];
#define SUMS_INTO_A(TO, FROM)                                                                                      \
  asm volatile(MMA("m16n8k16.row.col.f32.f16.f16.f32") "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"  \
               : "=r"(TO[0]), "=r"(TO[1]), "=r"(TO[2]), "=r"(TO[3])                                                \
               : "r"(FROM[0]), "r"(FROM[1]), "r"(FROM[2]), "r"(FROM[3]), "r"(b[0]), "r"(b[1]), "r"(0))
  COUNTED_LOOP(trips) {
    _Pragma("unroll") for (int k = 0; k < 16; ++k) { SUMS_INTO_A(two, one); SUMS_INTO_A(one, two); }
  }
  out[thread_of_grid()] = one[0] + one[1] + one[2] + one[3];
}

#define PIPE_CHAIN(NAME, STEP)                                                                      \
  extern "C" __global__ void NAME(double* out, int trips) {                                         \
    __shared__ float words[1024];                                                                    \
    [[maybe_unused]] const unsigned at =                                                             \
        static_cast<unsigned>(__cvta_generic_to_shared(words)) + 4 * threadIdx.x;                    \
    FACTORS(1, 1)                                                                                    \
    float sums[1][4] = {{0, 0, 0, 0}};                                                                \
    [[maybe_unused]] const float one = trips;                                                        \
    COUNTED_LOOP(trips) {                                                                            \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) { Half::multiply(sums[0], a[0], b[0]); STEP; }   \
    }                                                                                                \
    store<Half>(out, sums);                                                                          \
  }
PIPE_CHAIN(chain_add, asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(sums[0][0]) : "f"(one)))
PIPE_CHAIN(chain_add_last, asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(sums[0][3]) : "f"(one)))
PIPE_CHAIN(chain_max, asm volatile("max.f32 %0, %0, %1;" : "+f"(sums[0][0]) : "f"(one)))
PIPE_CHAIN(chain_ex2, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(sums[0][0])))
PIPE_CHAIN(chain_shuffle, asm volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;" : "+f"(sums[0][0])))
PIPE_CHAIN(chain_pack, asm volatile("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %1, %0; mov.b32 %0, p; }" : "+f"(sums[0][0]) : "f"(sums[0][1])))
PIPE_CHAIN(chain_store, asm volatile("st.volatile.shared.f32 [%1], %0; ld.volatile.shared.f32 %0, [%1];" : "+f"(sums[0][0]) : "r"(at) : "memory"))

// ---- Factors that are overwritten as soon as they have been read; the sums do not wait for each other.

#define OVERWRITE(NAME, STEP)                                                                        \
  extern "C" __global__ void NAME(double* out, int trips) {                                         \
    __shared__ unsigned words[1024];                                                                 \
    words[threadIdx.x] = trips & 65536;                                                              \
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(words)) + 4 * threadIdx.x;    \
    FACTORS(1, 1)                                                                                    \
    float sums[8][4] = {};                                                                            \
    COUNTED_LOOP(trips) {                                                                            \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) { Half::multiply(sums[k % 8], a[0], b[0]); STEP; } \
    }                                                                                                \
    store<Half>(out, sums);                                                                          \
    if (trips < 0) out[0] = at;                                                                       \
  }
OVERWRITE(overwrite_a, asm volatile("xor.b32 %0, %0, %1;" : "+r"(a[0][0]) : "r"(trips)))
OVERWRITE(overwrite_a_last, asm volatile("xor.b32 %0, %0, %1;" : "+r"(a[0][3]) : "r"(trips)))
OVERWRITE(overwrite_b, asm volatile("xor.b32 %0, %0, %1;" : "+r"(b[0][0]) : "r"(trips)))
OVERWRITE(reload_a, asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a[0][0]) : "r"(at) : "memory"))
OVERWRITE(reload_b, asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(b[0][0]) : "r"(at) : "memory"))

// ---- Factors of their own, and tiles.

template <int kA, int kB, int kSums, class Pick>
static __device__ __forceinline__ void products(double* out, int trips, Pick pick) {
  FACTORS(kA, kB)
  float sums[kSums][4] = {};
  COUNTED_LOOP(trips) {
    _Pragma("unroll") for (int k = 0; k < 32; ++k) {
      const int c = k % kSums;
      Half::multiply(sums[c], a[pick(c) / 16], b[pick(c) % 16]);
    }
  }
  store<Half>(out, sums);
}

#define PRODUCTS(NAME, A, B, SUMS, PICK) \
  extern "C" __global__ void NAME(double* out, int trips) { products<A, B, SUMS>(out, trips, [](int c) { return PICK; }); }
PRODUCTS(own_a, 4, 1, 4, c * 16)
PRODUCTS(own_b, 1, 4, 4, c)
PRODUCTS(own_ab, 4, 4, 4, c * 16 + c)
PRODUCTS(tile_2x4, 2, 4, 8, c / 4 * 16 + c % 4)
PRODUCTS(tile_2x4_columns, 2, 4, 8, c % 2 * 16 + c / 2)
PRODUCTS(tile_4x4, 4, 4, 16, c / 4 * 16 + c % 4)
PRODUCTS(tile_4x8, 4, 8, 32, c / 8 * 16 + c % 8)
