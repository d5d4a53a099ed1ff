// Everyday kernels 4: arithmetic.
//
// Shows   all pairs in tiles, option prices, an escape-time loop, fp64, the accurate and the fast transcendental
// functions. Bound   FMA and MUFU pipes, fp64 pipe, divergence. Launch  as in traces/field_launches.py; no kernel here
// was looked at while the model was made.

extern "C" __global__ void nbody(const float4* p, float4* a, int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * 256 + threadIdx.x;
  float4 me = p[i];
  float3 f = {0, 0, 0};
  for (int b = 0; b < n; b += 256) {
    tile[threadIdx.x] = p[b + threadIdx.x];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < 256; ++k) {
      float4 o = tile[k];
      float dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      float w = o.w * r * r * r;
      f.x += dx * w;
      f.y += dy * w;
      f.z += dz * w;
    }
    __syncthreads();
  }
  a[i] = make_float4(f.x, f.y, f.z, 0);
}

extern "C" __global__ void black_scholes(const float* s, const float* k, const float* t, float* c, float* p, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float S = s[i] + 5.f, K = k[i] + 1.f, T = t[i] + .25f, q = sqrtf(T),
          d1 = (logf(S / K) + (0.02f + 0.045f) * T) / (0.3f * q), d2 = d1 - 0.3f * q;
    float n1 = normcdff(d1), n2 = normcdff(d2), e = expf(-0.02f * T);
    c[i] = S * n1 - K * e * n2;
    p[i] = K * e * (1.f - n2) - S * (1.f - n1);
  }
}

extern "C" __global__ void mandelbrot(int* out, int w, int h, int it) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  float cx = -2.f + 3.f * x / w, cy = -1.f + 2.f * y / h, zx = 0, zy = 0;
  int i = 0;
  while (i < it && zx * zx + zy * zy < 4.f) {
    float t = zx * zx - zy * zy + cx;
    zy = 2.f * zx * zy + cy;
    zx = t;
    ++i;
  }
  out[y * w + x] = i;
}

extern "C" __global__ void dgemm(const double* a, const double* b, double* c, int n) {
  __shared__ double sa[16][16], sb[16][16];
  int r = blockIdx.y * 16 + threadIdx.y, q = blockIdx.x * 16 + threadIdx.x;
  double s = 0;
  for (int k = 0; k < n; k += 16) {
    sa[threadIdx.y][threadIdx.x] = a[r * n + k + threadIdx.x];
    sb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + q];
    __syncthreads();
    for (int i = 0; i < 16; ++i) s += sa[threadIdx.y][i] * sb[i][threadIdx.x];
    __syncthreads();
  }
  c[r * n + q] = s;
}

extern "C" __global__ void long_math(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = exp(x[i]) * sin(x[i]) + pow(fabs(x[i]), 0.3) + 1.0 / (x[i] + 2.0) + sqrt(x[i] + 1.5);
}

extern "C" __global__ void transcendental(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = __expf(x[i]) + __logf(x[i] + 2.f) + __powf(x[i] + 1.1f, 1.7f) + tanhf(x[i]) + atan2f(x[i], 2.f) + erff(x[i]);
}
