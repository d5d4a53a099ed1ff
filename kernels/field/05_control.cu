// Everyday kernels 5: calls, switches, local arrays, bits.
//
// Shows   a function that is not inlined, a jump table, local memory, votes and matches, integer division.
// Bound   issue and branches.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

#include <cooperative_groups.h>

__device__ __noinline__ float poly(float x, int n) {
  float s = 1;
  for (int i = 0; i < n; ++i) s = s * x + 1.f / (i + 1);
  return s;
}

extern "C" __global__ void call_device(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = poly(x[i], 8) + poly(x[i] * 0.5f, 4);
}

extern "C" __global__ void interpreter(const int* code, float* y, int n, int len) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float a = i, b = 1;
  for (int k = 0; k < len; ++k) switch (code[(k + (i >> 5)) % len] & 7) {
      case 0:
        a += b;
        break;
      case 1:
        a *= 1.01f;
        break;
      case 2:
        b = a - b;
        break;
      case 3:
        a = sqrtf(fabsf(a));
        break;
      case 4:
        b = __sinf(b);
        break;
      case 5: {
        float t = a;
        a = b;
        b = t;
      } break;
      case 6:
        a = fminf(a, b);
        break;
      case 7:
        a = a / (fabsf(b) + 1.f);
        break;
    }
  if (i < n) y[i] = a + b;
}

extern "C" __global__ void local_array(const int* sel, float* y, int n) {
  float a[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (int k = 0; k < 32; ++k) a[k] = i * 0.5f + k;
  float s = 0;
  for (int k = 0; k < 16; ++k) {
    int j = (sel[i] + k * 7) & 31;
    a[j] += s;
    s += a[31 - j];
  }
  y[i] = s;
}

extern "C" __global__ void warp_tricks(const unsigned* x, unsigned* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned v = x[i] & 7;
  unsigned m = __match_any_sync(~0u, v);
  unsigned b = __ballot_sync(~0u, v > 3);
  unsigned r = __popc(m) + __ffs(b) + __clz(v) + __brev(v) + __funnelshift_l(v, m, 5) + __byte_perm(v, m, 0x5140) +
               __vabsdiffu4(v, m);
  if (__any_sync(~0u, v == 3)) r ^= __shfl_sync(~0u, r, v);
  y[i] = r;
}

extern "C" __global__ void int_div(const int* x, long long* y, int n, int d, int e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = (x[i] / d) + (x[i] % (d + 3)) + ((long long)x[i] * 77777 / static_cast<long long>(e)) +
           ((unsigned long long)i * i) % 1000003ull;
}

extern "C" __global__ void coop(const float* x, float* y, int n) {
  auto block = cooperative_groups::this_thread_block();
  auto tile = cooperative_groups::tiled_partition<8>(block);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = x[i];
  for (int o = tile.size() / 2; o; o >>= 1) v += tile.shfl_down(v, o);
  if (tile.thread_rank() == 0) y[i / 8] = v;
}
