// How fast each SM moves data to and from the other SMs of its cluster, and what fences take, on a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90a -I ../../kernels -o cluster_rates cluster_rates.cu && ./cluster_rates > cluster_rates.csv
// Blocks of 256 threads, one on an SM, in clusters of `size`; each works on the block `away` ranks on:
//   stores, loads   16 bytes a lane
//   atomics         a word a lane, another bank each: RED of shared memory
// alone: one cluster on the GPU; all: as many as there are. A row is a block: its SM and the cycles that its trips took.
//   fence_...       cycles of one fence of a warp, and whose accesses are under way in the other warps of its SM
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/cluster.cuh"

constexpr int kThreads = 256, kTrips = 400, kShared = 160 << 10;

struct Row {
  int sm, cycles;
};

__device__ void keep(Row* rows, long long cycles) {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  rows[blockIdx.x] = {sm, static_cast<int>(cycles)};
}

// When all warps of the block are done; its shared memory stays until the others are, too.
__device__ void finish(Row* rows, long long start) {
  __syncthreads();
  const long long end = clock64();
  cluster_sync();
  if (threadIdx.x == 0) keep(rows, end - start);
}

enum Work { kStores, kLoads, kAtomics };

template <Work kWork>
__global__ void __launch_bounds__(kThreads) moves(Row* rows, int size, int away) {
  extern __shared__ uint4 quads[];
  quads[threadIdx.x] = uint4{0, 0, 0, 0};
  cluster_sync();
  uint4* far = in_block(quads + threadIdx.x, (cluster_rank() + away) % size);
  const long long start = clock64();
  unsigned sum = 0;
  for (int trip = 0; trip < kTrips; ++trip) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (kWork == kStores)
        asm volatile("st.volatile.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(far), "r"(trip) : "memory");
      else if (kWork == kLoads) {
        uint4 v;
        asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(far));
        sum ^= v.x ^ v.y ^ v.z ^ v.w;
      } else
        atomicAdd(reinterpret_cast<unsigned*>(far) - threadIdx.x * 3, 1u);
    }
  }
  if (sum == 12345) quads[0].x = sum;
  finish(rows, start);
}

// The histogram's way: each word goes to a block that a hash names.
__global__ void __launch_bounds__(kThreads) scattered(Row* rows, int size, int) {
  extern __shared__ uint4 quads[];
  unsigned* words = reinterpret_cast<unsigned*>(quads);
  for (int i = threadIdx.x; i < 2048; i += kThreads) words[i] = 0;
  cluster_sync();
  const long long start = clock64();
  unsigned at = (blockIdx.x * kThreads + threadIdx.x) * 2654435761u;
  for (int trip = 0; trip < kTrips; ++trip) {
    at = at * 1664525u + 1013904223u;
    atomicAdd(in_block(words + (at >> 8) % 2048, (at >> 20) % size), 1u);
  }
  finish(rows, start);
}

enum Fence { kBlock, kCluster, kGpu, kSequential };
enum Beside { kNothing, kStoring, kCopying };

template <Fence kFence>
__device__ void fence() {
  if (kFence == kBlock) asm volatile("fence.acq_rel.cta;" ::: "memory");
  if (kFence == kCluster) asm volatile("fence.acq_rel.cluster;" ::: "memory");
  if (kFence == kGpu) asm volatile("fence.acq_rel.gpu;" ::: "memory");
  if (kFence == kSequential) asm volatile("fence.sc.gpu;" ::: "memory");
}

// Warp 0 fences; warp 1 stores to global memory, or fetches pieces of `bytes` with four under way, until warp 0 is done.
template <Fence kFence>
__global__ void __launch_bounds__(64) fences(Row* rows, Beside beside, char* memory, int bytes, int fenced) {
  extern __shared__ __align__(128) char shared[];
  __shared__ Barrier full[4];
  __shared__ volatile int done;
  if (threadIdx.x == 0) {
    for (auto& barrier : full) barrier.init(1);
    publish_to_async();
    done = 0;
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    for (volatile int i = 0; i < 2000; ++i) {}
    const long long start = clock64();
    for (int i = 0; i < fenced; ++i) fence<kFence>();
    const long long end = clock64();
    if (threadIdx.x == 0) {
      keep(rows, (end - start) / fenced);
      done = 1;
    }
    return;
  }
  char* mine = memory + (size_t{blockIdx.x} << 20);
  unsigned at = 0;
  if (beside == kStoring)
    for (; !done; at += 128) *reinterpret_cast<volatile unsigned*>(mine + (at & 0xfffff) + threadIdx.x % 32 * 4) = at;
  if (beside == kCopying && threadIdx.x == 32) {
    const auto fetch = [&](int slot) {
      full[slot].expect(bytes);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                       shared_word_address(shared + slot * bytes)),
                   "l"(mine + (at & 0xfffff)), "r"(bytes), "r"(shared_word_address(&full[slot]))
                   : "memory");
      at += bytes;
    };
    for (int slot = 0; slot < 4; ++slot) fetch(slot);
    int parity = 0;
    for (int slot = 0;; ) {
      full[slot].wait(parity);
      if (done) {
        for (int i = 1; i < 4; ++i) {
          if (++slot == 4) slot = 0, parity ^= 1;
          full[slot].wait(parity);
        }
        break;
      }
      fetch(slot);
      if (++slot == 4) slot = 0, parity ^= 1;
    }
  }
}

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(result));
  std::exit(1);
}

void print(const char* name, int size, int away, const char* others, int blocks, const Row* rows) {
  std::vector<Row> found(blocks);
  check(cudaMemcpy(found.data(), rows, blocks * sizeof(Row), cudaMemcpyDeviceToHost));
  for (int i = 0; i < blocks; ++i)
    std::printf("%s,%d,%d,%s,%d,%d,%d,%d\n", name, size, away, others, i / size, i % size, found[i].sm, found[i].cycles);
}

template <class Kernel>
void clustered(const char* name, Kernel* kernel, int away_limit, Row* rows) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared));
  for (const int size : {2, 4, 8})
    for (int away = 1; away <= std::min(size - 1, away_limit); away = away * 2 + (away == 1 ? 1 : 0))
      for (const bool all : {false, true}) {
        cudaLaunchConfig_t config{};
        cudaLaunchAttribute cluster{};
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
        config.blockDim = kThreads;
        config.dynamicSmemBytes = kShared;
        config.attrs = &cluster;
        config.numAttrs = 1;
        int clusters = 1;
        config.gridDim = size;
        if (all) check(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
        config.gridDim = clusters * size;
        for (int run = 0; run < 2; ++run) {  // the first brings the code
          check(cudaLaunchKernelEx(&config, kernel, rows, size, away));
          check(cudaDeviceSynchronize());
        }
        print(name, size, away, all ? "all" : "alone", clusters * size, rows);
      }
}

template <Fence kFence>
void fenced(const char* name, Row* rows, char* memory) {
  constexpr int kBytes = 16 << 10;
  check(cudaFuncSetAttribute(fences<kFence>, cudaFuncAttributeMaxDynamicSharedMemorySize, 4 * kBytes));
  const char* others[] = {"nothing", "stores", "copies"};
  for (const Beside beside : {kNothing, kStoring, kCopying})
    for (const int blocks : {1, 132})
      for (const int bytes : {2 << 10, kBytes}) {
        if (beside != kCopying && bytes != kBytes) continue;
        for (int run = 0; run < 2; ++run) {
          fences<kFence><<<blocks, 64, 4 * kBytes>>>(rows, beside, memory, bytes, 50);
          check(cudaDeviceSynchronize());
        }
        char text[64];
        std::snprintf(text, sizeof text, "%s_%d", others[beside], beside == kCopying ? bytes : 0);
        print(name, 1, 0, text, blocks, rows);
      }
}

int main() {
  Row* rows;
  char* memory;
  check(cudaMalloc(&rows, 4096 * sizeof(Row)));
  check(cudaMalloc(&memory, size_t{132} << 20));
  std::puts("work,size,away,others,cluster,rank,sm,cycles");
  clustered("stores", moves<kStores>, 3, rows);
  clustered("loads", moves<kLoads>, 3, rows);
  clustered("atomics", moves<kAtomics>, 1, rows);
  clustered("scattered", scattered, 1, rows);
  fenced<kBlock>("fence_block", rows, memory);
  fenced<kCluster>("fence_cluster", rows, memory);
  fenced<kGpu>("fence_gpu", rows, memory);
  fenced<kSequential>("fence_sequential", rows, memory);
}
