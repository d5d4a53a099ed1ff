// Calibration: products of 64 bits, and what a warp and its neighbours issue beside them.
//
// Isolates  how long IMAD.WIDE and IMAD.HI keep the dispatch port, the heavy FMA half, the register ports and their own
//           warp: one of them (with the LOP3 that joins the halves of a wide one to the next factor) and 0 to 3
//           instructions of one register and an immediate on another pipe, by warps.
// Supports  pipes.fma_heavy: the two turns of a 64-bit product.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads], iterations, seed. Every iteration is 32 products a thread and what stands beside them.

#include "micro.cuh"

#define PRODUCTS(NAME, CHAINS, ACC, PRODUCT, BESIDE)                                                   \
  extern "C" __global__ void NAME(unsigned* out, int iterations, unsigned seed) {                      \
    const unsigned b = seed + threadIdx.x, c = seed - threadIdx.x;                                     \
    ACC a[CHAINS];                                                                                     \
    unsigned n[8];                                                                                     \
    float f[8];                                                                                        \
    _Pragma("unroll") for (int j = 0; j < CHAINS; ++j) a[j] = b * (j + 1);                             \
    _Pragma("unroll") for (int j = 0; j < 8; ++j) n[j] = c * (j + 1), f[j] = static_cast<float>(n[j]); \
    COUNTED_LOOP(iterations) {                                                                         \
      _Pragma("unroll") for (int k = 0; k < 32; ++k) { PRODUCT(a[k % CHAINS]) BESIDE }                 \
    }                                                                                                  \
    ACC sum = a[0];                                                                                    \
    _Pragma("unroll") for (int j = 1; j < CHAINS; ++j) sum += a[j];                                    \
    _Pragma("unroll") for (int j = 0; j < 8; ++j) sum ^= n[j] ^ static_cast<unsigned>(f[j]);           \
    out[thread_of_grid()] = static_cast<unsigned>(sum ^ sum >> 16);                                    \
  }

#define WIDE(a)                                                                                                \
  asm volatile("{ .reg .u64 t; .reg .u32 l, h; mul.wide.u32 t, %0, %1; mov.b64 {l, h}, t; xor.b32 %0, l, h; }" \
               : "+r"(a)                                                                                       \
               : "r"(b));
#define WIDE_CODED(a)                                                                                             \
  asm volatile("{ .reg .u64 t; .reg .u32 l, h; mul.wide.u32 t, %0, 12345; mov.b64 {l, h}, t; xor.b32 %0, l, h; }" \
               : "+r"(a));
#define HIGH(a) asm volatile("mad.hi.u32 %0, %0, %1, %2;" : "+r"(a) : "r"(b), "r"(c));
#define MIX(i) asm volatile("prmt.b32 %0, %0, 0, 0x2143;" : "+r"(n[i]));
#define ADD(i) asm volatile("add.rn.f32 %0, %0, 0f3F800001;" : "+f"(f[i]));

#define ONE(OP) OP(k % 8)
#define TWO(OP) OP(2 * k % 8) OP((2 * k + 1) % 8)
#define THREE(OP) OP(3 * k % 8) OP((3 * k + 1) % 8) OP((3 * k + 2) % 8)

PRODUCTS(wide_chain, 1, unsigned, WIDE, )
PRODUCTS(wide_alone, 8, unsigned, WIDE, )
PRODUCTS(wide_coded_alone, 8, unsigned, WIDE_CODED, )
PRODUCTS(wide_mix, 8, unsigned, WIDE, ONE(MIX))
PRODUCTS(wide_mix_mix, 8, unsigned, WIDE, TWO(MIX))
PRODUCTS(wide_mix_mix_mix, 8, unsigned, WIDE, THREE(MIX))
PRODUCTS(wide_coded_mix_mix, 8, unsigned, WIDE_CODED, TWO(MIX))
PRODUCTS(wide_add, 8, unsigned, WIDE, ONE(ADD))
PRODUCTS(wide_add_add, 8, unsigned, WIDE, TWO(ADD))
PRODUCTS(wide_add_add_add, 8, unsigned, WIDE, THREE(ADD))
PRODUCTS(wide_coded_add_add, 8, unsigned, WIDE_CODED, TWO(ADD))
PRODUCTS(wide_mix_add, 8, unsigned, WIDE, ONE(MIX) ONE(ADD))
PRODUCTS(high_alone, 8, unsigned, HIGH, )
PRODUCTS(high_mix_mix, 8, unsigned, HIGH, TWO(MIX))
PRODUCTS(high_add_add, 8, unsigned, HIGH, TWO(ADD))
