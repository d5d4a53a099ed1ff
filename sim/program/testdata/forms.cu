// nvcc -arch=sm_80 -cubin -o forms_sm80.cubin forms.cu (and sm_90), nvdisasm -json; other-attributes left out.
// Small kernels that make the compiler emit many kinds of instruction; the loader's tests read their cubins.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>


namespace shape {
__constant__ float table[64];

// Integers, conversions, special functions, warp operations, atomics.
template <typename T>
__global__ void integers(const T* a, T* out, int n, unsigned flags) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  T v = a[i];
  const unsigned u = static_cast<unsigned>(v);
  v += __popc(u) + __clz(u) + __ffs(u) + static_cast<T>(__brev(u));
  v += static_cast<T>(__byte_perm(u, flags, 0x3210 ^ (flags & 7))) + static_cast<T>(__funnelshift_l(u, flags, 5));
  v = v % (static_cast<T>(n) | 1);
  v += static_cast<T>(__shfl_xor_sync(~0u, u, 1) + __shfl_up_sync(~0u, u, 2) + __shfl_sync(~0u, u, flags & 31));
  if (__any_sync(~0u, v > 5)) v -= static_cast<T>(__ballot_sync(~0u, v & 1));
  v += static_cast<T>(__reduce_add_sync(~0u, u) + __match_any_sync(~0u, u));
  v += static_cast<T>(__dp4a(static_cast<int>(u), n, 3)) + static_cast<T>(__sad(static_cast<int>(u), n, 1u));
  v += static_cast<T>(__mulhi(static_cast<int>(u), n)) + max(static_cast<int>(u), n) * min(u, flags);
  atomicAdd(reinterpret_cast<unsigned*>(out) + 1, u);
  v += static_cast<T>(atomicCAS(reinterpret_cast<unsigned*>(out), u, flags));
  out[i + 2] = v + static_cast<T>(abs(static_cast<int>(u)));
}
template __global__ void integers<int>(const int*, int*, int, unsigned);
template __global__ void integers<long long>(const long long*, long long*, int, unsigned);
}  // namespace shape

extern "C" {
__global__ void halves(const __half2* a, const __nv_bfloat162* b, __half2* c, __nv_bfloat162* d, float* f) {
  const int i = threadIdx.x;
  __half2 x = a[i];
  x = __hfma2(x, __hadd2(x, __float2half2_rn(1.5f)), __hmul2(x, x));
  x = __hmax2(x, __hfma2(x, __halves2half2(__float2half(0.5f), __float2half(2.f)), x));
  if (__hgt(__low2half(x), __high2half(a[i + 1]))) x = __hneg2(x);
  c[i] = x;
  __nv_bfloat162 y = __hfma2(b[i], b[i + 1], b[i + 2]);
  d[i] = y;
  f[i] = __low2float(x) + __bfloat162float(y.x) + __half2float(__hmul(__high2half(x), __low2half(x)));
}

__global__ void doubles(const double* a, double* out, const float* f, int* g, long long* h, int n) {
  const int i = threadIdx.x;
  double x = a[i];
  x = x * a[i + 1] + 3.0;
  if (x > 1.0 && i < n) x += static_cast<double>(f[i]) - static_cast<double>(g[i]);
  out[i] = x;
  g[i] = static_cast<int>(x) + __float2int_rn(f[i]);
  h[i] = static_cast<long long>(f[i]) + __double2ll_rz(x);
  out[i + 32] = static_cast<double>(h[i]) * x;
  atomicAdd(out + 64, x);
  atomicMax(h, static_cast<long long>(n));
}

__global__ void floats(const float* a, float* out, int n, int which) {
  const int i = threadIdx.x;
  float x = a[i];
  switch (which) {
    case 0: x = __sinf(x); break;
    case 1: x = __cosf(x) * 2.5f; break;
    case 2: x = __log2f(x); break;
    case 3: x = rsqrtf(x) + 1.f; break;
    case 4: x = fmaxf(x, 3.f); break;
    case 5: x = floorf(x) + rintf(x); break;
    case 6: x = tanhf(x); break;
    case 7: x = a[static_cast<int>(x) & 31]; break;
    default: x = -fabsf(x);
  }
  out[i] = x / a[n] + shape::table[i] + shape::table[3];
  out[i] += static_cast<float>(n) + static_cast<float>(static_cast<unsigned char>(which));
}

__device__ __noinline__ float series(const float* a, int n) {
  float s = 0;
#pragma unroll 1
  for (int i = 0; i < n; ++i) s += a[i] * s + sqrtf(s);
  return s;
}
__global__ void __launch_bounds__(128, 2) calls(const float* a, float* out, int n) {
  float local[40];
#pragma unroll 1
  for (int i = 0; i < 40; ++i) local[i] = a[i * n];
  const int t = threadIdx.x;
  if (t & 1) out[t] = series(a + t, n);
  else out[t] = series(a, t) + local[(n * t) % 40];
  __syncwarp();
  out[t + 128] = local[t % 40];
}

__global__ void shared_memory(const int4* a, int* out, unsigned char* bytes, int n) {
  extern __shared__ int4 dynamic[];
  __shared__ short table[256];
  __shared__ unsigned total;
  const int t = threadIdx.x;
  if (t == 0) total = 0;
  table[t] = static_cast<short>(bytes[t]);
  __pipeline_memcpy_async(&dynamic[t], &a[t], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  atomicAdd(&total, dynamic[t ^ n].x);
  bytes[t] = static_cast<unsigned char>(table[t * 3 & 255]);
  const int all = __syncthreads_count(t > n) + __syncthreads_or(t == n);
  __threadfence();
  asm volatile("bar.sync 1, 64;");
  volatile int* v = out;
  v[t] = total + all + __ldcg(out + t + 1) + __ldcs(out + t + 2);
  out[t + 4096] = static_cast<int>(clock()) + reinterpret_cast<int*>(dynamic)[t];
  void* generic = t & 1 ? static_cast<void*>(&total) : static_cast<void*>(out);
  atomicOr(static_cast<unsigned*>(generic), 3u);
  *static_cast<int*>(generic) = 1;
  __nanosleep(10);
}

__global__ void matrix(const __half* a, const __half* b, float* c, const signed char* d, int* e, const double* f, double* g) {
  using namespace nvcuda::wmma;
  __shared__ __half tile[256];
  tile[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  fragment<matrix_a, 16, 16, 16, __half, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __half, col_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.f);
  load_matrix_sync(fa, tile, 16);
  load_matrix_sync(fb, b, 16);
  mma_sync(fc, fa, fb, fc);
  store_matrix_sync(c, fc, 16, mem_row_major);
  fragment<matrix_a, 16, 16, 16, signed char, row_major> ia;
  fragment<matrix_b, 16, 16, 16, signed char, col_major> ib;
  fragment<accumulator, 16, 16, 16, int> ic;
  fill_fragment(ic, 0);
  load_matrix_sync(ia, d, 16);
  load_matrix_sync(ib, d + 256, 16);
  mma_sync(ic, ia, ib, ic);
  store_matrix_sync(e, ic, 16, mem_row_major);
  fragment<matrix_a, 8, 8, 4, double, row_major> da;
  fragment<matrix_b, 8, 8, 4, double, col_major> db;
  fragment<accumulator, 8, 8, 4, double> dc;
  fill_fragment(dc, 0.);
  load_matrix_sync(da, f, 4);
  load_matrix_sync(db, f + 32, 4);
  mma_sync(dc, da, db, dc);
  store_matrix_sync(g, dc, 8, mem_row_major);
}
}
