// What products of a warpgroup leave to the warps of others: a group multiplies all the time, the others do arithmetic.
// Quantities: kernels/micro/quantities.yaml.
//
// Isolates  dispatch beside wgmma: how much later arithmetic of one, two and three registers goes while the tensor pipes read
//           and write their sums, and whether it holds up the products. Factors out of shared memory (ss), or A in registers (rs).
// Supports  async.slab_port_cycles, async.factor_fetch_cycles.
// Launch    132 blocks (one an SM) of 256 or 384 threads: the first 128 multiply, the others do arithmetic.
// Args      out[threads], iterations of 512 cycles of products (none: 0), trips of 64 operations.

#include "../common/hopper.cuh"
#include "micro.cuh"

#define PRODUCT_64(type, sums, a, b)                                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " {"                                             \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                     \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, 0, 1;\n" \
               : SUMS_32(sums, 0)                                                                                           \
               : "l"(a), "l"(b))

// Products of so many columns, whose factors' words are all zero.
template <int kColumns, bool kOfRegisters>
struct Products {
  float sums[kColumns / 2] = {};
  uint32_t held[4];
  uint64_t a, b;
  __device__ __forceinline__ explicit Products(char* shared, int zero)
      : held{unsigned(zero), unsigned(zero), unsigned(zero), unsigned(zero)},
        a(factor_along_k(shared)), b(factor_across_k(shared + 16384, 8192)) {}
  __device__ __forceinline__ void multiply_512_cycles() {
#pragma unroll
    for (int i = 0; i < 1024 / kColumns; ++i) {
      const uint64_t from = further(b, i % 4 * 2048);
      if constexpr (kOfRegisters) multiply<__nv_bfloat16>(sums, held, from, 1);
      else if constexpr (kColumns == 64) PRODUCT_64("bf16", sums, further(a, i % 4 * 32), from);
      else multiply<__nv_bfloat16>(sums, further(a, i % 4 * 32), from, 1);
    }
  }
};

struct Room {
  float x[16], y;
  unsigned n[16], m;
};

template <int kColumns, bool kOfRegisters, class Trip>
__device__ __forceinline__ void beside(float* out, int iterations, int trips, Trip trip) {
  extern __shared__ __align__(1024) char shared[];
  for (int i = threadIdx.x; i < 72 * 256; i += blockDim.x) reinterpret_cast<uint32_t*>(shared)[i] = 0;
  publish_to_async();
  __syncthreads();
  float all = 0;
  if (__shfl_sync(~0u, threadIdx.x / 128, 0) == 0) {
    Products<kColumns, kOfRegisters> products(shared, iterations & 1 << 20);
    COUNTED_LOOP(iterations) {
      begin_products();
      products.multiply_512_cycles();
      commit_products();
      wait_for_products();
    }
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) all += products.sums[i];
  } else {
    Room r;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      r.x[i] = trips * i;
      r.n[i] = trips & (1 << (8 + i));
    }
    r.y = threadIdx.x;
    r.m = threadIdx.x & 1;
    COUNTED_LOOP(trips) {
#pragma unroll
      for (int k = 0; k < 64; ++k) trip(r, k);
    }
#pragma unroll
    for (int i = 0; i < 16; ++i) all += r.x[i] + r.n[i];
  }
  out[thread_of_grid()] = all;
}

#define ONE(NAME, PRODUCTS, COLUMNS, OF_REGISTERS, STEP)                                                           \
  extern "C" __global__ void __launch_bounds__(384, 1) NAME##_##PRODUCTS(float* out, int iterations, int trips) {   \
    beside<COLUMNS, OF_REGISTERS>(out, iterations, trips, [](Room& r, int k) {                                      \
      [[maybe_unused]] const int i = k % 16;                                                                        \
      STEP;                                                                                                         \
    });                                                                                                             \
  }
#define BESIDE(NAME, STEP)             \
  ONE(NAME, ss_64, 64, false, STEP)    \
  ONE(NAME, ss_128, 128, false, STEP)  \
  ONE(NAME, ss_256, 256, false, STEP)  \
  ONE(NAME, rs_64, 64, true, STEP)     \
  ONE(NAME, rs_128, 128, true, STEP)

BESIDE(ffma, asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(r.x[i]) : "f"(r.y)))
BESIDE(ffma_3, asm volatile("fma.rn.f32 %0, %1, %2, %0;" : "+f"(r.x[i]) : "f"(r.x[(i + 3) % 16]), "f"(r.x[(i + 6) % 16])))
BESIDE(fadd, asm volatile("add.f32 %0, %0, %1;" : "+f"(r.x[i]) : "f"(r.x[(i + 3) % 16])))
BESIDE(fmul_1, asm volatile("mul.f32 %0, %0, 0f3F800001;" : "+f"(r.x[i])))
BESIDE(fmnmx, asm volatile("max.f32 %0, %0, %1;" : "+f"(r.x[i]) : "f"(r.x[(i + 3) % 16])))
BESIDE(lop3, asm volatile("lop3.b32 %0, %0, %1, %1, 0x78;" : "+r"(r.n[i]) : "r"(r.m)))
BESIDE(imad, asm volatile("mad.lo.u32 %0, %0, %1, %1;" : "+r"(r.n[i]) : "r"(r.m)))
BESIDE(ex2, asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(r.x[i])))
BESIDE(pack, asm volatile("{ .reg .b32 p; cvt.rn.f16x2.f32 p, %0, %1; mov.b32 %0, p; }" : "+f"(r.x[i]) : "f"(r.x[(i + 3) % 16])))
// A softmax's weights: the exponent's argument, the exponential, the sum, in turn.
BESIDE(weights, if (k % 3 == 0) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(r.x[k / 3 % 8]) : "f"(r.y), "f"(r.x[15]));
                else if (k % 3 == 1) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(r.x[k / 3 % 8]));
                else asm volatile("add.f32 %0, %0, %1;" : "+f"(r.x[8 + k / 3 % 4]) : "f"(r.x[(k / 3 + 4) % 8])))
