// What barriers in shared memory (mbarrier) cost, and copies by the tensor memory accelerator that complete them.
// Quantities: kernels/micro/quantities.yaml.

#include "../common/hopper.cuh"
#include "micro.cuh"

// One thread arrives and waits for what it has just completed.
extern "C" __global__ void __launch_bounds__(32) arrive_wait(unsigned* out, int iterations) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    int parity = 0;
    COUNTED_LOOP(iterations) {
      barrier.arrive();
      barrier.wait(parity);
      parity ^= 1;
    }
    out[blockIdx.x] = parity;
  }
}

// Two warps hand over to each other.
extern "C" __global__ void __launch_bounds__(64) ping_pong(unsigned* out, int iterations) {
  __shared__ Barrier ping, pong;
  if (threadIdx.x == 0) {
    ping.init(1);
    pong.init(1);
  }
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  int parity = 0;
  if (threadIdx.x == 0) {
    COUNTED_LOOP(iterations) {
      ping.arrive();
      pong.wait(parity);
      parity ^= 1;
    }
  } else {
    COUNTED_LOOP(iterations) {
      ping.wait(parity);
      pong.arrive();
      parity ^= 1;
    }
  }
  out[blockIdx.x * 2 + threadIdx.x / 32] = parity;
}

// Arrivals alone: nobody waits.
extern "C" __global__ void __launch_bounds__(32) arrive_only(unsigned* out, int iterations) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    barrier.init(1);
    COUNTED_LOOP(iterations) { REPEAT_8(barrier.arrive();) }
    out[blockIdx.x] = iterations;
  }
}

// Boxes of 64 x kRows 16-bit elements, kAhead of them under way; where each lies is `step` rows on, so that they come from
// L2 or memory as the launch has it.
template <int kRows, int kAhead>
__device__ __forceinline__ void boxes(const CUtensorMap& map, unsigned* out, int iterations, int step, int rows) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ Barrier full[kAhead];
  if (threadIdx.x != 0) return;
  constexpr int kBytes = kRows * kSwizzledRow;
  int row = blockIdx.x * kRows % rows;
  for (int i = 0; i < kAhead; ++i) full[i].init(1);
  publish_to_async();
  const auto fetch = [&](int i) {
    full[i].expect(kBytes);
    load_box(shared + i * kBytes, map, 0, row, full[i]);
    row += step;
    if (row >= rows) row -= rows;
  };
  for (int i = 0; i < kAhead; ++i) fetch(i);
  int slot = 0, parity = 0;
  COUNTED_LOOP(iterations) {
    full[slot].wait(parity);
    fetch(slot);
    if (++slot == kAhead) slot = 0, parity ^= 1;
  }
  for (int i = 0; i < kAhead; ++i) {
    full[slot].wait(parity);
    if (++slot == kAhead) slot = 0, parity ^= 1;
  }
  out[blockIdx.x] = row;
}

#define BOXES(ROWS, AHEAD)                                                                                        \
  extern "C" __global__ void __launch_bounds__(32) boxes_##ROWS##_##AHEAD(const __grid_constant__ CUtensorMap map, \
                                                                          unsigned* out, int iterations, int step, \
                                                                          int rows) {                              \
    boxes<ROWS, AHEAD>(map, out, iterations, step, rows);                                                         \
  }
BOXES(8, 1)
BOXES(64, 1)
BOXES(256, 1)
BOXES(8, 4)
BOXES(64, 4)
BOXES(128, 4)
BOXES(256, 4)
