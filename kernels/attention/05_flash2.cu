// Attention, step 5: FlashAttention-2 on tensor cores, forward and backward.
//
// Shows   forward: a block keeps 128 queries, each warp 32 of them with all keys: no sums are exchanged between warps,
//         O stays in registers and is divided by its sum once, at the end (FlashAttention-1, step 4, splits the keys
//         over the warps and does both at every tile). The sums of S are the words of P for the next product as they
//         lie. K and V come by cp.async, V under S = Q K^T and the next K under P V. A causal block stops at its
//         diagonal; blocks with the most keys go first. Backward: S and P are made again from q, k and the saved
//         logarithm of each row's sum: five products in place of the forward's two, and nothing quadratic in memory. A
//         block keeps 128 keys and walks the queries, as S^T, so that P and dS are in registers what dV and dK take. dQ
//         sums over blocks: atomics in fp32, then one pass to fp16. delta = sum of dO O is made first, a row a warp.
// Bound   the tensor pipe, and exp2 on the XU pipe at heads of 64; backward also shared memory and the atomics in L2.
// Launch  flash2: block 128, grid (ceil(length / 128), heads); 32 KiB of dynamic shared memory, 64 with heads of 128.
//         flash2_delta: block 256, grid ceil(heads length / 8).
//         flash2_backward: block 256, grid (ceil(length / 128), heads / group); 81 KiB, 145 with heads of 128.
//         flash2_dq: block 256, grid ceil(heads length head / 512).
// Args    q, o [heads][length][64 or 128], k, v [heads / group][length][...], log_sums[heads][length] fp32 (base 2),
//         length, group, scale, causal: 0, or 1 to mask keys after the query. Then o, d_o, delta, dq_sums, heads
//         length; q, k, v, d_o, log_sums, delta, dq_sums, dk, dv, length, group, scale, causal; dq_sums, dq, pairs of
//         elements. delta and dq_sums are fp32, the rest fp16 or bf16.

#include "flash2.cuh"

#define FLASH2(NAME, T, HEAD)                                                                            \
  extern "C" __global__ void __launch_bounds__(128)                                                      \
      NAME(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ o, \
           float* __restrict__ log_sums, int length, int group, float scale, int causal) {               \
    Forward<T, HEAD, false>::run(q, k, v, o, log_sums, {length, group, causal, scale, 0, 0});            \
  }
FLASH2(flash2_f16_64, __half, 64)
FLASH2(flash2_f16_128, __half, 128)
FLASH2(flash2_bf16_128, __nv_bfloat16, 128)

#define DELTA(HEAD)                                                                                                    \
  extern "C" __global__ void __launch_bounds__(256)                                                                    \
      flash2_delta_f16_##HEAD(const __half* __restrict__ o, const __half* __restrict__ d_o, float* __restrict__ delta, \
                              float* __restrict__ dq_sums, int rows) {                                                 \
    delta_of_rows<__half, HEAD>(o, d_o, delta, dq_sums, rows);                                                         \
  }
DELTA(64)
DELTA(128)

#define BACKWARD(HEAD)                                                                                      \
  extern "C" __global__ void __launch_bounds__(256) flash2_backward_f16_##HEAD(                             \
      const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,             \
      const __half* __restrict__ d_o, const float* __restrict__ log_sums, const float* __restrict__ delta,  \
      float* __restrict__ dq_sums, __half* __restrict__ dk, __half* __restrict__ dv, int length, int group, \
      float scale, int causal) {                                                                            \
    Backward<__half, HEAD, false>::run(q, k, v, d_o, log_sums, delta, dq_sums, dk, dv,                      \
                                       {length, group, causal, scale, 0, 0});                               \
  }
BACKWARD(64)
BACKWARD(128)

extern "C" __global__ void flash2_dq_f16(const float2* __restrict__ dq_sums, __half2* __restrict__ dq, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) dq[i] = __float22half2_rn(dq_sums[i]);
}
