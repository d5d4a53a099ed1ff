// Everyday kernels 6: half precision and cache hints.
//
// Shows   packed fp16, bf16 rows, 2-byte tiles, streaming loads and stores.
// Bound   HBM.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half2_axpy(const __half2* x, __half2* y, float scale, int n) {
  const __half2 a = __float2half2_rn(scale);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __hfma2(a, x[i], y[i]);
}

extern "C" __global__ void bf16_rmsnorm(const __nv_bfloat16* x, __nv_bfloat16* y, int n) {
  float s = 0;
  const __nv_bfloat16* row = x + (size_t)blockIdx.x * n;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float v = __bfloat162float(row[i]);
    s += v * v;
  }
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  __shared__ float w[32];
  if ((threadIdx.x & 31) == 0) w[threadIdx.x >> 5] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < blockDim.x / 32; ++i) s += w[i];
  float r = rsqrtf(s / n + 1e-5f);
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    y[(size_t)blockIdx.x * n + i] = __float2bfloat16(__bfloat162float(row[i]) * r);
}

extern "C" __global__ void lds_transpose_half(const __half* in, __half* out, int n) {
  __shared__ __half t[64][66];
  int x = blockIdx.x * 64, y = blockIdx.y * 64;
  for (int j = threadIdx.y; j < 64; j += 8)
    for (int i = threadIdx.x; i < 64; i += 32) t[j][i] = in[(size_t)(y + j) * n + x + i];
  __syncthreads();
  for (int j = threadIdx.y; j < 64; j += 8)
    for (int i = threadIdx.x; i < 64; i += 32) out[(size_t)(x + j) * n + y + i] = t[i][j];
}

extern "C" __global__ void stream_hints(const float4* x, float4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float4 v = __ldcs(x + i);
    v.x *= 2;
    __stcs(y + i, v);
  }
}
