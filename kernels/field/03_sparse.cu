// Everyday kernels 3: addresses and lengths that come from data.
//
// Shows   gather, scatter, rows of different lengths, walks down a tree.
// Bound   latency and sectors: a sector a lane.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

extern "C" __global__ void spmv_scalar(const int* cols, const float* x, float* y, int rows) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  int begin = r * 16, len = 1 + (cols[begin] & 15);
  float s = 0;
  for (int k = 0; k < len; ++k) s += x[cols[begin + k]] * 0.5f;
  y[r] = s;
}

extern "C" __global__ void gather(const unsigned* idx, const float* x, float* y, int n, int mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[idx[i] & mask];
}

extern "C" __global__ void scatter_max(const unsigned* idx, const float* x, int* y, int n, int mask) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMax(&y[idx[i] & mask], __float_as_int(x[i]));
}

extern "C" __global__ void tree(const int* left, const float* key, const float* q, int* out, int n, int depth) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int node = 0;
  float v = q[i];
  for (int d = 0; d < depth; ++d) {
    node = 2 * node + 1 + (v > key[node]);
    if ((left[node] & 63) == 0) break;
  }
  out[i] = node;
}
