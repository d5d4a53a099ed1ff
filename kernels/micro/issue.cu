// Calibration: issue and the arithmetic pipes.
//
// Isolates  for one operation each: a dependent chain (latency) and 8 independent chains (issue interval of the pipe, by
//           warps an SM); mixes that share or do not share a pipe; operands from three different registers (register ports).
// Supports  pipes.{fma,fma_heavy,alu,fp16,fp64,xu,uniform}.{interval,latency}, latency.{mufu,conversion,popc,fp64},
//           issue.register_bank_count, issue.register_window_cycles.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads], iterations, seed. Every iteration is 64 operations a thread.

#include "micro.cuh"

// COUNT chains, in each of which every operation needs the last.
#define CHAINS(NAME, TYPE, COUNT, OPERATION)                                              \
  extern "C" __global__ void NAME(TYPE* out, int iterations, TYPE seed) {                 \
    [[maybe_unused]] const TYPE b = seed + static_cast<TYPE>(threadIdx.x);                \
    [[maybe_unused]] const TYPE c = seed - static_cast<TYPE>(threadIdx.x);                \
    TYPE a[COUNT];                                                                        \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) a[j] = b * static_cast<TYPE>(j + 1);  \
    COUNTED_LOOP(iterations) {                                                            \
      _Pragma("unroll") for (int k = 0; k < 64; ++k) OPERATION(a[k % COUNT], b, c);       \
    }                                                                                     \
    TYPE sum = a[0];                                                                      \
    _Pragma("unroll") for (int j = 1; j < COUNT; ++j) sum += a[j];                        \
    out[thread_of_grid()] = sum;                                                          \
  }

#define LATENCY_AND_RATE(NAME, TYPE, OPERATION) \
  CHAINS(NAME##_dependent, TYPE, 1, OPERATION)  \
  CHAINS(NAME##_independent, TYPE, 8, OPERATION)

#define FFMA(a, b, c) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(b), "f"(c))
#define FADD(a, b, c) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#define IMAD(a, b, c) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))
#define LOP3(a, b, c) asm volatile("lop3.b32 %0, %0, %1, %2, 0x78;" : "+r"(a) : "r"(b), "r"(c))
#define IADD3(a, b, c) asm volatile("add.u32 %0, %0, %1; add.u32 %0, %0, %2;" : "+r"(a) : "r"(b), "r"(c))
#define SETP_SEL(a, b, c) \
  asm volatile("{ .reg .pred p; setp.lt.u32 p, %0, %1; selp.u32 %0, %1, %2, p; }" : "+r"(a) : "r"(b), "r"(c))
#define EX2(a, b, c) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(a))
#define RSQ(a, b, c) asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(a))
#define F2I(a, b, c) asm volatile("{ .reg .f32 f; mov.b32 f, %0; cvt.rzi.s32.f32 %0, f; }" : "+r"(a))
#define I2F(a, b, c) asm volatile("{ .reg .f32 f; cvt.rn.f32.u32 f, %0; mov.b32 %0, f; }" : "+r"(a))
#define POPC(a, b, c) asm volatile("popc.b32 %0, %0;" : "+r"(a))
#define DFMA(a, b, c) asm volatile("fma.rn.f64 %0, %0, %1, %2;" : "+d"(a) : "d"(b), "d"(c))
#define HFMA2(a, b, c) asm volatile("fma.rn.f16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))

LATENCY_AND_RATE(ffma, float, FFMA)
LATENCY_AND_RATE(fadd, float, FADD)
LATENCY_AND_RATE(imad, unsigned, IMAD)
LATENCY_AND_RATE(lop3, unsigned, LOP3)
LATENCY_AND_RATE(iadd3, unsigned, IADD3)
LATENCY_AND_RATE(ex2, float, EX2)
LATENCY_AND_RATE(rsq, float, RSQ)
LATENCY_AND_RATE(f2i, unsigned, F2I)
LATENCY_AND_RATE(i2f, unsigned, I2F)
LATENCY_AND_RATE(popc, unsigned, POPC)
LATENCY_AND_RATE(dfma, double, DFMA)
LATENCY_AND_RATE(hfma2, unsigned, HFMA2)
CHAINS(setp_sel_dependent, unsigned, 1, SETP_SEL)

// Eight chains whose products take their factors from sixteen more registers: no operand is used twice in a row.
extern "C" __global__ void ffma_three_registers(float* out, int iterations, float seed) {
  float a[8], x[8], y[8];
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    a[j] = seed + threadIdx.x * (j + 1);
    x[j] = seed * threadIdx.x * (j + 11);
    y[j] = seed - threadIdx.x * (j + 31);
  }
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < 64; ++k)
      asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(a[k % 8]) : "f"(x[(k + k / 8) % 8]), "f"(y[(3 * k) % 8]));
  }
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) sum += a[j] + x[j] + y[j];
  out[thread_of_grid()] = sum;
}

// Alternating: 32 of FFMA and 32 of the other, four chains of each.
#define MIX(NAME, OTHER)                                                               \
  extern "C" __global__ void NAME(float* out, int iterations, float seed) {            \
    const float b = seed + threadIdx.x, c = seed - threadIdx.x;                        \
    const unsigned d = threadIdx.x * 5 + 1, e = threadIdx.x * 7 + 3;                   \
    float a[4] = {b, b * 2, b * 3, b * 4};                                             \
    unsigned n[4] = {d, d * 3, d * 5, d * 7};                                          \
    COUNTED_LOOP(iterations) {                                                         \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) {                                 \
        FFMA(a[k % 4], b, c);                                                          \
        OTHER(n[k % 4], d, e);                                                         \
      }                                                                                \
    }                                                                                  \
    out[thread_of_grid()] = a[0] + a[1] + a[2] + a[3] + (n[0] ^ n[1] ^ n[2] ^ n[3]);   \
  }

MIX(mix_ffma_lop3, LOP3)
MIX(mix_ffma_imad, IMAD)
MIX(mix_ffma_hfma2, HFMA2)

// The same values in every thread of the grid: 32 dependent additions and masks on the uniform datapath, each pair read by one
// ordinary operation (without such readers the compiler keeps uniform values in ordinary registers).
extern "C" __global__ void uniform_dependent(unsigned* out, int iterations, unsigned seed, unsigned mask) {
  unsigned a = seed, sum = threadIdx.x;
  COUNTED_LOOP(iterations) {
#pragma unroll
    for (int k = 0; k < 32; ++k) {
      a = (a + seed) & mask;
      LOP3(sum, a, threadIdx.x);
    }
  }
  out[thread_of_grid()] = sum;
}
