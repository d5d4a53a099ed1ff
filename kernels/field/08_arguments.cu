// Everyday kernels 8: arguments as libraries pass them.
//
// Shows   a struct by value with pointers, strides and scalars, as tensor libraries pass it; a struct within a struct; a
//         batch whose matrices are found through arrays of pointers.
// Bound   HBM, and for the batch the load of a pointer before all others.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

struct View {
  float* data;
  long long stride;
  int rows, columns;
};

struct Scaled {
  View in, out;
  float scale;
  bool square;
};

extern "C" __global__ void arguments_scale(Scaled p) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column >= p.in.columns || row >= p.in.rows) return;
  const float x = p.in.data[row * p.in.stride + column];
  p.out.data[row * p.out.stride + column] = p.square ? p.scale * x * x : p.scale * x;
}

// c = a b for each matrix of the batch: a[m][k], b[k][n], all row-major.
extern "C" __global__ void arguments_batched(const float* const* a, const float* const* b, float* const* c, int m, int n,
                                             int k) {
  __shared__ float as[16][17], bs[16][17];
  const float* x = a[blockIdx.z];
  const float* y = b[blockIdx.z];
  const int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int at = 0; at < k; at += 16) {
    as[threadIdx.y][threadIdx.x] = row < m && at + threadIdx.x < k ? x[(size_t)row * k + at + threadIdx.x] : 0;
    bs[threadIdx.y][threadIdx.x] = at + threadIdx.y < k && column < n ? y[(size_t)(at + threadIdx.y) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[blockIdx.z][(size_t)row * n + column] = sum;
}
