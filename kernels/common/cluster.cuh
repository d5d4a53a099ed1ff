// What the blocks of a cluster have beyond common/hopper.cuh: a barrier of all their threads, each other's shared memory, and
// copies of boxes that go to several of them.
#pragma once

#include "hopper.cuh"

// Of this block, x fastest.
__device__ __forceinline__ uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// Threads that have exited are not waited for. What was written to shared memory before is seen after.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// The same variable in the block of another rank.
template <class T>
__device__ __forceinline__ T* in_block(T* own, uint32_t rank) {
  uint64_t there;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
  return reinterpret_cast<T*>(there);
}

// Arrives at the barrier there.
__device__ __forceinline__ void arrive_in_block(Barrier& own, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_word_address(&own)),
      "r"(rank)
      : "memory");
}
// Waits for arrivals and bytes from any block of the cluster.
__device__ __forceinline__ void wait_for_cluster(Barrier& barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again_%=;\n"
      "}\n" ::"r"(shared_word_address(&barrier)),
      "r"(parity)
      : "memory");
}

// The box at (x, y) to the same place in each block whose bit is set; its bytes count at the same barrier in each.
__device__ __forceinline__ void load_box_to(uint16_t blocks, void* to, const CUtensorMap& map, int x, int y, Barrier& barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_word_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_word_address(&barrier)), "h"(blocks)
      : "memory");
}
