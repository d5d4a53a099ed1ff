// Attention, step 7: nanoGPT's attention with dropout as FlashAttention-2, forward and backward.
//
// Shows   the kernels of step 5 with dropout in them: what is kept follows from a counter (dropout.cuh), so the
//         backward pass makes the mask again instead of reading it, and it is the mask of step 6. One launch replaces
//         six, three replace eight.
// Bound   as step 5, and the integer work of the counter on the ALU and FMA pipes.
// Launch  forward: block 128, grid (ceil(length / 128), heads), 32 KiB of dynamic shared memory; backward: block 256,
//         the same grid, 81 KiB; delta and dq as in step 5.
// Args    as step 5 without group, causal always; then seed, dropped of 65536.

#include "flash2.cuh"

extern "C" __global__ void __launch_bounds__(128)
    nanogpt_flash_f16(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                      __half* __restrict__ o, float* __restrict__ log_sums, int length, float scale, int seed,
                      int dropped) {
  Forward<__half, 64, true>::run(q, k, v, o, log_sums, {length, 1, 1, scale, seed, dropped});
}

extern "C" __global__ void __launch_bounds__(256)
    nanogpt_delta_f16(const __half* __restrict__ o, const __half* __restrict__ d_o, float* __restrict__ delta,
                      float* __restrict__ dq_sums, int rows) {
  delta_of_rows<__half, 64>(o, d_o, delta, dq_sums, rows);
}

extern "C" __global__ void __launch_bounds__(256)
    nanogpt_flash_backward_f16(const __half* __restrict__ q, const __half* __restrict__ k, const __half* __restrict__ v,
                               const __half* __restrict__ d_o, const float* __restrict__ log_sums,
                               const float* __restrict__ delta, float* __restrict__ dq_sums, __half* __restrict__ dk,
                               __half* __restrict__ dv, int length, float scale, int seed, int dropped) {
  Backward<__half, 64, true>::run(q, k, v, d_o, log_sums, delta, dq_sums, dk, dv, {length, 1, 1, scale, seed, dropped});
}

extern "C" __global__ void nanogpt_dq_f16(const float2* __restrict__ dq_sums, __half2* __restrict__ dq, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pairs) dq[i] = __float22half2_rn(dq_sums[i]);
}
