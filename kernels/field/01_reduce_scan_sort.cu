// Everyday kernels 1: histogram, scan, sort, sums.
//
// Shows   shared atomics and shuffles, barriers, a tree in shared memory, a compare-and-swap loop.
// Bound   HBM for histogram, scan and sums; shared memory and barriers for the sort; contention for cas_loop.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

extern "C" __global__ void histogram(const unsigned* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i] & 255], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}

extern "C" __global__ void scan_block(const float* in, float* out, float* sums, int n) {
  __shared__ float w[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float v = i < n ? in[i] : 0.f;
  for (int o = 1; o < 32; o <<= 1) {
    float t = __shfl_up_sync(~0u, v, o);
    if (lane >= o) v += t;
  }
  if (lane == 31) w[warp] = v;
  __syncthreads();
  if (warp == 0) {
    float s = lane < blockDim.x / 32 ? w[lane] : 0.f;
    for (int o = 1; o < 32; o <<= 1) {
      float t = __shfl_up_sync(~0u, s, o);
      if (lane >= o) s += t;
    }
    w[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += w[warp - 1];
  if (i < n) out[i] = v;
  if (threadIdx.x == blockDim.x - 1) sums[blockIdx.x] = v;
}

extern "C" __global__ void bitonic(float* d) {
  __shared__ float s[1024];
  int t = threadIdx.x;
  s[t] = d[blockIdx.x * 1024 + t];
  for (int k = 2; k <= 1024; k <<= 1)
    for (int j = k >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int p = t ^ j;
      if (p > t) {
        float a = s[t], b = s[p];
        if ((a > b) == ((t & k) == 0)) {
          s[t] = b;
          s[p] = a;
        }
      }
    }
  __syncthreads();
  d[blockIdx.x * 1024 + t] = s[t];
}

extern "C" __global__ void dynamic_smem_sum(const float* x, float* y, int per) {
  extern __shared__ float s[];
  float v = 0;
  for (int k = 0; k < per; ++k) v += x[((size_t)blockIdx.x * per + k) * blockDim.x + threadIdx.x];
  s[threadIdx.x] = v;
  __syncthreads();
  for (int o = blockDim.x / 2; o; o >>= 1) {
    if (threadIdx.x < o) s[threadIdx.x] += s[threadIdx.x + o];
    __syncthreads();
  }
  if (!threadIdx.x) y[blockIdx.x] = s[0];
}

extern "C" __global__ void dp4a_gemv(const int* a, const int* x, int* y, int words) {
  int r = blockIdx.x, s = 0;
  for (int k = threadIdx.x; k < words; k += blockDim.x) s = __dp4a(a[(size_t)r * words + k], x[k], s);
  s = __reduce_add_sync(~0u, s);
  if ((threadIdx.x & 31) == 0) atomicAdd(&y[r], s);
}

extern "C" __global__ void cas_loop(float* total, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float* p = total + (i & 1023);
  int old = __float_as_int(*p), seen;
  do {
    seen = old;
    old = atomicCAS((int*)p, seen, __float_as_int(__int_as_float(seen) + x[i]));
  } while (old != seen);
}
