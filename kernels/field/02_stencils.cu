// Everyday kernels 2: stencils and a convolution.
//
// Shows   halos in shared memory, planes kept in registers, a filter in constant memory.
// Bound   HBM for the stencils, L1 for the convolution.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

extern "C" __global__ void stencil2d(const float* in, float* out, int nx, int ny) {
  __shared__ float t[18][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
  auto at = [&](int xx, int yy) { return xx >= 0 && yy >= 0 && xx < nx && yy < ny ? in[(size_t)yy * nx + xx] : 0.f; };
  t[ly][lx] = at(x, y);
  if (threadIdx.x == 0) t[ly][0] = at(x - 1, y);
  if (threadIdx.x == 31) t[ly][33] = at(x + 1, y);
  if (threadIdx.y == 0) t[0][lx] = at(x, y - 1);
  if (threadIdx.y == 15) t[17][lx] = at(x, y + 1);
  __syncthreads();
  if (x < nx && y < ny)
    out[(size_t)y * nx + x] = 0.2f * (t[ly][lx] + t[ly][lx - 1] + t[ly][lx + 1] + t[ly - 1][lx] + t[ly + 1][lx]);
}

extern "C" __global__ void stencil3d(const float* __restrict__ in, float* __restrict__ out, int nx, int ny, int nz) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  size_t s = (size_t)nx * ny, i = (size_t)y * nx + x + s;
  float below = in[i - s], mid = in[i];
  for (int z = 1; z < nz - 1; ++z, i += s) {
    float above = in[i + s];
    out[i] = mid * 0.4f + 0.1f * (in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + below + above);
    below = mid;
    mid = above;
  }
}

__constant__ float filter[49];

extern "C" __global__ void conv2d(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= w || y >= h) return;
  float s = 0;
#pragma unroll
  for (int j = -3; j <= 3; ++j)
#pragma unroll
    for (int i = -3; i <= 3; ++i) {
      int xx = min(max(x + i, 0), w - 1), yy = min(max(y + j, 0), h - 1);
      s += filter[(j + 3) * 7 + i + 3] * in[yy * w + xx];
    }
  out[y * w + x] = s;
}
