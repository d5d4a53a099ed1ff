// nvcc -arch=sm_90a -cubin -o launches_sm90a.cubin launches.cu: tensor maps in global memory, indices of clusters, and clusters
// that a kernel declares.
#include <cstdint>

// Each block copies a box of 32 words in 4 rows by the map of its own, 128 bytes each.
extern "C" __global__ void __launch_bounds__(32) copy_by_map(const char* maps, unsigned* out, int row) {
  __shared__ alignas(128) unsigned tile[128];
  __shared__ alignas(8) std::uint64_t barrier;
  const auto tile_address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  const auto barrier_address = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_address));
    asm volatile("fence.proxy.async;");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;" ::"r"(barrier_address));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                     tile_address),
                 "l"(maps + blockIdx.x * 128), "r"(0), "r"(row), "r"(barrier_address)
                 : "memory");
  }
  __syncwarp();
  asm volatile("{ .reg .pred p; w: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra w; }" ::"r"(barrier_address), "r"(0)
               : "memory");
  for (int i = threadIdx.x; i < 128; i += 32) out[blockIdx.x * 128 + i] = tile[i];
}

// A map that the kernel itself puts there.
extern "C" __global__ void __launch_bounds__(32) copy_of_map(const int4* from, int4* to) {
  if (threadIdx.x < 8) to[threadIdx.x] = from[threadIdx.x];
}

#define SPECIAL(name, text)                        \
  __device__ __forceinline__ unsigned name() {     \
    unsigned r;                                    \
    asm volatile("mov.u32 %0, %%" text ";" : "=r"(r)); \
    return r;                                      \
  }
SPECIAL(cluster_x, "clusterid.x")
SPECIAL(cluster_y, "clusterid.y")
SPECIAL(inside_x, "cluster_ctaid.x")
SPECIAL(inside_y, "cluster_ctaid.y")
SPECIAL(extent_x, "cluster_nctaid.x")
SPECIAL(extent_y, "cluster_nctaid.y")

__device__ __forceinline__ void write_block(unsigned* out) {
  const unsigned x = cluster_x() * extent_x() + inside_x(), y = cluster_y() * extent_y() + inside_y();
  out[(y * gridDim.x + x) * blockDim.x + threadIdx.x] = inside_x() + inside_y() * 16 + cluster_x() * 256 + cluster_y() * 65536;
}

extern "C" __global__ void by_cluster(unsigned* out) { write_block(out); }
extern "C" __global__ void __cluster_dims__(2, 2, 1) declared_clusters(unsigned* out) { write_block(out); }
