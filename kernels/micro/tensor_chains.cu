// Calibration: the tensor pipe, one form of mma.sync at a time.
//
// Isolates  for every shape and type: a chain in which each product adds to the last one's sums (latency), and 2, 4 or 8 chains
//           that do not wait for each other, of one warp (what the compiler's stall counts allow) and of several (issue
//           interval of the pipe).
// Supports  tensor.*.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads] of 8 bytes, trips. A trip is 32 products a warp.

#include "micro.cuh"
#include "mma.cuh"

template <class Form, int kChains>
static __device__ __forceinline__ void chains(double* out, int trips) {
  typename Form::Factor a[Form::kA], b[Form::kB];
  typename Form::Sum sums[kChains][Form::kD];
  _Pragma("unroll") for (int i = 0; i < Form::kA; ++i) a[i] = trips & (1024 << i);
  _Pragma("unroll") for (int i = 0; i < Form::kB; ++i) b[i] = trips & (65536 << i);
  _Pragma("unroll") for (int c = 0; c < kChains; ++c)
    _Pragma("unroll") for (int i = 0; i < Form::kD; ++i) sums[c][i] = 0;
  COUNTED_LOOP(trips) {
    _Pragma("unroll") for (int k = 0; k < 32; ++k) Form::multiply(sums[k % kChains], a, b);
  }
  typename Form::Sum all = 0;
  _Pragma("unroll") for (int c = 0; c < kChains; ++c)
    _Pragma("unroll") for (int i = 0; i < Form::kD; ++i) all += sums[c][i];
  out[thread_of_grid()] = all;
}

#define CHAINS(FORM, COUNT) \
  extern "C" __global__ void FORM##_c##COUNT(double* out, int trips) { chains<FORM, COUNT>(out, trips); }
#define FEW(FORM) CHAINS(FORM, 1) CHAINS(FORM, 4)
#define MANY(FORM) FEW(FORM) CHAINS(FORM, 2) CHAINS(FORM, 8)

MANY(f16_16816_f32)
FEW(f16_16816_f16)
MANY(f16_1688_f32)
FEW(f16_1688_f16)
FEW(bf16_16816)
FEW(bf16_1688)
FEW(tf32_1684)
MANY(tf32_1688)
FEW(s8_8816)
FEW(s8_16816)
MANY(s8_16832)
FEW(s4_16864)
FEW(b1_168256)
FEW(f64_884)
FEW(f64_1684)
FEW(f64_1688)
MANY(f64_16816)
FEW(e4m3_16832)
FEW(sp_f16_16816)
MANY(sp_f16_16832)
FEW(sp_f16_16832_f16)
FEW(sp_bf16_16832)
FEW(sp_tf32_1688)
FEW(sp_tf32_16816)
FEW(sp_s8_16832)
FEW(sp_s8_16864)
