// Calibration: when the operands of an instruction are read from the register file.
//
// Isolates  the read ports of the two banks: straight FFMA and FADD whose registers are drawn at random, so that two or
//           three of one bank meet now and then, and outer products, whose factors the operand caches hold. No result
//           is used within 8 instructions.
// Supports  issue.register_bank_count, issue.register_window_cycles.
// Launch    132 blocks (one an SM) of 1 or 2 warps a sub-partition; the second hides the first one's branch.
// Args      out[threads], iterations, seed. Every iteration is 80 instructions, less those whose result nobody reads;
//           of outer products rows x columns.

#include "micro.cuh"

constexpr int kRegisters = 40;

// The k-th number of a fixed sequence: what the compiler sees are constants.
__device__ constexpr unsigned drawn(unsigned k) {
  unsigned x = k * 2654435769u + 12345u;
  x ^= x >> 15;
  x *= 2246822519u;
  x ^= x >> 13;
  x *= 3266489917u;
  return x ^ x >> 16;
}

// Results take turns through all registers; sources lie at least 8 behind the one that is written next.
__device__ constexpr int result(int k) { return k % kRegisters; }
__device__ constexpr int source(unsigned seed, int k, int place) {
  return (k + static_cast<int>(drawn(seed * 4096u + static_cast<unsigned>(k) * 4u + static_cast<unsigned>(place)) %
                               (kRegisters - 8))) %
         kRegisters;
}

#define RANDOM(NAME, SEED, ...)                                                                          \
  extern "C" __global__ void NAME(float* out, int iterations, float seed) {                              \
    float a[kRegisters];                                                                                 \
    _Pragma("unroll") for (int j = 0; j < kRegisters; ++j) a[j] = seed * (threadIdx.x + j);              \
    COUNTED_LOOP(iterations) {                                                                           \
      _Pragma("unroll") for (int k = 0; k < 2 * kRegisters; ++k) {                                       \
        const int d = result(k), x = source(SEED, k, 0), y = source(SEED, k, 1), z = source(SEED, k, 2); \
        __VA_ARGS__                                                                                      \
      }                                                                                                  \
    }                                                                                                    \
    float sum = 0;                                                                                       \
    _Pragma("unroll") for (int j = 0; j < kRegisters; ++j) sum += a[j];                                  \
    out[thread_of_grid()] = sum;                                                                         \
  }

#define TWO                                                                               \
  asm volatile("fma.rn.f32 %0, %1, 0f3F000000, %2;" : "=f"(a[d]) : "f"(a[x]), "f"(a[z])); \
  (void)y;
#define THREE asm volatile("fma.rn.f32 %0, %1, %2, %3;" : "=f"(a[d]) : "f"(a[x]), "f"(a[y]), "f"(a[z]));
#define SUM                                                                   \
  asm volatile("add.rn.f32 %0, %1, %2;" : "=f"(a[d]) : "f"(a[x]), "f"(a[z])); \
  (void)y;

RANDOM(operands_two_1, 1, TWO)
RANDOM(operands_two_2, 2, TWO)
RANDOM(operands_two_3, 3, TWO)
RANDOM(operands_two_4, 4, TWO)
RANDOM(operands_three_1, 11, THREE)
RANDOM(operands_three_2, 12, THREE)
RANDOM(operands_three_3, 13, THREE)
RANDOM(operands_three_4, 14, THREE)
RANDOM(operands_sum_1, 21, SUM)
RANDOM(operands_sum_2, 22, SUM)

// Each element of an outer product once an iteration, row by row or STEP apart.
#define OUTER(NAME, ROWS, COLUMNS, STEP)                                                                    \
  extern "C" __global__ void NAME(float* out, int iterations, float seed) {                                 \
    float a[ROWS * COLUMNS], x[ROWS], y[COLUMNS];                                                           \
    _Pragma("unroll") for (int j = 0; j < ROWS * COLUMNS; ++j) a[j] = seed * (threadIdx.x + j);             \
    _Pragma("unroll") for (int j = 0; j < ROWS; ++j) x[j] = seed * (threadIdx.x + 100 + j);                 \
    _Pragma("unroll") for (int j = 0; j < COLUMNS; ++j) y[j] = seed * (threadIdx.x + 200 + j);              \
    COUNTED_LOOP(iterations) {                                                                              \
      _Pragma("unroll") for (int k = 0; k < ROWS * COLUMNS; ++k) {                                          \
        const int i = k * STEP % (ROWS * COLUMNS);                                                          \
        asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(a[i]) : "f"(x[i / COLUMNS]), "f"(y[i % COLUMNS])); \
      }                                                                                                     \
    }                                                                                                       \
    float sum = 0;                                                                                          \
    _Pragma("unroll") for (int j = 0; j < ROWS * COLUMNS; ++j) sum += a[j];                                 \
    out[thread_of_grid()] = sum;                                                                            \
  }

OUTER(operands_outer_8_8, 8, 8, 1)
OUTER(operands_outer_8_8_mixed, 8, 8, 27)
OUTER(operands_outer_8_4, 8, 4, 1)
OUTER(operands_outer_8_4_mixed, 8, 4, 11)
