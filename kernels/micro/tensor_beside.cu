// Calibration: what the tensor pipe leaves to the other pipes, and two forms of mma.sync in turn.
//
// Isolates  a product of halves and so many operations of another pipe after each: how many fit beside it, and which of them
//           hold it up; products of two forms in turn.
// Supports  tensor.*, pipes.*.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads] of 8 bytes, trips, in (of zeros). A trip is 32 products a warp.

#include "micro.cuh"
#include "mma.cuh"

using Half = f16_16816_f32;

struct Room {
  float x[8], y;
  unsigned n[8], m, at, copy_to;
  const char* from;
};

template <class Other>
static __device__ __forceinline__ void beside(double* out, int trips, const char* in, Other other) {
  __shared__ __align__(128) char words[33 * 1024];
  unsigned a[4], b[2];
  float sums[4][4] = {};
  _Pragma("unroll") for (int i = 0; i < 4; ++i) a[i] = trips & (1024 << i);
  _Pragma("unroll") for (int i = 0; i < 2; ++i) b[i] = trips & (65536 << i);
  Room r;
  _Pragma("unroll") for (int i = 0; i < 8; ++i) {
    r.x[i] = trips * i;
    r.n[i] = trips & (1 << (16 + i));
  }
  r.y = threadIdx.x;
  r.m = threadIdx.x & 1;
  const unsigned start = static_cast<unsigned>(__cvta_generic_to_shared(words));
  r.at = start + 16 * (threadIdx.x & 31);
  r.copy_to = start + 1024 + 16 * threadIdx.x;
  r.from = in + 16 * thread_of_grid();
  COUNTED_LOOP(trips) {
    _Pragma("unroll") for (int k = 0; k < 32; ++k) {
      Half::multiply(sums[k % 4], a, b);
      other(r, k);
    }
  }
  float all = 0;
  _Pragma("unroll") for (int c = 0; c < 4; ++c)
    _Pragma("unroll") for (int i = 0; i < 4; ++i) all += sums[c][i];
  _Pragma("unroll") for (int i = 0; i < 8; ++i) all += r.x[i] + r.n[i];
  out[thread_of_grid()] = all;
}

#define BESIDE(NAME, COUNT, STEP)                                                                   \
  extern "C" __global__ void NAME##_##COUNT(double* out, int trips, const char* in) {                \
    beside(out, trips, in, [](Room& r, int k) {                                                      \
      _Pragma("unroll") for (int j = 0; j < COUNT; ++j) {                                            \
        [[maybe_unused]] const int i = (k * COUNT + j) % 8;                                          \
        STEP;                                                                                        \
      }                                                                                              \
    });                                                                                              \
  }
// After every COUNTth product.
#define SELDOM(NAME, COUNT, STEP)                                                                   \
  extern "C" __global__ void NAME##_of_##COUNT(double* out, int trips, const char* in) {             \
    beside(out, trips, in, [](Room& r, int k) {                                                      \
      [[maybe_unused]] const int i = k / COUNT % 2 * 4;                                              \
      if (k % COUNT == 0) { STEP; }                                                                  \
    });                                                                                              \
  }

#define FFMA asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(r.x[i]) : "f"(r.y))
#define FFMA_3 asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(r.x[i]) : "f"(r.x[(i + 3) % 8]), "f"(r.x[(i + 6) % 8]))
#define LOP3 asm volatile("lop3.b32 %0, %0, %1, %1, 0x78;" : "+r"(r.n[i]) : "r"(r.m))
#define IMAD asm volatile("mad.lo.u32 %0, %0, %1, %1;" : "+r"(r.n[i]) : "r"(r.m))
#define FMNMX asm volatile("max.f32 %0, %0, %1;" : "+f"(r.x[i]) : "f"(r.y))
#define EX2 asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(r.x[i]))
#define HFMA2 asm volatile("fma.rn.f16x2 %0, %0, %1, %1;" : "+r"(r.n[i]) : "r"(r.m))
#define PACK asm volatile("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %0, %1; mov.b32 %0, p; }" : "+f"(r.x[i]) : "f"(r.y))
#define LDS asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(r.n[i]) : "r"(r.at) : "memory")
#define STS asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(r.at), "r"(r.m) : "memory")
#define LDSM                                                                                                         \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"                                    \
               : "=r"(r.n[i]), "=r"(r.n[i + 1]), "=r"(r.n[i + 2]), "=r"(r.n[i + 3]) : "r"(r.at) : "memory")
#define COPY                                                                                                          \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(r.copy_to), "l"(r.from) : "memory");                 \
  asm volatile("cp.async.commit_group;" ::: "memory");                                                                \
  asm volatile("cp.async.wait_group 2;" ::: "memory")

BESIDE(ffma, 1, FFMA)
BESIDE(ffma, 2, FFMA)
BESIDE(ffma, 4, FFMA)
BESIDE(ffma, 6, FFMA)
BESIDE(ffma, 8, FFMA)
BESIDE(ffma_3, 4, FFMA_3)
BESIDE(lop3, 1, LOP3)
BESIDE(lop3, 2, LOP3)
BESIDE(lop3, 4, LOP3)
BESIDE(imad, 2, IMAD)
BESIDE(imad, 4, IMAD)
BESIDE(fmnmx, 2, FMNMX)
BESIDE(ex2, 1, EX2)
BESIDE(ex2, 2, EX2)
BESIDE(hfma2, 1, HFMA2)
BESIDE(hfma2, 2, HFMA2)
BESIDE(hfma2, 4, HFMA2)
BESIDE(pack, 2, PACK)
BESIDE(lds, 1, LDS)
BESIDE(lds, 2, LDS)
BESIDE(sts, 1, STS)
SELDOM(ldsm, 1, LDSM)
SELDOM(ldsm, 2, LDSM)
SELDOM(ldsm, 4, LDSM)
SELDOM(copy, 4, COPY)
SELDOM(copy, 8, COPY)

// Two forms in turn, four chains of each.
template <class Form>
struct Chains {
  typename Form::Factor a[Form::kA], b[Form::kB];
  typename Form::Sum sums[4][Form::kD];
  __device__ __forceinline__ explicit Chains(int trips) {
    _Pragma("unroll") for (int i = 0; i < Form::kA; ++i) a[i] = trips & (1024 << i);
    _Pragma("unroll") for (int i = 0; i < Form::kB; ++i) b[i] = trips & (65536 << i);
    _Pragma("unroll") for (int c = 0; c < 4; ++c)
      _Pragma("unroll") for (int i = 0; i < Form::kD; ++i) sums[c][i] = 0;
  }
  __device__ __forceinline__ double all() const {
    typename Form::Sum sum = 0;
    _Pragma("unroll") for (int c = 0; c < 4; ++c)
      _Pragma("unroll") for (int i = 0; i < Form::kD; ++i) sum += sums[c][i];
    return sum;
  }
};

#define IN_TURN(FIRST, SECOND)                                                                       \
  extern "C" __global__ void FIRST##_and_##SECOND(double* out, int trips, const char*) {             \
    Chains<FIRST> one(trips);                                                                        \
    Chains<SECOND> two(trips);                                                                       \
    COUNTED_LOOP(trips) {                                                                            \
      _Pragma("unroll") for (int k = 0; k < 16; ++k) {                                               \
        FIRST::multiply(one.sums[k % 4], one.a, one.b);                                              \
        SECOND::multiply(two.sums[k % 4], two.a, two.b);                                             \
      }                                                                                              \
    }                                                                                                \
    out[thread_of_grid()] = one.all() + two.all();                                                   \
  }
IN_TURN(f16_16816_f32, f16_1688_f32)
IN_TURN(f16_16816_f32, f16_16816_f16)
IN_TURN(f16_16816_f32, bf16_16816)
IN_TURN(f16_16816_f32, tf32_1688)
IN_TURN(f16_16816_f32, s8_16832)
IN_TURN(f16_16816_f32, f64_884)
IN_TURN(f16_16816_f32, sp_f16_16832)
IN_TURN(f16_1688_f32, s8_16816)
