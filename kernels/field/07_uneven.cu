// Everyday kernels 7: blocks that differ.
//
// Shows   indices by quotients and remainders of run-time integers, a triangle of work over the grid, halos that are
//         clamped at the edges, tiles drawn from a counter.
// Bound   L1 and latency for the attention in pieces, HBM for scaling and permutation, L1 for the stencil.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

// Scores of causal attention, an element a thread: q and k lie side by side in qkv[batch][time][3][heads][size].
extern "C" __global__ void uneven_scores(const float* __restrict__ qkv, float* __restrict__ scores, int batches, int time,
                                         int heads, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batches * heads * time * time) return;
  const int key = i % time, query = i / time % time;
  if (key > query) {
    scores[i] = -1e9f;
    return;
  }
  const int head = i / (time * time) % heads, batch = i / (time * time * heads);
  const int row = 3 * heads * size;
  const float* q = qkv + (batch * time + query) * row + head * size;
  const float* k = qkv + (batch * time + key) * row + (heads + head) * size;
  float sum = 0;
  for (int j = 0; j < size; ++j) sum += q[j] * k[j];
  scores[i] = sum * rsqrtf(static_cast<float>(size));
}

// Scale where the key is not after the query.
extern "C" __global__ void uneven_scale_masked(float* __restrict__ scores, float factor, int batches, int heads, int time) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batches * heads * time * time) return;
  const int rest = i % (heads * time * time) % (time * time);
  const int query = rest / time, key = rest % time;
  scores[i] = key > query ? -1e9f : scores[i] * factor;
}

// Softmax of a triangle's rows, a row a thread.
extern "C" __global__ void uneven_softmax(const float* __restrict__ scores, float* __restrict__ weights, int rows, int time) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows) return;
  const int last = i % time;
  const float* in = scores + static_cast<size_t>(i) * time;
  float* out = weights + static_cast<size_t>(i) * time;
  float most = -1e9f;
  for (int j = 0; j <= last; ++j) most = fmaxf(most, in[j]);
  float sum = 0;
  for (int j = 0; j <= last; ++j) {
    const float e = __expf(in[j] - most);
    sum += e;
    out[j] = e;
  }
  const float scale = sum == 0 ? 0 : 1 / sum;
  for (int j = 0; j < time; ++j) out[j] = j <= last ? out[j] * scale : 0;
}

// Weights times values, a row and head a thread: as many steps as the row has keys before it.
extern "C" __global__ void uneven_values(const float* __restrict__ weights, const float* __restrict__ qkv,
                                         float* __restrict__ out, int batches, int time, int heads, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batches * time * heads) return;
  const int head = i % heads, query = i / heads % time, batch = i / (heads * time);
  const int row = 3 * heads * size;
  float* sum = out + (batch * time + query) * heads * size + head * size;
  const float* weight = weights + ((batch * heads + head) * time + query) * static_cast<size_t>(time);
  for (int j = 0; j < size; ++j) sum[j] = 0;
  for (int key = 0; key <= query; ++key) {
    const float* value = qkv + (batch * time + key) * row + (2 * heads + head) * size;
    const float w = weight[key];
    for (int j = 0; j < size; ++j) sum[j] += w * value[j];
  }
}

// (batch, time, 3, head, size) to three of (batch, head, time, size).
extern "C" __global__ void uneven_permute(const float* __restrict__ qkv, float* __restrict__ q, float* __restrict__ k,
                                          float* __restrict__ v, int batches, int time, int heads, int size) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= batches * heads * time * size) return;
  const int batch = i / (heads * time * size);
  int rest = i % (heads * time * size);
  const int head = rest / (time * size);
  rest %= time * size;
  const int at = rest / size, j = rest % size;
  const int from = ((batch * time + at) * 3 * heads + head) * size + j;
  q[i] = __ldcs(&qkv[from]);
  k[i] = __ldcs(&qkv[from + heads * size]);
  v[i] = __ldcs(&qkv[from + 2 * heads * size]);
}

// Heat on a chip, two steps at a time: a block's square shrinks by one on each side at every step, and is cut off at the edges
// of the chip.
extern "C" __global__ void uneven_heat(const float* __restrict__ power, const float* __restrict__ before,
                                       float* __restrict__ after, int columns, int rows, int steps, float rx, float ry, float rz,
                                       float gain) {
  constexpr int kSide = 16;
  __shared__ float now[kSide][kSide], heat[kSide][kSide], next[kSide][kSide];
  const int inside = kSide - 2 * steps;
  const int top = inside * static_cast<int>(blockIdx.y) - steps, left = inside * static_cast<int>(blockIdx.x) - steps;
  const int bottom = top + kSide - 1, right = left + kSide - 1;
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = top + y, column = left + x;
  const int at = columns * row + column;
  if (row >= 0 && row < rows && column >= 0 && column < columns) {
    now[y][x] = before[at];
    heat[y][x] = power[at];
  }
  __syncthreads();
  const int first_y = top < 0 ? -top : 0, last_y = bottom > rows - 1 ? kSide - 1 - (bottom - rows + 1) : kSide - 1;
  const int first_x = left < 0 ? -left : 0, last_x = right > columns - 1 ? kSide - 1 - (right - columns + 1) : kSide - 1;
  const int north = max(y - 1, first_y), south = min(y + 1, last_y), west = max(x - 1, first_x), east = min(x + 1, last_x);
  bool computed = false;
  for (int step = 0; step < steps; ++step) {
    computed = false;
    if (x >= step + 1 && x <= kSide - step - 2 && y >= step + 1 && y <= kSide - step - 2 && x >= first_x && x <= last_x &&
        y >= first_y && y <= last_y) {
      computed = true;
      next[y][x] = now[y][x] + gain * (heat[y][x] + (now[south][x] + now[north][x] - 2 * now[y][x]) * ry +
                                       (now[y][east] + now[y][west] - 2 * now[y][x]) * rx + (80.0f - now[y][x]) * rz);
    }
    __syncthreads();
    if (step == steps - 1) break;
    if (computed) now[y][x] = next[y][x];
    __syncthreads();
  }
  if (computed) after[at] = next[y][x];
}

// Blocks stay, and take a tile of 1024 elements each time the counter gives them one.
extern "C" __global__ void uneven_tiles(const float* __restrict__ in, float* __restrict__ out, unsigned* __restrict__ counter,
                                        unsigned tiles) {
  __shared__ unsigned drawn;
  for (;;) {
    if (threadIdx.x == 0) drawn = atomicAdd(counter, 1u);
    __syncthreads();
    const unsigned tile = drawn;
    __syncthreads();
    if (tile >= tiles) {
      if (threadIdx.x == 0 && tile == tiles + gridDim.x - 1) *counter = 0;  // the last draw: ready for the next launch
      return;
    }
    float4 v = reinterpret_cast<const float4*>(in)[tile * 256 + threadIdx.x];
    v.x = 2 * v.x + 1, v.y = 2 * v.y + 1, v.z = 2 * v.z + 1, v.w = 2 * v.w + 1;
    reinterpret_cast<float4*>(out)[tile * 256 + threadIdx.x] = v;
  }
}

// A barrier of the whole grid between two passes: the last block to arrive opens it for those that look on.
extern "C" __global__ void uneven_grid_barrier(const float* __restrict__ in, float* __restrict__ middle, float* __restrict__ out,
                                               unsigned* __restrict__ arrived, volatile unsigned* opened, int n) {
  const int threads = gridDim.x * blockDim.x;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) middle[i] = in[i] * 2;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = *opened;
    if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
      *arrived = 0;
      __threadfence();
      *opened = before + 1;
    } else {
      while (*opened == before) {
      }
    }
  }
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += threads) out[i] = middle[n - 1 - i] + 1;
}

// 2 bytes a lane.
extern "C" __global__ void uneven_half_copy(const unsigned short* __restrict__ in, unsigned short* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
