// Where the blocks of clusters go while SMs have room for several, how fast clusters that end are followed by others, and
// what an SM takes that several others send atomics to, on a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90a -I ../../kernels -o cluster_places cluster_places.cu && ./cluster_places > cluster_places.csv
// A row is a block: where it ran, and when on that SM's clock.
//   place       blocks of 256 threads that stay until all are there; `room` of them fit an SM
//   turn        blocks of 128 threads that come and go, with a meeting of the cluster (sync) or without; on some SMs
//   row, word, bank, sector   all blocks but the first of one cluster send atomics to the first: the lanes of a warp to 32
//               words in a row, one word, words of one bank, words of sectors of their own. `room`: whether the first does, too
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/cluster.cuh"

struct Row {
  int sm;
  unsigned start, end;
};

__device__ void keep(Row* rows, long long start, long long end) {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  rows[blockIdx.x] = {sm, static_cast<unsigned>(start), static_cast<unsigned>(end)};
}

__global__ void __launch_bounds__(256) place(Row* rows, int) {
  const long long start = clock64();
  if (threadIdx.x == 0) keep(rows, start, start);
  while (clock64() - start < 100000) {}
}

__global__ void __launch_bounds__(128) turn(Row* rows, int sync) {
  const long long start = clock64();
  if (sync) cluster_sync();
  if (threadIdx.x == 0) keep(rows, start, clock64());
}

constexpr int kTrips = 400;

__global__ void __launch_bounds__(256) hot(Row* rows, int apart_and_first) {
  extern __shared__ unsigned words[];
  const int apart = apart_and_first >> 1;
  const bool sends = cluster_rank() != 0 || (apart_and_first & 1) != 0;
  for (int i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = 0;
  cluster_sync();
  unsigned* to = in_block(words + threadIdx.x % 32 * apart + threadIdx.x / 32 * 32, 0);
  const long long start = clock64();
  if (sends)
    for (int trip = 0; trip < kTrips; ++trip) {
#pragma unroll
      for (int i = 0; i < 4; ++i) atomicAdd(to, 1u);
    }
  __syncthreads();
  const long long end = clock64();
  cluster_sync();
  if (threadIdx.x == 0) keep(rows, start, end);
}

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(result));
  std::exit(1);
}

using Kernel = void(Row*, int);

// Runs it twice, as the first run brings the code, and returns the rows of the second.
std::vector<Row> run(Kernel* kernel, int size, int blocks, int threads, int shared, Row* rows, int argument) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
  cudaLaunchConfig_t config{};
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared;
  config.attrs = &cluster;
  config.numAttrs = size > 1 ? 1 : 0;
  for (int time = 0; time < 2; ++time) {
    check(cudaLaunchKernelEx(&config, kernel, rows, argument));
    check(cudaDeviceSynchronize());
  }
  std::vector<Row> found(blocks);
  check(cudaMemcpy(found.data(), rows, blocks * sizeof(Row), cudaMemcpyDeviceToHost));
  return found;
}

void print(const char* work, int size, int room, int blocks, int block, const Row& row) {
  std::printf("%s,%d,%d,%d,%d,%d,%d,%u,%u\n", work, size, room, blocks, block / size, block % size, row.sm, row.start,
              row.end);
}

int main() {
  Row* rows;
  check(cudaMalloc(&rows, 65536 * sizeof(Row)));
  std::puts("work,size,room,blocks,cluster,rank,sm,start,end");
  const int shared_for[] = {160 << 10, 100 << 10, 50 << 10, 24 << 10};
  for (const int size : {2, 4, 8})
    for (int room = 0; room < 4; ++room)
      for (const int blocks : {32, 64, 120, 128, 256, 512}) {
        if (blocks > 120 << room) continue;
        const auto found = run(place, size, blocks, 256, shared_for[room], rows, 0);
        for (int i = 0; i < blocks; ++i) print("place", size, 1 << room, blocks, i, found[i]);
      }
  for (const int size : {1, 2, 4})
    for (const bool sync : {false, true}) {
      if (sync && size == 1) continue;
      constexpr int kBlocks = 8192;
      const auto found = run(turn, size, kBlocks, 128, 0, rows, sync);
      for (int i = 0; i < kBlocks; ++i)
        if (found[i].sm % 64 < 2) print("turn", size, sync, kBlocks, i, found[i]);
    }
  const struct {
    const char* name;
    int apart;
  } ways[] = {{"row", 1}, {"word", 0}, {"bank", 32}, {"sector", 8}};
  for (const auto& way : ways)
    for (const int size : {2, 3, 4, 8})
      for (const int first : {0, 1}) {
        const auto found = run(hot, size, size, 256, 160 << 10, rows, way.apart * 2 + first);
        for (int i = 0; i < size; ++i) print(way.name, size, first, size, i, found[i]);
      }
}
