// Calibration: SMs that read the same lines of L2. sm_90 alone, for its boxes; loads and copies are alike on sm_80.
//
// Isolates  what the way from L2 to the SMs carries where 1, 2, 4, 8, 16 or all SMs read the same lines at about the same time,
//           neighbours or SMs of different TPCs and GPCs, in step or behind each other, by loads, cp.async and boxes of TMA.
// Supports  crossbar.{gpc_response_bytes_per_cycle,sm_response_bytes_per_cycle}, l2.{coalescer_requests,coalescer_cycles}.
// Launch    132 blocks, one an SM (their shared memory sees to it); everything read lies in L2 after the first time round.
//           sectors: the same lines asked for twice, for some of their sectors and then for others.
// Args      loads, copies: out[threads], trips, in, mask, group, stride, delay. boxes: a map of `in` in rows of 128 bytes, then the
//           same without `in`. Blocks group x stride in a row are `stride` sets of `group` blocks, `stride` apart; a set walks
//           through mask + 1 bytes of its own, over and over, its members `delay` x 29 cycles behind each other. A trip is 8 KiB.
//           sectors: out[threads], trips, in, mask, group, first, second (sectors, bits), gap: a trip reads `first` of 16 lines a
//           warp, then `second` of the same (none: 0); the next trip begins `gap` x 29 cycles later (the compiler moves the second
//           loads up before the wait).
//           Compared with the profile by hand: what merges (lts__, lrc__) of `l2_shared.states`.

#include "../common/hopper.cuh"
#include "micro.cuh"

constexpr int kTrip = 8192, kAhead = 4;

struct Member {
  int set, rank;
};

static __device__ __forceinline__ Member member(int group, int stride) {
  const int block = blockIdx.x, row = group * stride;
  return {block / row * stride + block % stride, block % row / stride};
}

static __device__ __forceinline__ float wait_for_turn(int cycles) {
  float x = 1;
  COUNTED_LOOP(cycles) { asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x)); }
  return x;
}

// 512 threads: four trips are under way at a time.
extern "C" __global__ void __launch_bounds__(512) shared_loads(float* out, int trips, const char* in, int mask, int group, int stride,
                                                               int delay) {
  const auto [set, rank] = member(group, stride);
  const char* region = in + static_cast<long long>(set) * (mask + 1) + threadIdx.x * 16;
  const float x = wait_for_turn(delay * rank);
  unsigned sum = 0;
  int at = 0;
#pragma unroll 1
  for (int trip = 0; trip < trips; trip += kAhead) {
    uint4 v[kAhead];
#pragma unroll
    for (int k = 0; k < kAhead; ++k) {
      v[k] = load_l2(reinterpret_cast<const uint4*>(region + at));
      at = (at + kTrip) & mask;
    }
#pragma unroll
    for (int k = 0; k < kAhead; ++k) sum ^= mixed(v[k]);
  }
  out[thread_of_grid()] = x + sum;
}

// 512 threads, which copy a trip at a time, each to a place of its own.
extern "C" __global__ void __launch_bounds__(512) shared_copies(float* out, int trips, const char* in, int mask, int group, int stride,
                                                                int delay) {
  extern __shared__ __align__(1024) char shared[];
  const auto [set, rank] = member(group, stride);
  const char* region = in + static_cast<long long>(set) * (mask + 1) + threadIdx.x * 16;
  const unsigned to = shared_word_address(shared) + threadIdx.x * 16;
  const float x = wait_for_turn(delay * rank);
  int at = 0;
  COUNTED_LOOP(trips) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + iteration % kAhead * kTrip), "l"(region + at) : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 3;" ::: "memory");
    at = (at + kTrip) & mask;
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[thread_of_grid()] = x + shared[threadIdx.x];
}

// The sector of its eighth of a warp that a lane reads, in bytes: the lanes share out those of `sectors`.
static __device__ __forceinline__ int sector_of(int lane, int sectors) {
  int nth = lane % max(__popc(sectors), 1), at = sectors;
  for (; nth > 0; --nth) at &= at - 1;
  return (__ffs(at) - 1) * 32;
}

static __device__ __forceinline__ unsigned load_word(const char* at) {
  unsigned v;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}

// 128 threads: a warp's load reads four lines.
extern "C" __global__ void __launch_bounds__(128) shared_sectors(float* out, int trips, const char* in, int mask, int group, int first,
                                                                 int second, int gap) {
  const auto [set, rank] = member(group, 1);
  const char* region = in + static_cast<long long>(set) * (mask + 1) + threadIdx.x / 8 * 128;
  const char *early = region + sector_of(threadIdx.x % 8, first), *late = region + sector_of(threadIdx.x % 8, second);
  float x = 1;
  unsigned sum = 0;
  int at = 0;
#pragma unroll 1
  for (int trip = 0; trip < trips; ++trip) {
    unsigned v[2 * kAhead] = {};
#pragma unroll
    for (int k = 0; k < kAhead; ++k) v[k] = load_word(early + ((at + k * 2048) & mask));
    if (second != 0) {
      x += wait_for_turn(gap);
#pragma unroll
      for (int k = 0; k < kAhead; ++k) v[kAhead + k] = load_word(late + ((at + k * 2048) & mask));
    }
    at = (at + kTrip) & mask;
#pragma unroll
    for (unsigned one : v) sum ^= one;
    __syncthreads();
  }
  out[thread_of_grid()] = x + sum;
}

// One thread, boxes of 64 rows of 128 bytes.
extern "C" __global__ void __launch_bounds__(32) shared_boxes(const __grid_constant__ CUtensorMap map, float* out, int trips, int mask,
                                                              int group, int stride, int delay) {
  extern __shared__ __align__(1024) char shared[];
  __shared__ Barrier full[kAhead];
  if (threadIdx.x != 0) return;
  const auto [set, rank] = member(group, stride);
  const int first = set * ((mask + 1) / kSwizzledRow);
  for (int i = 0; i < kAhead; ++i) full[i].init(1);
  publish_to_async();
  const float x = wait_for_turn(delay * rank);
  int at = 0, slot = 0, parity = 0;
  const auto fetch = [&](int i) {
    full[i].expect(kTrip);
    load_box(shared + i * kTrip, map, 0, first + at / kSwizzledRow, full[i]);
    at = (at + kTrip) & mask;
  };
  for (int i = 0; i < kAhead; ++i) fetch(i);
  COUNTED_LOOP(trips - kAhead) {
    full[slot].wait(parity);
    fetch(slot);
    if (++slot == kAhead) slot = 0, parity ^= 1;
  }
  for (int i = 0; i < kAhead; ++i) {
    full[slot].wait(parity);
    if (++slot == kAhead) slot = 0, parity ^= 1;
  }
  out[blockIdx.x] = x + at;
}
