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
  for (int k = 0; k < each; ++k)
    s += in[i * each + k];  // fault: piece_a_thread
  out[i] = s;
}
extern "C" __global__ void piece_a_step(const float* in, float* out, int each) {
  AT;
  int all = gridDim.x * blockDim.x;
  float s = 0;
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
  int v = in[threadIdx.x];
  for (int k = 0; k < turns; ++k)
    atomicAdd(&bins[(threadIdx.x + (v & 1)) & mask], k);  // fault: shared_counters
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

// More bytes than the values need.
extern "C" __global__ void wide_values(const int4* in, int* out) {
  AT;
  int all = gridDim.x * blockDim.x;
  int4 a = in[i], b = in[i + all], c = in[i + 2 * all], d = in[i + 3 * all];  // fault: wide_values
  out[i] = a.x + a.y + a.z + a.w + b.x + b.y + b.z + b.w + c.x + c.y + c.z + c.w + d.x + d.y + d.z + d.w;
}
extern "C" __global__ void narrow_values(const int4* in, int* out) {
  AT;
  int4 a = in[i];
  int s = 0;
  s = __dp4a(a.x, 0x01010101, s);
  s = __dp4a(a.y, 0x01010101, s);
  s = __dp4a(a.z, 0x01010101, s);
  out[i] = __dp4a(a.w, 0x01010101, s);
}

// A word of a small table read for each addition, or kept for eight of them.
extern "C" __global__ void table_words(const float* in, float* out, int turns) {
  AT;
  float s[8] = {};
  for (int t = 0; t < turns; ++t) {
    const float* p = in + (t & 7) * 256 + (threadIdx.x & 31);
#pragma unroll
    for (int k = 0; k < 8; ++k)
      s[k] += p[k * 32];  // fault: table_words
  }
  out[i] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
extern "C" __global__ void table_kept(const float* in, float* out, int turns) {
  AT;
  float s[8] = {};
  for (int t = 0; t < turns; ++t) {
    float v = in[(t & 7) * 256 + (threadIdx.x & 31)];
#pragma unroll
    for (int k = 0; k < 8; ++k) s[k] += v * k;
  }
  out[i] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}

// The same with a table in shared memory.
extern "C" __global__ void shared_words(float* out, int turns) {
  __shared__ float table[1024];
  for (int k = threadIdx.x; k < 1024; k += 256) table[k] = k;
  __syncthreads();
  float s[8] = {};
  for (int t = 0; t < turns; ++t) {
    const float* p = table + (t & 3) * 128 + threadIdx.x;
#pragma unroll
    for (int k = 0; k < 8; ++k)
      s[k] += p[k * 32];  // fault: shared_words
  }
  out[blockIdx.x * 256 + threadIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
extern "C" __global__ void shared_kept(float* out, int turns) {
  __shared__ float table[1024];
  for (int k = threadIdx.x; k < 1024; k += 256) table[k] = k;
  __syncthreads();
  float s[8] = {};
  for (int t = 0; t < turns; ++t) {
    float v = table[(t & 3) * 128 + threadIdx.x];
#pragma unroll
    for (int k = 0; k < 8; ++k) s[k] += v * k;
  }
  out[blockIdx.x * 256 + threadIdx.x] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];
}
