// Copy, step 7: tiles on their way to shared memory, through registers or by asynchronous copies (Ampere on).
//
// Shows   what cp.async frees: the registers and issue slots between LDG and STS, and, with several stages in flight, the wait
//         for each tile. Each tile is read once from shared memory and summed with the tile before, so that it has a use.
// Bound   latency with one stage, HBM with several.
// Launch  block 256, a tile of 256 x 16 bytes at a time, grid of any size; stages x 4 KiB of static shared memory.
// Args    in[tiles * 1024], out[tiles * 1024] fp32, tiles.

__device__ __forceinline__ unsigned shared_address(const void* at) { return static_cast<unsigned>(__cvta_generic_to_shared(at)); }

// Past L1.
__device__ __forceinline__ void copy_async_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

// Through L1.
__device__ __forceinline__ void copy_async_4(void* to, const void* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from) : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int kLeft>
__device__ __forceinline__ void wait_for_all_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

constexpr int kThreads = 256;

// What is done with a tile: each thread takes the elements of its opposite.
__device__ __forceinline__ float4 use(const float4* tile) {
  const float4 v = tile[kThreads - 1 - threadIdx.x];
  return {v.x + 1, v.y + 1, v.z + 1, v.w + 1};
}

extern "C" __global__ void __launch_bounds__(kThreads) staged_by_registers(const float4* __restrict__ in, float4* __restrict__ out,
                                                                        int tiles) {
  __shared__ float4 tile[kThreads];
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    tile[threadIdx.x] = in[t * kThreads + threadIdx.x];
    __syncthreads();
    out[t * kThreads + threadIdx.x] = use(tile);
    __syncthreads();
  }
}

template <int kStages>
__device__ __forceinline__ void staged(const float4* __restrict__ in, float4* __restrict__ out, int tiles) {
  __shared__ float4 ring[kStages][kThreads];
  int fetched = blockIdx.x;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s, fetched += gridDim.x) {
    if (fetched < tiles) copy_async_16(&ring[s][threadIdx.x], &in[fetched * kThreads + threadIdx.x]);
    commit();
  }
  int stage = 0, free = kStages - 1;
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, fetched += gridDim.x) {
    if (fetched < tiles) copy_async_16(&ring[free][threadIdx.x], &in[fetched * kThreads + threadIdx.x]);
    commit();
    wait_for_all_but<kStages - 1>();
    __syncthreads();
    out[t * kThreads + threadIdx.x] = use(ring[stage]);
    __syncthreads();
    free = stage;
    stage = stage + 1 == kStages ? 0 : stage + 1;
  }
}

#define STAGED(N)                                                                                                              \
  extern "C" __global__ void __launch_bounds__(kThreads) staged_async_##N(const float4* __restrict__ in, float4* __restrict__ out, \
                                                                       int tiles) {                                           \
    staged<N>(in, out, tiles);                                                                                                 \
  }
STAGED(1)
STAGED(2)
STAGED(3)
STAGED(4)
STAGED(8)

// 4 bytes a lane, through L1.
extern "C" __global__ void __launch_bounds__(kThreads) staged_async_words(const float* __restrict__ in, float* __restrict__ out,
                                                                       int tiles) {
  __shared__ float tile[2][kThreads];
  int stage = 0;
  if (blockIdx.x < tiles) copy_async_4(&tile[0][threadIdx.x], &in[blockIdx.x * kThreads + threadIdx.x]);
  commit();
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, stage ^= 1) {
    const int next = t + gridDim.x;
    if (next < tiles) copy_async_4(&tile[stage ^ 1][threadIdx.x], &in[next * kThreads + threadIdx.x]);
    commit();
    wait_for_all_but<1>();
    __syncthreads();
    out[t * kThreads + threadIdx.x] = tile[stage][kThreads - 1 - threadIdx.x] + 1;
    __syncthreads();
  }
}
