// Faults of memory accesses: each kernel beside its mended twin.
//
// Shows   one known fault each (manifest.yaml); comments `fault:` mark the line that has it.
// Bound   what the manifest says; the twin computes as much without the fault.
// Launch  as in traces/fault_launches.py.

#define AT int i = blockIdx.x * blockDim.x + threadIdx.x

// A warp reads down a column.
extern "C" __global__ void column_load(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  out[y * n + x] = in[x * n + y];  // fault: column_load
}
extern "C" __global__ void row_copy(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  out[y * n + x] = in[y * n + x];
}

// A warp writes down a column: a transposition without a tile.
extern "C" __global__ void column_store(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float v = in[y * n + x];
  out[x * n + y] = v;  // fault: column_store
}

// Structures of four fields, read field by field.
extern "C" __global__ void fields_apart(const float* in, float* out, int n) {
  AT;
  float s = 0;
  for (int f = 0; f < 16; ++f)
    s += in[i * 16 + f];  // fault: fields_apart
  out[i] = s;
}
extern "C" __global__ void fields_together(const float* in, float* out, int n) {
  AT;
  float s = 0;
  for (int f = 0; f < 16; ++f) s += in[f * n + i];
  out[i] = s;
}

// One field of structures of 32 bytes; with stride 1, of packed data.
extern "C" __global__ void one_field(const float* in, float* out, int stride) {
  AT;
  float a = in[i * stride];  // fault: one_field
  out[i] = a * 2.f;
}

// Every other element of both arrays.
extern "C" __global__ void strided(const float* in, float* out, int stride) {
  AT;
  float v = in[i * stride];  // fault: strided_load
  out[i * stride] = v * 3.f + 1.f;
}

// A piece of the array for each thread to fill, instead of for each step.
extern "C" __global__ void store_pieces(float* out, int each) {
  AT;
  for (int k = 0; k < each; ++k)
    out[i * each + k] = k;  // fault: store_pieces
}
extern "C" __global__ void store_steps(float* out, int each) {
  AT;
  int all = gridDim.x * blockDim.x;
  for (int k = 0; k < each; ++k) out[k * all + i] = k;
}

// Reads and writes by an index.
extern "C" __global__ void gather(const int* index, const float* in, float* out, int mask) {
  AT;
  out[i] = in[index[i] & mask];  // fault: gather
}
extern "C" __global__ void scatter(const int* index, const float* in, float* out, int mask) {
  AT;
  float v = in[i];
  int at = index[i] & mask;
  out[at] = v;  // fault: scatter
}

// A piece of the array for each thread, instead of for each step.
extern "C" __global__ void piece_a_thread(const float* in, float* out, int each) {
  AT;
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < each; ++k)
    s += in[i * each + k];  // fault: piece_a_thread
  out[i] = s;
}
extern "C" __global__ void piece_a_step(const float* in, float* out, int each) {
  AT;
  int all = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < each; ++k) s += in[k * all + i];
  out[i] = s;
}

// A row of a matrix for each thread.
extern "C" __global__ void row_a_thread(const float* a, const float* x, float* y, int n) {
  AT;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < n; ++k)
    s += a[i * n + k] * x[k];  // fault: row_a_thread
  y[i] = s;
}
extern "C" __global__ void row_transposed(const float* a, const float* x, float* y, int n) {
  AT;
  int rows = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < n; ++k) s += a[k * rows + i] * x[k];
  y[i] = s;
}

// A tile in shared memory, read down its columns over and over.
template <int Pitch>
__device__ void columns_of_tile(const float* in, float* out, int turns) {
  __shared__ float tile[32 * Pitch];
  int x = threadIdx.x & 31, y = threadIdx.x >> 5;
  for (int r = y; r < 32; r += 8) tile[r * Pitch + x] = in[r * 32 + x];
  __syncthreads();
  float s = 0;
#pragma unroll 8
  for (int k = 0; k < turns; ++k)
    s += tile[x * Pitch + (y + k & 31)];  // fault: tile_columns
  out[blockIdx.x * 256 + threadIdx.x] = s;
}
extern "C" __global__ void tile_columns(const float* in, float* out, int turns) { columns_of_tile<32>(in, out, turns); }
extern "C" __global__ void tile_padded(const float* in, float* out, int turns) { columns_of_tile<33>(in, out, turns); }

// Words of shared memory `stride` apart, over and over.
extern "C" __global__ void shared_stride(float* out, int stride, int turns) {
  __shared__ float s[2048];
  for (int k = threadIdx.x; k < 2048; k += 256) s[k] = k;
  __syncthreads();
  float sum = 0;
#pragma unroll 8
  for (int k = 0; k < turns; ++k)
    sum += s[threadIdx.x * stride + k * 32 & 2047];  // fault: shared_stride
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

// Four counters of a block, or one for each thread.
extern "C" __global__ void shared_counters(const int* in, int* out, int mask, int turns) {
  __shared__ int bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  int v = in[0] & 1;
  for (int k = 0; k < turns; ++k)
    atomicAdd(&bins[(threadIdx.x + v) & mask], k);  // fault: shared_counters
  __syncthreads();
  out[blockIdx.x * 256 + threadIdx.x] = bins[threadIdx.x];
}

// All threads add to one word.
extern "C" __global__ void one_counter(const float* in, float* out, int n) {
  AT;
  float v = in[i];
  atomicAdd(out, v * v);  // fault: one_counter
}
extern "C" __global__ void counter_a_block(const float* in, float* out, int n) {
  AT;
  float v = in[i];
  v *= v;
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  if ((threadIdx.x & 31) == 0) out[i >> 5] = v;
}

// All threads count into a few words.
extern "C" __global__ void few_bins(const int* in, int* out, int n) {
  AT;
  int v = in[i];
  atomicMax(&out[v & 15], v);  // fault: few_bins
}
extern "C" __global__ void own_bins(const int* in, int* out, int n) {
  AT;
  int v = in[i];
  out[i] = max(v, v & 15);
}

// An array that is indexed by data.
extern "C" __global__ void indexed_array(const int* in, int* out, int turns) {
  AT;
  int a[64];
  int v = in[i];
#pragma unroll
  for (int k = 0; k < 64; ++k) a[k] = v * k;
  int s = 0;
  for (int k = 0; k < turns; ++k)
    s += a[(v + k * 5) & 63];  // fault: indexed_array
  out[i] = s;
}
extern "C" __global__ void computed_array(const int* in, int* out, int turns) {
  AT;
  int v = in[i];
  int s = 0;
  for (int k = 0; k < turns; ++k) s += v * ((v + k * 5) & 63);
  out[i] = s;
}

// More live values than registers.
template <int Values>
__device__ void live_values(const float* in, float* out, int turns) {
  AT;
  float a[Values];
#pragma unroll
  for (int k = 0; k < Values; ++k) a[k] = in[(i + k * 256) & 0xfffff];
  for (int t = 0; t < turns; ++t) {
#pragma unroll
    for (int k = 0; k < Values; ++k) a[k] = a[k] * a[(k + 7) % Values] + 1.f;  // fault: spilled
  }
  float s = 0;
#pragma unroll
  for (int k = 0; k < Values; ++k) s += a[k];
  out[i] = s;
}
extern "C" __global__ void __launch_bounds__(256, 6) spilled(const float* in, float* out, int turns) {
  live_values<64>(in, out, turns);
}
extern "C" __global__ void __launch_bounds__(256, 2) kept(const float* in, float* out, int turns) {
  live_values<64>(in, out, turns);
}

// A table for each block, which memory has to bring, or one for all blocks that are equal modulo `tables`, from L2.
extern "C" __global__ void own_tables(const int4* in, int* out, int tables) {
  AT;
  const int4* table = in + (blockIdx.x & tables) * 4096 + threadIdx.x;
  int s = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) {
    int4 a = table[k * 256];  // fault: own_tables
    s += a.x + a.y + a.z + a.w;
  }
  out[i] = s;
}

// 16 bytes of a small table read for each addition, or kept for four of them.
__device__ __forceinline__ void add(float4& s, float4 v, float f) {
  s.x += v.x * f;
  s.y += v.y * f;
  s.z += v.z * f;
  s.w += v.w * f;
}
__device__ __forceinline__ float sum(const float4* s) {
  float all = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) all += s[k].x + s[k].y + s[k].z + s[k].w;
  return all;
}
extern "C" __global__ void table_words(const float4* in, float* out, int turns) {
  AT;
  float4 s[4] = {};
  for (int t = 0; t < turns; ++t) {
    const float4* p = in + (t & 7) * 128 + (threadIdx.x & 31);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      add(s[k], p[k * 32], k + 1);  // fault: table_words
  }
  out[i] = sum(s);
}
extern "C" __global__ void table_kept(const float4* in, float* out, int turns) {
  AT;
  float4 s[4] = {};
  for (int t = 0; t < turns; ++t) {
    float4 v = in[(t & 7) * 128 + (threadIdx.x & 31)];
#pragma unroll
    for (int k = 0; k < 4; ++k) add(s[k], v, k + 1);
  }
  out[i] = sum(s);
}

// The same with a table in shared memory.
extern "C" __global__ void shared_words(float* out, int stride, int turns) {
  __shared__ float4 table[512];
  for (int k = threadIdx.x; k < 512; k += 256) table[k] = make_float4(k, k, k, k);
  __syncthreads();
  float4 s[4] = {};
#pragma unroll 1
  for (int t = 0; t < turns; ++t) {
    const float4* p = table + (t * stride & 255) + (threadIdx.x & 127);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      add(s[k], p[k * 32], k + 1);  // fault: shared_words
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum(s);
}
extern "C" __global__ void shared_kept(float* out, int stride, int turns) {
  __shared__ float4 table[512];
  for (int k = threadIdx.x; k < 512; k += 256) table[k] = make_float4(k, k, k, k);
  __syncthreads();
  float4 s[4] = {};
#pragma unroll 1
  for (int t = 0; t < turns; ++t) {
    float4 v = table[(t * stride & 255) + (threadIdx.x & 127)];
#pragma unroll
    for (int k = 0; k < 4; ++k) add(s[k], v, k + 1);
  }
  out[blockIdx.x * 256 + threadIdx.x] = sum(s);
}
