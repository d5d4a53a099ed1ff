// Everyday kernels 9: what serving and training a language model launches between its large products.
//
// Shows   products of a matrix and a vector (fp16, 4-bit weights), norms, rotary embedding, gated activations, attention of
//         one query over a paged cache, routing to experts, quantisation, losses, a recurrence, layouts.
// Bound   HBM mostly; latency where there is little of it.
// Launch  as in traces/field_launches.py; no kernel here was looked at while the model was made.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ __forceinline__ float warp_sum(float x) {
  for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
__device__ __forceinline__ float warp_most(float x) {
  for (int o = 16; o; o >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, o));
  return x;
}
template <bool kMost>
__device__ __forceinline__ float block_all(float x) {
  __shared__ float parts[32];
  x = kMost ? warp_most(x) : warp_sum(x);
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : kMost ? -INFINITY : 0.f;
  return kMost ? warp_most(x) : warp_sum(x);
}

// A warp a row, 8 weights a load.
extern "C" __global__ void gemv_half(const uint4* __restrict__ w, const uint4* __restrict__ x, __half* __restrict__ y, int n) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int i = lane; i < n / 8; i += 32) {
    const uint4 a = w[static_cast<size_t>(row) * (n / 8) + i], b = x[i];
    const __half2 *pa = reinterpret_cast<const __half2*>(&a), *pb = reinterpret_cast<const __half2*>(&b);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float2 fa = __half22float2(pa[j]), fb = __half22float2(pb[j]);
      sum += fa.x * fb.x + fa.y * fb.y;
    }
  }
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2half(sum);
}

// Weights of 4 bits in groups of 128 with a scale; a warp a row, 32 weights a load.
extern "C" __global__ void gemv_int4(const uint4* __restrict__ w, const __half* __restrict__ scales, const __half* __restrict__ x,
                                     __half* __restrict__ y, int n) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  float sum = 0;
  for (int i = lane; i < n / 32; i += 32) {
    const uint4 q = w[static_cast<size_t>(row) * (n / 32) + i];
    const float scale = __half2float(scales[static_cast<size_t>(row) * (n / 128) + i / 4]);
    const uint32_t words[4] = {q.x, q.y, q.z, q.w};
    float part = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 v = *reinterpret_cast<const uint4*>(x + i * 32 + j * 8);
      const __half2* pv = reinterpret_cast<const __half2*>(&v);
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float2 f = __half22float2(pv[k]);
        part += (static_cast<int>(words[j] >> (8 * k) & 15) - 8) * f.x + (static_cast<int>(words[j] >> (8 * k + 4) & 15) - 8) * f.y;
      }
    }
    sum += scale * part;
  }
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2half(sum);
}

// x += residual, then a row's root mean square taken out; a block a row, 8 elements a thread.
extern "C" __global__ void residual_rmsnorm(uint4* __restrict__ x, const uint4* __restrict__ residual, const uint4* __restrict__ gain,
                                            uint4* __restrict__ out, int n) {
  const size_t at = static_cast<size_t>(blockIdx.x) * (n / 8) + threadIdx.x;
  uint4 a = x[at], b = residual[at];
  __nv_bfloat162 *pa = reinterpret_cast<__nv_bfloat162*>(&a), *pb = reinterpret_cast<__nv_bfloat162*>(&b);
  float sum = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    pa[j] = __hadd2(pa[j], pb[j]);
    const float2 f = __bfloat1622float2(pa[j]);
    sum += f.x * f.x + f.y * f.y;
  }
  x[at] = a;
  const float scale = rsqrtf(block_all<false>(sum) / n + 1e-5f);
  uint4 g = gain[threadIdx.x];
  const __nv_bfloat162* pg = reinterpret_cast<const __nv_bfloat162*>(&g);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 f = __bfloat1622float2(pa[j]), h = __bfloat1622float2(pg[j]);
    pa[j] = __floats2bfloat162_rn(f.x * scale * h.x, f.y * scale * h.y);
  }
  out[at] = a;
}

// Rotary embedding in place: [tokens][heads][128], halves of a head turned against each other.
extern "C" __global__ void rotary(__half* __restrict__ q, const float2* __restrict__ turns, int heads) {
  const int token = blockIdx.x;
  for (int i = threadIdx.x; i < heads * 64; i += blockDim.x) {
    const int head = i / 64, d = i % 64;
    const float2 t = turns[static_cast<size_t>(token) * 64 + d];
    __half* at = q + (static_cast<size_t>(token) * heads + head) * 128 + d;
    const float a = __half2float(at[0]), b = __half2float(at[64]);
    at[0] = __float2half(a * t.x - b * t.y);
    at[64] = __float2half(a * t.y + b * t.x);
  }
}

// silu(gate) * up; gate and up beside each other in a row of 2 n.
extern "C" __global__ void swiglu(const uint4* __restrict__ in, uint4* __restrict__ out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n / 8) return;
  const size_t row = blockIdx.y;
  uint4 g = in[row * (n / 4) + i], u = in[row * (n / 4) + n / 8 + i];
  __nv_bfloat162 *pg = reinterpret_cast<__nv_bfloat162*>(&g), *pu = reinterpret_cast<__nv_bfloat162*>(&u);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float2 a = __bfloat1622float2(pg[j]), b = __bfloat1622float2(pu[j]);
    pg[j] = __floats2bfloat162_rn(a.x / (1.f + __expf(-a.x)) * b.x, a.y / (1.f + __expf(-a.y)) * b.y);
  }
  out[row * (n / 8) + i] = g;
}

// One query of each sequence and head over a cache of pages of 16 keys, heads of 128; a block of 4 warps, a key a warp at a time.
extern "C" __global__ void __launch_bounds__(128) paged_attention(const __half* __restrict__ q, const __half* __restrict__ keys,
                                                                  const __half* __restrict__ values, const int* __restrict__ pages,
                                                                  const int* __restrict__ lengths, __half* __restrict__ out, int heads,
                                                                  int most_pages) {
  const int sequence = blockIdx.y, head = blockIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int length = lengths[sequence] + 1;
  const uint2 qs = *reinterpret_cast<const uint2*>(q + (static_cast<size_t>(sequence) * heads + head) * 128 + lane * 4);
  const float2 q0 = __half22float2(*reinterpret_cast<const __half2*>(&qs.x)), q1 = __half22float2(*reinterpret_cast<const __half2*>(&qs.y));
  float most = -INFINITY, sum = 0, o[4] = {};
  for (int k = warp; k < length; k += 4) {
    const size_t at = ((static_cast<size_t>(pages[sequence * most_pages + k / 16]) * heads + head) * 16 + k % 16) * 128 + lane * 4;
    const uint2 ks = *reinterpret_cast<const uint2*>(keys + at), vs = *reinterpret_cast<const uint2*>(values + at);
    const float2 k0 = __half22float2(*reinterpret_cast<const __half2*>(&ks.x)), k1 = __half22float2(*reinterpret_cast<const __half2*>(&ks.y));
    const float s = warp_sum(q0.x * k0.x + q0.y * k0.y + q1.x * k1.x + q1.y * k1.y) * 0.08838835f;
    const float next = fmaxf(most, s), keep = __expf(most - next), p = __expf(s - next);
    const float2 v0 = __half22float2(*reinterpret_cast<const __half2*>(&vs.x)), v1 = __half22float2(*reinterpret_cast<const __half2*>(&vs.y));
    o[0] = o[0] * keep + p * v0.x, o[1] = o[1] * keep + p * v0.y, o[2] = o[2] * keep + p * v1.x, o[3] = o[3] * keep + p * v1.y;
    sum = sum * keep + p;
    most = next;
  }
  __shared__ float all_most[4], all_sum[4], all_o[4][128];
  if (lane == 0) all_most[warp] = most, all_sum[warp] = sum;
  for (int j = 0; j < 4; ++j) all_o[warp][lane * 4 + j] = o[j];
  __syncthreads();
  float top = all_most[0], total = 0, result = 0;
  for (int w = 1; w < 4; ++w) top = fmaxf(top, all_most[w]);
  for (int w = 0; w < 4; ++w) {
    const float factor = __expf(all_most[w] - top);
    total += all_sum[w] * factor;
    result += all_o[w][threadIdx.x] * factor;
  }
  out[(static_cast<size_t>(sequence) * heads + head) * 128 + threadIdx.x] = __float2half(result / total);
}

// A row of the table a token, a block a row.
extern "C" __global__ void embedding(const int* __restrict__ tokens, const uint4* __restrict__ table, uint4* __restrict__ out, int chunks) {
  const size_t from = static_cast<size_t>(tokens[blockIdx.x]) * chunks, to = static_cast<size_t>(blockIdx.x) * chunks;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) out[to + i] = table[from + i];
}

// The largest logit of each row, and where it is.
extern "C" __global__ void argmax_rows(const __half* __restrict__ logits, int* __restrict__ best, int n) {
  float most = -INFINITY;
  int where = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float x = __half2float(logits[static_cast<size_t>(blockIdx.x) * n + i]);
    if (x > most) most = x, where = i;
  }
  const float top = block_all<true>(most);
  __shared__ int found;
  if (threadIdx.x == 0) found = n;
  __syncthreads();
  if (most == top) atomicMin(&found, where);
  __syncthreads();
  if (threadIdx.x == 0) best[blockIdx.x] = found;
}

// Tokens of each expert, and each token's place among them: counted in shared memory, placed by one atomic an expert and block.
extern "C" __global__ void route(const int* __restrict__ expert, int* __restrict__ counts, int* __restrict__ place, int tokens) {
  __shared__ int here[64], base[64];
  for (int i = threadIdx.x; i < 64; i += blockDim.x) here[i] = 0;
  __syncthreads();
  const int token = blockIdx.x * blockDim.x + threadIdx.x;
  int e = 0, rank = 0;
  if (token < tokens) {
    e = expert[token];
    rank = atomicAdd(&here[e], 1);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64; i += blockDim.x) base[i] = here[i] ? atomicAdd(&counts[i], here[i]) : 0;
  __syncthreads();
  if (token < tokens) place[token] = base[e] + rank;
}

// Rows to bytes, by their largest magnitude; a block a row.
extern "C" __global__ void quantise_rows(const float4* __restrict__ in, uint32_t* __restrict__ out, float* __restrict__ scales, int chunks) {
  const size_t row = static_cast<size_t>(blockIdx.x) * chunks;
  float most = 0;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
    const float4 v = in[row + i];
    most = fmaxf(fmaxf(fmaxf(most, fabsf(v.x)), fmaxf(fabsf(v.y), fabsf(v.z))), fabsf(v.w));
  }
  most = block_all<true>(most);
  const float factor = 127.f / most;
  for (int i = threadIdx.x; i < chunks; i += blockDim.x) {
    const float4 v = in[row + i];
    const int a = __float2int_rn(v.x * factor), b = __float2int_rn(v.y * factor), c = __float2int_rn(v.z * factor), d = __float2int_rn(v.w * factor);
    out[row + i] = (a & 255) | (b & 255) << 8 | (c & 255) << 16 | d << 24;
  }
  if (threadIdx.x == 0) scales[blockIdx.x] = most / 127.f;
}

// Loss of each row and the gradient of its logits, in place of them.
extern "C" __global__ void cross_entropy(float* __restrict__ logits, const int* __restrict__ targets, float* __restrict__ loss, int n) {
  float* row = logits + static_cast<size_t>(blockIdx.x) * n;
  float most = -INFINITY, sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
  most = block_all<true>(most);
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += __expf(row[i] - most);
  sum = block_all<false>(sum);
  const int target = targets[blockIdx.x];
  if (threadIdx.x == 0) loss[blockIdx.x] = __logf(sum) + most - row[target];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = __expf(row[i] - most) / sum - (i == target ? 1.f : 0.f);
}

// Gradient of a norm's gain: sums down the columns, a block of 32 x 8 threads 32 columns.
extern "C" __global__ void column_sums(const float* __restrict__ dy, const float* __restrict__ x, float* __restrict__ out, int rows, int n) {
  __shared__ float parts[8][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int r = threadIdx.y; r < rows; r += 8) sum += dy[static_cast<size_t>(r) * n + column] * x[static_cast<size_t>(r) * n + column];
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0) {
    for (int j = 1; j < 8; ++j) sum += parts[j][threadIdx.x];
    out[column] = sum;
  }
}

// A recurrence along time, a thread a channel.
extern "C" __global__ void recurrence(const float* __restrict__ decay, const float* __restrict__ in, float* __restrict__ out, int time,
                                      int channels) {
  const int channel = blockIdx.x * blockDim.x + threadIdx.x;
  float state = 0;
  for (int t = 0; t < time; ++t) {
    const size_t at = (static_cast<size_t>(blockIdx.y) * time + t) * channels + channel;
    state = decay[at] * state + in[at];
    out[at] = state;
  }
}

// Softmax over ragged rows, a warp a row; row r has the elements from offsets[r] on, `lengths` of them.
extern "C" __global__ void ragged_softmax(const int* __restrict__ lengths, const float* __restrict__ in, float* __restrict__ out, int rows,
                                          int pitch) {
  const int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const int length = lengths[row] + 1;
  const float* from = in + static_cast<size_t>(row) * pitch;
  float most = -INFINITY, sum = 0;
  for (int i = lane; i < length; i += 32) most = fmaxf(most, from[i]);
  most = warp_most(most);
  for (int i = lane; i < length; i += 32) sum += __expf(from[i] - most);
  sum = 1.f / warp_sum(sum);
  for (int i = lane; i < length; i += 32) out[static_cast<size_t>(row) * pitch + i] = __expf(from[i] - most) * sum;
}

// Depthwise 3 x 3 over [channels][h][w] in fp16, a thread a pixel.
extern "C" __global__ void depthwise(const __half* __restrict__ in, const __half* __restrict__ weights, __half* __restrict__ out, int h, int w) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, c = blockIdx.z;
  if (x >= w || y >= h) return;
  float sum = 0;
#pragma unroll
  for (int j = -1; j <= 1; ++j)
#pragma unroll
    for (int i = -1; i <= 1; ++i)
      if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w)
        sum += __half2float(in[(static_cast<size_t>(c) * h + y + j) * w + x + i]) * __half2float(weights[c * 9 + (j + 1) * 3 + i + 1]);
  out[(static_cast<size_t>(c) * h + y) * w + x] = __float2half(sum);
}

// [channels][pixels] to [pixels][channels] in bytes pairs, tiles of 64 x 32.
extern "C" __global__ void channels_last(const __half* __restrict__ in, __half* __restrict__ out, int channels, int pixels) {
  __shared__ __half tile[64][34];
  const size_t image = static_cast<size_t>(blockIdx.z) * channels * pixels;
  const int p = blockIdx.x * 32, c = blockIdx.y * 64;
  for (int j = threadIdx.y; j < 64; j += 8) tile[j][threadIdx.x] = in[image + static_cast<size_t>(c + j) * pixels + p + threadIdx.x];
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8)
    for (int i = threadIdx.x; i < 64; i += 32) out[image + static_cast<size_t>(p + j) * channels + c + i] = tile[i][j];
}
