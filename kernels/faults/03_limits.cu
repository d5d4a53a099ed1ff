// Limits that are no fault of a line's: each kernel beside one that does not meet the limit.
//
// Shows   the rules for what 01_memory.cu and 02_execution.cu have no fault of (sim/cli/verdicts_test.py).
// Bound   as the name says.
// Launch  as in traces/fault_launches.py.

#include <cuda_fp16.h>

#define AT int i = blockIdx.x * blockDim.x + threadIdx.x

// Reads all the data over and over: more of them than L2 holds, or a part that fits.
extern "C" __global__ void again(const float4* in, float* out, int mask, int turns) {
  AT;
  int all = gridDim.x * blockDim.x;
  float s = 0;
#pragma unroll 4
  for (int k = 0; k < turns; ++k) {
    float4 v = in[(i + k * all) & mask];
    s += v.x + v.y + v.z + v.w;
  }
  out[i] = s;
}

// A chain of loads beside many live values, or few.
template <int Values>
__device__ void chain_beside(const float* in, float* out, int turns) {
  AT;
  int a[Values];
#pragma unroll
  for (int k = 0; k < Values; ++k) a[k] = i + k;
  int at = i & 0xffff;
#pragma unroll 1
  for (int k = 0; k < turns; ++k) {
    at = (i + k * 32 + (in[at] > 1e30f)) & 0xffff;
#pragma unroll
    for (int v = 0; v < Values; ++v) asm volatile("" : "+r"(a[v]));  // stays in a register
  }
#pragma unroll
  for (int k = 0; k < Values; ++k) at ^= a[k];
  out[i] = at;
}
extern "C" __global__ void many_registers(const float* in, float* out, int turns) { chain_beside<96>(in, out, turns); }
extern "C" __global__ void few_registers(const float* in, float* out, int turns) { chain_beside<8>(in, out, turns); }

// Eight independent chains of one kind of instruction.
template <typename Step>
__device__ void chains(unsigned* out, int turns, Step step) {
  AT;
  unsigned x[8];
#pragma unroll
  for (int c = 0; c < 8; ++c) x[c] = i + c;
#pragma unroll 8
  for (int k = 0; k < turns; ++k)
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = step(x[c]);
  unsigned s = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) s ^= x[c];
  out[i] = s;
}
extern "C" __global__ void logic(unsigned* out, unsigned a, unsigned b, int turns) {
  chains(out, turns, [=](unsigned x) { return (x ^ a) & (x | b); });
}
extern "C" __global__ void integer_products(unsigned* out, unsigned a, unsigned b, int turns) {
  chains(out, turns, [=](unsigned x) { return x * a + b; });
}
extern "C" __global__ void halves(unsigned* out, unsigned a, unsigned b, int turns) {
  __half2 f = *reinterpret_cast<__half2*>(&a), g = *reinterpret_cast<__half2*>(&b);
  chains(out, turns, [=](unsigned x) {  // comparisons: of sums and products every other one takes the tensor pipe
    __half2 y = __hgt2(__hlt2(*reinterpret_cast<__half2*>(&x), f), g);
    return *reinterpret_cast<unsigned*>(&y);
  });
}
extern "C" __global__ void floats_of_words(unsigned* out, unsigned a, unsigned b, int turns) {
  float f = __uint_as_float(a), g = __uint_as_float(b);
  chains(out, turns, [=](unsigned x) { return __float_as_uint(__uint_as_float(x) * f + g); });
}

// Products of 16x8 by 16 matrices, four at a time.
extern "C" __global__ void products(float* out, unsigned a, unsigned b, int turns) {
  AT;
  float c[4][4] = {};
#pragma unroll 4
  for (int k = 0; k < turns; ++k)
#pragma unroll
    for (int p = 0; p < 4; ++p)
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                   : "+f"(c[p][0]), "+f"(c[p][1]), "+f"(c[p][2]), "+f"(c[p][3])
                   : "r"(a), "r"(b));
  float s = 0;
#pragma unroll
  for (int p = 0; p < 4; ++p) s += c[p][0] + c[p][1] + c[p][2] + c[p][3];
  out[i] = s;
}

// Constants whose place is known at run time only, or the same sum without them.
__constant__ float constants[1024];
extern "C" __global__ void constants_by_index(float* out, int stride, int turns) {
  AT;
  float s = i;
#pragma unroll 8
  for (int k = 0; k < turns; ++k) s += constants[(k * stride + (threadIdx.x >> 5)) & 1023];
  out[i] = s;
}
