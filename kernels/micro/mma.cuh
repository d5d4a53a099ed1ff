// The forms of mma.sync, one type each: what its fragments are made of, and multiply(), which adds a product to `sum`.
//
// fp8 is of sm_90 (and made of conversions and products of halves there), as are the deeper shapes of fp64; on sm_80 these
// do nothing. Sparse forms take the metadata 0x44444444, the first two of any four.
#pragma once


// A form: NAME, its types, the registers of A, B and the sums, and the assembly.
#define MMA_FORM(NAME, FACTOR, SUM, A, B, D, ...)                                                            \
  struct NAME {                                                                                               \
    using Factor = FACTOR;                                                                                    \
    using Sum = SUM;                                                                                          \
    static constexpr int kA = A, kB = B, kD = D;                                                              \
    static __device__ __forceinline__ void multiply(Sum (&sum)[D], const Factor (&a)[A], const Factor (&b)[B]) { \
      __VA_ARGS__;                                                                                            \
    }                                                                                                         \
  };

#define MMA(OPERATION) "mma.sync.aligned." OPERATION " "
#define MMA_SP(OPERATION) "mma.sp::ordered_metadata.sync.aligned." OPERATION " "

// By registers of A, B and the sums. R is the letter of the sums' registers in the assembly, F that of the factors'.
#define MMA_424(NAME, FACTOR, F, SUM, R, OPERATION)                                                               \
  MMA_FORM(NAME, FACTOR, SUM, 4, 2, 4,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
                        : "+" R(sum[0]), "+" R(sum[1]), "+" R(sum[2]), "+" R(sum[3])                               \
                        : F(a[0]), F(a[1]), F(a[2]), F(a[3]), F(b[0]), F(b[1])))
#define MMA_422(NAME, FACTOR, F, SUM, R, OPERATION)                                                                \
  MMA_FORM(NAME, FACTOR, SUM, 4, 2, 2,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"                           \
                        : "+" R(sum[0]), "+" R(sum[1])                                                             \
                        : F(a[0]), F(a[1]), F(a[2]), F(a[3]), F(b[0]), F(b[1])))
#define MMA_214(NAME, FACTOR, F, SUM, R, OPERATION)                                                                \
  MMA_FORM(NAME, FACTOR, SUM, 2, 1, 4,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                       \
                        : "+" R(sum[0]), "+" R(sum[1]), "+" R(sum[2]), "+" R(sum[3])                               \
                        : F(a[0]), F(a[1]), F(b[0])))
#define MMA_212(NAME, FACTOR, F, SUM, R, OPERATION)                                                                \
  MMA_FORM(NAME, FACTOR, SUM, 2, 1, 2,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1}, {%2, %3}, {%4}, {%0, %1};"                                       \
                        : "+" R(sum[0]), "+" R(sum[1]) : F(a[0]), F(a[1]), F(b[0])))
#define MMA_112(NAME, FACTOR, F, SUM, R, OPERATION)                                                                \
  MMA_FORM(NAME, FACTOR, SUM, 1, 1, 2,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1}, {%2}, {%3}, {%0, %1};"                                           \
                        : "+" R(sum[0]), "+" R(sum[1]) : F(a[0]), F(b[0])))
#define MMA_844(NAME, FACTOR, F, SUM, R, OPERATION)                                                                \
  MMA_FORM(NAME, FACTOR, SUM, 8, 4, 4,                                                                             \
           asm volatile(MMA(OPERATION) "{%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, "  \
                                       "{%0, %1, %2, %3};"                                                         \
                        : "+" R(sum[0]), "+" R(sum[1]), "+" R(sum[2]), "+" R(sum[3])                               \
                        : F(a[0]), F(a[1]), F(a[2]), F(a[3]), F(a[4]), F(a[5]), F(a[6]), F(a[7]), F(b[0]), F(b[1]), \
                          F(b[2]), F(b[3])))
#define MMA_SP_444(NAME, SUM, R, OPERATION)                                                                        \
  MMA_FORM(NAME, unsigned, SUM, 4, 4, 4,                                                                           \
           asm volatile(MMA_SP(OPERATION) "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, "                \
                                          "{%0, %1, %2, %3}, %12, 0x0;"                                            \
                        : "+" R(sum[0]), "+" R(sum[1]), "+" R(sum[2]), "+" R(sum[3])                               \
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),   \
                          "r"(0x44444444)))
#define MMA_SP_442(NAME, SUM, R, OPERATION)                                                                        \
  MMA_FORM(NAME, unsigned, SUM, 4, 4, 2,                                                                           \
           asm volatile(MMA_SP(OPERATION) "{%0, %1}, {%2, %3, %4, %5}, {%6, %7, %8, %9}, {%0, %1}, %10, 0x0;"       \
                        : "+" R(sum[0]), "+" R(sum[1])                                                             \
                        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]),   \
                          "r"(0x44444444)))
#define MMA_SP_224(NAME, SUM, R, OPERATION)                                                                        \
  MMA_FORM(NAME, unsigned, SUM, 2, 2, 4,                                                                           \
           asm volatile(MMA_SP(OPERATION) "{%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3}, %8, 0x0;"        \
                        : "+" R(sum[0]), "+" R(sum[1]), "+" R(sum[2]), "+" R(sum[3])                               \
                        : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1]), "r"(0x44444444)))

MMA_424(f16_16816_f32, unsigned, "r", float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
MMA_422(f16_16816_f16, unsigned, "r", unsigned, "r", "m16n8k16.row.col.f16.f16.f16.f16")
MMA_214(f16_1688_f32, unsigned, "r", float, "f", "m16n8k8.row.col.f32.f16.f16.f32")
MMA_212(f16_1688_f16, unsigned, "r", unsigned, "r", "m16n8k8.row.col.f16.f16.f16.f16")
MMA_424(bf16_16816, unsigned, "r", float, "f", "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA_214(bf16_1688, unsigned, "r", float, "f", "m16n8k8.row.col.f32.bf16.bf16.f32")
MMA_214(tf32_1684, unsigned, "r", float, "f", "m16n8k4.row.col.f32.tf32.tf32.f32")
MMA_424(tf32_1688, unsigned, "r", float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_112(s8_8816, unsigned, "r", unsigned, "r", "m8n8k16.row.col.s32.s8.s8.s32")
MMA_214(s8_16816, unsigned, "r", unsigned, "r", "m16n8k16.row.col.s32.s8.s8.s32")
MMA_424(s8_16832, unsigned, "r", unsigned, "r", "m16n8k32.row.col.s32.s8.s8.s32")
MMA_424(s4_16864, unsigned, "r", unsigned, "r", "m16n8k64.row.col.s32.s4.s4.s32")
MMA_424(b1_168256, unsigned, "r", unsigned, "r", "m16n8k256.row.col.s32.b1.b1.s32.and.popc")
MMA_112(f64_884, double, "d", double, "d", "m8n8k4.row.col.f64.f64.f64.f64")
MMA_SP_224(sp_f16_16816, float, "f", "m16n8k16.row.col.f32.f16.f16.f32")
MMA_SP_444(sp_f16_16832, float, "f", "m16n8k32.row.col.f32.f16.f16.f32")
MMA_SP_442(sp_f16_16832_f16, unsigned, "r", "m16n8k32.row.col.f16.f16.f16.f16")
MMA_SP_444(sp_bf16_16832, float, "f", "m16n8k32.row.col.f32.bf16.bf16.f32")
MMA_SP_224(sp_tf32_1688, float, "f", "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA_SP_444(sp_tf32_16816, float, "f", "m16n8k16.row.col.f32.tf32.tf32.f32")
MMA_SP_224(sp_s8_16832, unsigned, "r", "m16n8k32.row.col.s32.s8.s8.s32")
MMA_SP_444(sp_s8_16864, unsigned, "r", "m16n8k64.row.col.s32.s8.s8.s32")
#if __CUDA_ARCH__ >= 900
MMA_214(f64_1684, double, "d", double, "d", "m16n8k4.row.col.f64.f64.f64.f64")
MMA_424(f64_1688, double, "d", double, "d", "m16n8k8.row.col.f64.f64.f64.f64")
MMA_844(f64_16816, double, "d", double, "d", "m16n8k16.row.col.f64.f64.f64.f64")
MMA_424(e4m3_16832, unsigned, "r", float, "f", "m16n8k32.row.col.f32.e4m3.e4m3.f32")
#else
MMA_FORM(f64_1684, double, double, 2, 1, 4, )
MMA_FORM(f64_1688, double, double, 4, 2, 4, )
MMA_FORM(f64_16816, double, double, 8, 4, 4, )
MMA_FORM(e4m3_16832, unsigned, float, 4, 2, 4, )
#endif
