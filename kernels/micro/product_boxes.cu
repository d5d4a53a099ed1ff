// Products of a warpgroup beside boxes that TMA brings: what both take of the banks of shared memory.
//
// products_COLUMNS_GROUPS: each group multiplies 64 x 16 by 16 x COLUMNS, 8 times and a wait, over and over. One more warp
//   asks for `boxes` boxes of 64 rows of 128 bytes in each such turn, at whose end all meet; 0: products alone. The boxes
//   are the same few lines again and again, out of L2. A product reads 2 KiB and 32 bytes a column, a box writes 8 KiB:
//   where the banks take one of 128 bytes a cycle, reads and writes in turn, their sum is the least time.

#include "../common/hopper.cuh"
#include "micro.cuh"

constexpr int kBoxRows = 64, kBoxBytes = kBoxRows * kSwizzledRow, kSlots = 4, kPanel = kBoxBytes, kProducts = 8;

template <int kColumns, int kGroups>
__device__ __forceinline__ void beside(const CUtensorMap& map, float* out, int iterations, int boxes) {
  extern __shared__ char unaligned[];
  char* factors = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  char* slots = factors + kBoxBytes + kColumns / 64 * kPanel;
  __shared__ Barrier full[kSlots];
  if (threadIdx.x == 0) {
    for (int i = 0; i < kSlots; ++i) full[i].init(1);
    publish_to_async();
  }
  for (int i = threadIdx.x * 16; i < kBoxBytes + kColumns / 64 * kPanel; i += blockDim.x * 16)
    *reinterpret_cast<uint4*>(factors + i) = uint4{};
  publish_to_async();
  __syncthreads();
  if (threadIdx.x >= 128 * kGroups) {
    const bool asks = threadIdx.x == 128 * kGroups;
    int slot = 0, parity = 0, started = 0;
    COUNTED_LOOP(iterations) {
      for (int i = 0; asks && i < boxes; ++i) {
        if (started >= kSlots) full[slot].wait(parity ^ 1);
        full[slot].expect(kBoxBytes);
        load_box(slots + slot * kBoxBytes, map, 0, (i + blockIdx.x) % 8 * kBoxRows, full[slot]);
        ++started;
        if (++slot == kSlots) slot = 0, parity ^= 1;
      }
      __syncwarp();
      meet(1, 128 * kGroups + 32);
    }
    for (int i = 0; i < kSlots && i < started; ++i) {
      full[slot].wait(parity ^ 1);
      if (++slot == kSlots) slot = 0, parity ^= 1;
    }
    return;
  }
  float sums[kColumns / 2] = {};
  const uint64_t a = factor_along_k(factors), b = factor_across_k(factors + kBoxBytes, kPanel);
  COUNTED_LOOP(iterations) {
    begin_products();
#pragma unroll
    for (int i = 0; i < kProducts; ++i)
      multiply<__half>(sums, further(a, i % 4 * 32), further(b, i % 4 * 16 * kSwizzledRow), 1);
    commit_products();
    wait_for_products();
    meet(1, 128 * kGroups + 32);
  }
  wait_for_products();
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kColumns / 2; ++i) sum += sums[i];
  out[blockIdx.x * 128 * kGroups + threadIdx.x] = sum;
}

#define PRODUCTS(COLUMNS, GROUPS)                                                                                     \
  extern "C" __global__ void __launch_bounds__(128 * GROUPS + 32)                                                     \
      products_##COLUMNS##_##GROUPS(const __grid_constant__ CUtensorMap map, float* out, int iterations, int boxes) { \
    beside<COLUMNS, GROUPS>(map, out, iterations, boxes);                                                             \
  }
PRODUCTS(128, 1)
PRODUCTS(128, 2)
PRODUCTS(256, 2)
