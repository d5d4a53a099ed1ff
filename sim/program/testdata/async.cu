// nvcc -arch=sm_90a -cubin -o async_sm90a.cubin async.cu: barriers in shared memory, tensor copies, warp group products.
#include <cstdint>

extern "C" __global__ void __launch_bounds__(128) async_product(const __grid_constant__ int4 map[8], float* out, const char* bulk,
                                                               int steps) {
  __shared__ alignas(1024) char tile[16384];
  __shared__ alignas(8) std::uint64_t barrier;
  const auto tile_address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address));
  asm volatile("fence.proxy.async;");
  __syncthreads();
  float d[8] = {};
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 8192;" ::"r"(barrier_address));
      asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                       tile_address),
                   "l"(map), "r"(i), "r"(0), "r"(barrier_address)
                   : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(tile_address),
                   "l"(bulk), "r"(barrier_address)
                   : "memory");
    }
    asm volatile("{ .reg .pred p; w: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra w; }" ::"r"(barrier_address),
                 "r"(i & 1));
    const std::uint64_t a = (tile_address >> 4) | (1ull << 62), b = a + 64;
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 1;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
        : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
  }
  for (int i = 0; i < 8; ++i) out[threadIdx.x * 8 + i] = d[i];
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_sum(float* out) {
  __shared__ float part;
  part = out[threadIdx.x];
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;");
  unsigned remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(remote) : "r"(static_cast<unsigned>(__cvta_generic_to_shared(&part))));
  float value;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(remote));
  out[threadIdx.x + 32] = value;
}
