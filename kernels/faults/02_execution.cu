// Faults of execution: each kernel beside its mended twin.
//
// Shows   one known fault each (manifest.yaml); comments `fault:` mark the line that has it.
// Bound   what the manifest says; the twin computes as much without the fault.
// Launch  as in traces/fault_launches.py.

#define AT int i = blockIdx.x * blockDim.x + threadIdx.x

__device__ __forceinline__ float work(float x, float f, int turns) {
  float y = x + 1.f, z = x + 2.f, w = x + 3.f;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) {
    x = x * f + 1.f;
    y = y * f + 1.f;
    z = z * f + 1.f;
    w = w * f + 1.f;
  }
  return x + y + z + w;
}

// Two ways: lanes in turn, or warps in turn (shift 5).
extern "C" __global__ void two_ways(float* out, int shift, int turns) {
  AT;
  float v = i;
  if ((threadIdx.x >> shift) & 1)  // fault: two_ways
    v = work(v, 0.5f, turns);
  else
    v = work(v, -0.25f, turns) * 2.f;
  out[i] = v;
}

// Eight ways.
extern "C" __global__ void eight_ways(float* out, int shift, int turns) {
  AT;
  float v = i;
  switch ((threadIdx.x >> shift) & 7) {  // fault: eight_ways
    case 0: v = work(v, 0.5f, turns); break;
    case 1: v = work(v, 0.6f, turns) + 1.f; break;
    case 2: v = work(v, 0.7f, turns) + 2.f; break;
    case 3: v = work(v, 0.8f, turns) + 3.f; break;
    case 4: v = work(v, 0.9f, turns) + 4.f; break;
    case 5: v = work(v, 0.1f, turns) + 5.f; break;
    case 6: v = work(v, 0.2f, turns) + 6.f; break;
    default: v = work(v, 0.3f, turns) + 7.f; break;
  }
  out[i] = v;
}

// So many turns as a lane has neighbours before it, or as lanes have on average.
extern "C" __global__ void uneven_turns(float* out, int turns) {
  AT;
  int lane = threadIdx.x & 31, mine = lane * lane * turns >> 8;
  float x = i, y = x + 1.f;
#pragma unroll 1
  for (int k = 0; k < mine; ++k) {  // fault: uneven_turns
    x = x * 0.5f + 1.f;
    y = y * 0.5f + x;
  }
  out[i] = x + y;
}
extern "C" __global__ void even_turns(float* out, int turns) {
  AT;
  int mine = 31 * 63 * turns / 6 >> 8;
  float x = i, y = x + 1.f;
#pragma unroll 1
  for (int k = 0; k < mine; ++k) {
    x = x * 0.5f + 1.f;
    y = y * 0.5f + x;
  }
  out[i] = x + y;
}

// One lane of each warp does the work of all.
extern "C" __global__ void one_lane(float* out, int turns) {
  AT;
  if ((threadIdx.x & 31) == 0)  // fault: one_lane
    for (int l = 0; l < 32; ++l) out[i + l] = work(i + l, 0.5f, turns);
}
extern "C" __global__ void all_lanes(float* out, int turns) {
  AT;
  out[i] = work(i, 0.5f, turns);
}

// A barrier, or a fence, in every turn.
extern "C" __global__ void barrier_a_turn(float* out, int turns) {
  AT;
  float v = i;
#pragma unroll 1
  for (int k = 0; k < turns; ++k) {
    v = v * 0.5f + 1.f;
    __syncthreads();  // fault: barrier_a_turn
  }
  out[i] = v;
}
extern "C" __global__ void fence_a_turn(float* out, int turns) {
  AT;
  float v = i;
#pragma unroll 1
  for (int k = 0; k < turns; ++k) {
    v = v * 0.5f + 1.f;
    __threadfence();  // fault: fence_a_turn
  }
  out[i] = v;
}
extern "C" __global__ void no_barrier(float* out, int turns) {
  AT;
  float v = i;
#pragma unroll 1
  for (int k = 0; k < turns; ++k) v = v * 0.5f + 1.f;
  out[i] = v;
}

// 40 KB of code, or a loop of 4 KB.
extern "C" __global__ void long_code(float* out, float f, int turns) {
  AT;
  float x = i, y = x + 1.f, z = x + 2.f, w = x + 3.f;
#pragma unroll 1
  for (int t = 0; t < turns; ++t) {
#pragma unroll
    for (int k = 0; k < 640; ++k) {
      x = x * f + (float)k;  // fault: long_code
      y = y * f - (float)k;  // fault: long_code
      z = z * f + (float)k;  // fault: long_code
      w = w * f - (float)k;  // fault: long_code
    }
  }
  out[i] = x + y + z + w;
}
extern "C" __global__ void short_code(float* out, float f, int turns) {
  AT;
  float x = i, y = x + 1.f, z = x + 2.f, w = x + 3.f;
#pragma unroll 64
  for (int t = 0; t < turns * 640; ++t) {
    x = x * f + 1.f;
    y = y * f - 1.f;
    z = z * f + 1.f;
    w = w * f - 1.f;
  }
  out[i] = x + y + z + w;
}

// For launches of many shapes: so much work a thread.
extern "C" __global__ void plain_work(float* out, int turns) {
  AT;
  out[i] = work(i, 0.5f, turns);
}

// The first block has most of the work, or all have the same.
extern "C" __global__ void long_block(float* out, int first, int others) {
  AT;
  out[i] = work(i, 0.5f, blockIdx.x == 0 ? first : others);
}

// One chain of dependent multiply-adds, or eight.
extern "C" __global__ void one_chain(float* out, float f, int turns) {
  AT;
  float x = i;
#pragma unroll 32
  for (int k = 0; k < turns * 8; ++k)
    x = x * f + 1.f;  // fault: one_chain
  out[i] = x;
}
extern "C" __global__ void eight_chains(float* out, float f, int turns) {
  AT;
  float x[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) x[c] = i + c;
#pragma unroll 4
  for (int k = 0; k < turns; ++k)
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = x[c] * f + 1.f;
  float s = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) s += x[c];
  out[i] = s;
}

// Each load waits for the one before it, or none does. The table holds zeros.
extern "C" __global__ void chase(const int* table, int* out, int turns) {
  AT;
  int at = threadIdx.x;
#pragma unroll 1
  for (int k = 0; k < turns; ++k)
    at = table[at + ((k * 256 + threadIdx.x) & 8191)];  // fault: chase
  out[i] = at;
}
extern "C" __global__ void no_chase(const int* table, int* out, int turns) {
  AT;
  int s = 0;
#pragma unroll 16
  for (int k = 0; k < turns; ++k) s += table[(k * 256 + threadIdx.x) & 8191];
  out[i] = s;
}

// One load in flight a thread and few threads, or four and many.
extern "C" __global__ void one_load(const float* in, float* out, int turns) {
  AT;
  int all = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 1
  for (int k = 0; k < turns; ++k)
    s = s * 0.5f + in[k * all + i];  // fault: one_load
  out[i] = s;
}
extern "C" __global__ void many_loads(const float* in, float* out, int turns) {
  AT;
  int all = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) s = s * 0.5f + in[k * all + i];
  out[i] = s;
}

// The same in shared memory. The table holds zeros.
extern "C" __global__ void shared_chase(int* out, int turns) {
  __shared__ int s[512];
  s[threadIdx.x] = s[threadIdx.x + 256] = 0;
  __syncthreads();
  int at = threadIdx.x;
#pragma unroll 4
  for (int k = 0; k < turns; ++k)
    at = s[at + (threadIdx.x & 31)];  // fault: shared_chase
  out[blockIdx.x * 256 + threadIdx.x] = at;
}
extern "C" __global__ void shared_no_chase(int* out, int turns) {
  __shared__ int s[512];
  s[threadIdx.x] = s[threadIdx.x + 256] = 0;
  __syncthreads();
  int sum = 0;
#pragma unroll 16
  for (int k = 0; k < turns; ++k) sum += s[(threadIdx.x & 31) + (k & 127)];
  out[blockIdx.x * 256 + threadIdx.x] = sum;
}

// Doubles where floats would do.
extern "C" __global__ void doubles(const float* in, float* out, float f, float g, int turns) {
  AT;
  double a = f, b = g;
  double x = in[i], y = x + 1.0;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) {
    x = x * a + b;  // fault: doubles
    y = y * a + b;
  }
  out[i] = x + y;
}
extern "C" __global__ void floats(const float* in, float* out, float f, float g, int turns) {
  AT;
  float x = in[i], y = x + 1.f;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) {
    x = x * f + g;
    y = y * f + g;
  }
  out[i] = x + y;
}

// Special functions where a polynomial would do.
extern "C" __global__ void special(const float* in, float* out, int turns) {
  AT;
  float x = in[i], s = 0;
#pragma unroll 8
  for (int k = 0; k < turns; ++k)
    s += __sinf(x + k);  // fault: special
  out[i] = s;
}
extern "C" __global__ void polynomial(const float* in, float* out, int turns) {
  AT;
  float x = in[i], s = 0;
#pragma unroll 8
  for (int k = 0; k < turns; ++k) {
    float t = x + k;
    s += t * (1.f - t);
  }
  out[i] = s;
}

// Latency that residents hide; launched so that shared memory or small blocks leave few of them.
extern "C" __global__ void hide(const float* in, float* out, int turns) {
  AT;
  float s = in[i & 0xffff];
#pragma unroll 1
  for (int k = 0; k < turns; ++k) s = in[(i + k * 4096 + (s > 1e30f)) & 0xffff];
  out[i] = s;
}
