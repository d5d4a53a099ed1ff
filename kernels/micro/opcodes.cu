// Calibration: operations beyond those of issue.cu, one kernel each.
//
// Isolates  the issue interval (8 independent chains, 4 warps a sub-partition) and the latency (one chain) of 64-bit
// products,
//           products with a factor from a uniform register or the code, minima, shifts, permutations, carries, packed
//           halves, dot products, conversions of 64 and 16 bits, fp64 additions; and of what issues beside them.
// Supports  which pipe an opcode takes and how many of its turns; latency.{mufu,conversion,popc,fp64}.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads], iterations, seed. Every iteration is 64 operations a thread.

#include "micro.cuh"

#define CHAINS(NAME, TYPE, COUNT, OPERATION)                                                                   \
  extern "C" __global__ void NAME(TYPE* out, int iterations, TYPE seed) {                                      \
    [[maybe_unused]] const TYPE b = seed + static_cast<TYPE>(threadIdx.x);                                     \
    [[maybe_unused]] const TYPE c = seed - static_cast<TYPE>(threadIdx.x);                                     \
    TYPE a[COUNT];                                                                                             \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) a[j] = b * static_cast<TYPE>(j + 1);                     \
    COUNTED_LOOP(iterations) { _Pragma("unroll") for (int k = 0; k < 64; ++k) OPERATION(a[k % COUNT], b, c); } \
    TYPE sum = a[0];                                                                                           \
    _Pragma("unroll") for (int j = 1; j < COUNT; ++j) sum += a[j];                                             \
    out[thread_of_grid()] = sum;                                                                               \
  }

#define BOTH(NAME, TYPE, OPERATION)            \
  CHAINS(NAME##_dependent, TYPE, 1, OPERATION) \
  CHAINS(NAME##_independent, TYPE, 8, OPERATION)

using u64 = unsigned long long;

#define IMAD_HI(a, b, c) asm volatile("mul.hi.u32 %0, %0, %1;" : "+r"(a) : "r"(b))
#define ADD64(a, b, c) asm volatile("add.u64 %0, %0, %1;" : "+l"(a) : "l"(b))
#define MIN_S32(a, b, c) asm volatile("min.s32 %0, %0, %1;" : "+r"(a) : "r"(b))
#define SHL(a, b, c) asm volatile("shl.b32 %0, %0, %1;" : "+r"(a) : "r"(b))
#define SHF(a, b, c) asm volatile("shf.l.wrap.b32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))
#define PRMT(a, b, c) asm volatile("prmt.b32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))
#define CLZ(a, b, c) asm volatile("clz.b32 %0, %0;" : "+r"(a))
#define BREV(a, b, c) asm volatile("brev.b32 %0, %0;" : "+r"(a))
#define DP4A(a, b, c) asm volatile("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(a) : "r"(b), "r"(c))
#define FMUL(a, b, c) asm volatile("mul.rn.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#define FMNMX(a, b, c) asm volatile("min.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#define FFMA_IMMEDIATE(a, b, c) asm volatile("fma.rn.f32 %0, %0, %1, 0f3FC00001;" : "+f"(a) : "f"(b))
#define FFMA_IMMEDIATE_FACTOR(a, b, c) asm volatile("fma.rn.f32 %0, %0, 0f3F800001, %1;" : "+f"(a) : "f"(b))
#define FFMA_UNIFORM(a, b, c) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(seed), "f"(c))
#define IMAD_UNIFORM(a, b, c) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(a) : "r"(seed), "r"(c))
#define FSETP_SEL(a, b, c) \
  asm volatile("{ .reg .pred p; setp.lt.f32 p, %0, %1; selp.f32 %0, %1, %2, p; }" : "+f"(a) : "f"(b), "f"(c))
#define LG2(a, b, c) asm volatile("lg2.approx.ftz.f32 %0, %0;" : "+f"(a))
#define SIN(a, b, c) asm volatile("sin.approx.ftz.f32 %0, %0;" : "+f"(a))
#define TANH(a, b, c) asm volatile("tanh.approx.f32 %0, %0;" : "+f"(a))
#define PACK_HALF(a, b, c) asm volatile("{ .reg .f32 f; mov.b32 f, %0; cvt.rn.f16x2.f32 %0, f, f; }" : "+r"(a))
#define HADD2(a, b, c) asm volatile("add.rn.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b))
#define HMUL2(a, b, c) asm volatile("mul.rn.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b))
#define HFMA2_BF16(a, b, c) asm volatile("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))
#define HMNMX2(a, b, c) asm volatile("min.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b))
#define DADD(a, b, c) asm volatile("add.rn.f64 %0, %0, %1;" : "+d"(a) : "d"(b))
#define DMUL(a, b, c) asm volatile("mul.rn.f64 %0, %0, %1;" : "+d"(a) : "d"(b))
#define D2F2D(a, b, c) asm volatile("{ .reg .f32 f; cvt.rn.f32.f64 f, %0; cvt.f64.f32 %0, f; }" : "+d"(a))
#define I2D(a, b, c) asm volatile("{ .reg .f64 d; .reg .u32 l; cvt.rn.f64.u32 d, %0; mov.b64 {l, %0}, d; }" : "+r"(a))
#define H2F2H(a, b, c) \
  asm volatile("{ .reg .b16 l, h; .reg .f32 f; mov.b32 {l, h}, %0; cvt.f32.f16 f, h; mov.b32 %0, f; }" : "+r"(a))

BOTH(imad_hi, unsigned, IMAD_HI)
BOTH(imad_uniform, unsigned, IMAD_UNIFORM)
BOTH(add64, u64, ADD64)
BOTH(min_s32, int, MIN_S32)
BOTH(shl, unsigned, SHL)
BOTH(shf, unsigned, SHF)
BOTH(prmt, unsigned, PRMT)
BOTH(clz, unsigned, CLZ)
BOTH(brev, unsigned, BREV)
BOTH(dp4a, unsigned, DP4A)
BOTH(fmul, float, FMUL)
BOTH(fmnmx, float, FMNMX)
BOTH(ffma_immediate, float, FFMA_IMMEDIATE)
BOTH(ffma_immediate_factor, float, FFMA_IMMEDIATE_FACTOR)
BOTH(ffma_uniform, float, FFMA_UNIFORM)
BOTH(fsetp_sel, float, FSETP_SEL)
BOTH(lg2, float, LG2)
BOTH(sin, float, SIN)
BOTH(tanh, float, TANH)
BOTH(pack_half, unsigned, PACK_HALF)
BOTH(hadd2, unsigned, HADD2)
BOTH(hmul2, unsigned, HMUL2)
BOTH(hfma2_bf16, unsigned, HFMA2_BF16)
BOTH(hmnmx2, unsigned, HMNMX2)
BOTH(dadd, double, DADD)
BOTH(dmul, double, DMUL)
BOTH(d2f2d, double, D2F2D)
BOTH(i2d, unsigned, I2D)
BOTH(h2f2h, unsigned, H2F2H)

// A 64-bit product, whose halves one LOP3 joins to the next factor (as in address arithmetic); OTHER beside
// each pair.
#define WIDE(NAME, OTHER_TYPE, OTHER)                                                                                \
  extern "C" __global__ void NAME(unsigned* out, int iterations, unsigned seed, OTHER_TYPE start) {                  \
    const unsigned b = seed + threadIdx.x;                                                                           \
    [[maybe_unused]] const OTHER_TYPE d = start + static_cast<OTHER_TYPE>(threadIdx.x), e = start - d;               \
    unsigned a[8];                                                                                                   \
    OTHER_TYPE n[4] = {d, d * OTHER_TYPE(3), d * OTHER_TYPE(5), d * OTHER_TYPE(7)};                                  \
    _Pragma("unroll") for (int j = 0; j < 8; ++j) a[j] = b * (j + 1);                                                \
    COUNTED_LOOP(iterations) {                                                                                       \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) {                                                               \
        asm volatile("{ .reg .u64 t; .reg .u32 l, h; mul.wide.u32 t, %0, %1; mov.b64 {l, h}, t; xor.b32 %0, l, h; }" \
                     : "+r"(a[k % 8])                                                                                \
                     : "r"(b));                                                                                      \
        OTHER(n[k % 4], d, e);                                                                                       \
      }                                                                                                              \
    }                                                                                                                \
    unsigned sum = a[0];                                                                                             \
    _Pragma("unroll") for (int j = 1; j < 8; ++j) sum ^= a[j];                                                       \
    out[thread_of_grid()] = sum ^ static_cast<unsigned>(n[0] + n[1] + n[2] + n[3]);                                  \
  }

#define NOTHING(a, b, c)
#define IMAD_BESIDE(a, b, c) asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c))
#define LOP3_BESIDE(a, b, c) asm volatile("lop3.b32 %0, %0, %1, %2, 0x78;" : "+r"(a) : "r"(b), "r"(c))
#define FFMA_BESIDE(a, b, c) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(b), "f"(c))

WIDE(imad_wide, unsigned, NOTHING)
WIDE(pair_imad_wide_imad, unsigned, IMAD_BESIDE)
WIDE(pair_imad_wide_lop3, unsigned, LOP3_BESIDE)
WIDE(pair_imad_wide_ffma, float, FFMA_BESIDE)

// Alternating: 32 of one and 32 of the other, four chains of each, every operand a register of its own.
#define PAIR(NAME, TYPE, ONE, OTHER_TYPE, OTHER)                                                                      \
  extern "C" __global__ void NAME(unsigned* out, int iterations, TYPE seed, OTHER_TYPE start) {                       \
    [[maybe_unused]] const TYPE b = seed + static_cast<TYPE>(threadIdx.x), c = seed - static_cast<TYPE>(threadIdx.x); \
    [[maybe_unused]] const OTHER_TYPE d = start + static_cast<OTHER_TYPE>(threadIdx.x),                               \
                                      e = start - static_cast<OTHER_TYPE>(threadIdx.x);                               \
    TYPE a[4] = {b, b * TYPE(2), b * TYPE(3), b * TYPE(4)};                                                           \
    OTHER_TYPE n[4] = {d, d * OTHER_TYPE(3), d * OTHER_TYPE(5), d * OTHER_TYPE(7)};                                   \
    COUNTED_LOOP(iterations) {                                                                                        \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) {                                                                \
        ONE(a[k % 4], b, c);                                                                                          \
        OTHER(n[k % 4], d, e);                                                                                        \
      }                                                                                                               \
    }                                                                                                                 \
    out[thread_of_grid()] =                                                                                           \
        static_cast<unsigned>(a[0] + a[1] + a[2] + a[3]) ^ static_cast<unsigned>(n[0] + n[1] + n[2] + n[3]);          \
  }

#define FADD_ONE(a, b, c) asm volatile("add.rn.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#define ADD32(a, b, c) asm volatile("add.u32 %0, %0, %1;" : "+r"(a) : "r"(b))

PAIR(pair_imad_lop3, unsigned, IMAD_BESIDE, unsigned, LOP3_BESIDE)
PAIR(pair_fadd_add, float, FADD_ONE, unsigned, ADD32)
PAIR(pair_fmul_add, float, FMUL, unsigned, ADD32)
PAIR(pair_ffma_lg2, float, FFMA_BESIDE, float, LG2)
PAIR(pair_lop3_lg2, unsigned, LOP3_BESIDE, float, LG2)
PAIR(pair_dadd_ffma, double, DADD, float, FFMA_BESIDE)
PAIR(pair_dadd_lop3, double, DADD, unsigned, LOP3_BESIDE)
PAIR(pair_hadd2_lop3, unsigned, HADD2, unsigned, LOP3_BESIDE)
PAIR(pair_ffma_uniform_add, float, FFMA_UNIFORM, unsigned, ADD32)
