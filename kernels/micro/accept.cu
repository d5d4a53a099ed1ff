// Calibration: how many memory instructions are taken before a warp has to wait, and what waits for what.
//
// Isolates  the queues between a sub-partition and the memory unit. A warp reads the clock, sends 1, 3, ... 23 instructions, reads the
//           clock again, waits for their results and reads it once more: the first difference grows by the time that one takes
//           once the queues are full, the second by how many were ahead. Other warps may first send 40 of another kind, from
//           the same sub-partition or another: what the queues share shows in both.
// Supports  memory_pipe.queue_entries.
// Launch    1 block of 32 to 512.
// Args      out[warps of grid * 12 * 2], in[32 * 32 + 64], store[the same], words between lanes of the others and of the warps that measure, masks
//           of the warps of a block that are the others and that measure.

#include "micro.cuh"

constexpr int kMost = 23, kOthers = 40;

/// All of it, which CS2R reads; half of it would come through a queue.
static __device__ __forceinline__ unsigned long long long_clock_now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %clock64;" : "=l"(now)::"memory");
  return now;
}

struct Place {
  unsigned shared;
  unsigned long long global, store;
};

#define OPERATION(NAME, TEXT, OUTPUT, ...)                                          \
  struct NAME {                                                                     \
    template <int kOffset>                                                          \
    static __device__ __forceinline__ void send(const Place& at, unsigned& result) { \
      asm volatile(TEXT : OUTPUT(result) : __VA_ARGS__, "n"(4 * kOffset) : "memory"); \
    }                                                                               \
  };

OPERATION(Lds, "ld.volatile.shared.u32 %0, [%1+%2];", "=r", "r"(at.shared))
OPERATION(Sts, "st.volatile.shared.u32 [%1+%2], %0;", "+r", "r"(at.shared))
OPERATION(Lds128, "{ .reg .u32 y, z, w; ld.volatile.shared.v4.u32 {%0, y, z, w}, [%1+4*%2]; }", "=r", "r"(at.shared))
OPERATION(Sts128, "st.volatile.shared.v4.u32 [%1+4*%2], {%0, %0, %0, %0};", "+r", "r"(at.shared))
OPERATION(Ldg, "ld.global.ca.u32 %0, [%1+%2];", "=r", "l"(at.global))
OPERATION(Stg, "st.global.u32 [%1+%2], %0;", "+r", "l"(at.store))
OPERATION(Shfl, "shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;", "=r", "r"(at.shared))
struct Mufu {
  template <int kOffset>
  static __device__ __forceinline__ void send(const Place&, unsigned& result) {
    asm volatile("{ .reg .f32 y; mov.b32 y, %0; ex2.approx.ftz.f32 y, y; mov.b32 %0, y; }" : "+r"(result)::"memory");
  }
};

template <typename Operation, int kCount>
struct Burst {
  static __device__ __forceinline__ void send(const Place& at, unsigned* results) {
    Burst<Operation, kCount - 1>::send(at, results);
    Operation::template send<kCount - 1>(at, results[kCount - 1]);
  }
};
template <typename Operation>
struct Burst<Operation, 0> {
  static __device__ __forceinline__ void send(const Place&, unsigned*) {}
};

template <int kCount>
static __device__ __forceinline__ unsigned sum_of(const unsigned* results) {
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum ^= results[i];
  return sum;
}

template <typename Operation, int kCount>
static __device__ __forceinline__ void measure(const Place& at, int count, unsigned long long& taken, unsigned long long& done, unsigned& sum) {
  int chosen;
  asm volatile("mov.u32 %0, %1;" : "=r"(chosen) : "r"(count));  // no table of jumps
  if (chosen != kCount) {
    if constexpr (kCount < kMost) measure<Operation, kCount + 2>(at, count, taken, done, sum);
    return;
  }
  unsigned results[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) results[i] = at.shared + i;
  const unsigned long long begin = long_clock_now();
  Burst<Operation, kCount>::send(at, results);
  taken = long_clock_now() - begin;
  unsigned last = sum_of<kCount>(results), y;
  asm volatile("xor.b32 %0, %1, %2;" : "=r"(y) : "r"(last), "r"(sum) : "memory");
  sum = y;
  done = long_clock_now() - begin + (y == 0x12345u);
}

template <typename Other, typename Operation>
static __device__ __forceinline__ void accept(unsigned long long* out, const unsigned* in, unsigned* store, int other_stride, int stride,
                                              unsigned others, unsigned measures) {
  __shared__ __align__(16) unsigned words[4 * 32 * 32 + 256];
  for (int i = threadIdx.x; i < 4 * 32 * 32 + 256; i += blockDim.x) words[i] = 0;
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const bool other = (others >> warp & 1) != 0, measured = (measures >> warp & 1) != 0;
  const int apart = lane * (other ? other_stride : stride);
  Place at;
  at.shared = static_cast<unsigned>(__cvta_generic_to_shared(words)) + 4 * apart;
  at.global = reinterpret_cast<unsigned long long>(in + apart);
  at.store = reinterpret_cast<unsigned long long>(store + blockIdx.x * (32 * 32 + 64) + apart);
  unsigned sum = 0, touched;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(touched) : "l"(at.global) : "memory");
  sum ^= touched;
  asm volatile("ld.global.ca.u32 %0, [%1+124];" : "=r"(touched) : "l"(at.global) : "memory");
  sum ^= touched;
  float x = static_cast<float>(threadIdx.x);
  // Twice, so that the code is near.
  COUNTED_LOOP(2) {
#pragma unroll 1
    for (int count = 1; count <= kMost; count += 2) {
      __syncthreads();
      if (other) {
        unsigned results[kOthers];
#pragma unroll
        for (int i = 0; i < kOthers; ++i) results[i] = at.shared + i;
        Burst<Other, kOthers>::send(at, results);
        sum ^= sum_of<kOthers>(results);
      } else if (measured) {
#pragma unroll 1
        for (int i = 0; i < 8; ++i) {  // until the queues are full
          REPEAT_16(asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(x));)
        }
        unsigned long long taken = 0, done = 0;
        sum += x == 0.12345f;
        measure<Operation, 1>(at, count, taken, done, sum);
        if (lane == 0) {
          unsigned long long* of_count = out + ((blockIdx.x * (blockDim.x / 32) + warp) * (kMost + 1) + count - 1);
          of_count[0] = taken;
          of_count[1] = done;
        }
      }
    }
  }
  if (sum == 0x12345u) out[0] = sum;
}

#define ACCEPT(NAME, OTHER, OPERATION)                                                                                        \
  extern "C" __global__ void NAME(unsigned long long* out, const unsigned* in, unsigned* store, int other_stride, int stride,           \
                                  unsigned others, unsigned measures) {                                                       \
    accept<OTHER, OPERATION>(out, in, store, other_stride, stride, others, measures);                                         \
  }

ACCEPT(accept_lds, Lds, Lds)
ACCEPT(accept_sts, Sts, Sts)
ACCEPT(accept_lds128, Lds128, Lds128)
ACCEPT(accept_sts128, Sts128, Sts128)
ACCEPT(accept_ldg, Ldg, Ldg)
ACCEPT(accept_stg, Stg, Stg)
ACCEPT(accept_shfl, Shfl, Shfl)
ACCEPT(accept_mufu, Mufu, Mufu)
ACCEPT(accept_ldg_after_lds, Lds, Ldg)
ACCEPT(accept_sts_after_lds, Lds, Sts)
ACCEPT(accept_lds_after_sts, Sts, Lds)
ACCEPT(accept_lds_after_ldg, Ldg, Lds)
ACCEPT(accept_ldg_after_stg, Stg, Ldg)
ACCEPT(accept_lds_after_stg, Stg, Lds)
ACCEPT(accept_mufu_after_lds, Lds, Mufu)
ACCEPT(accept_shfl_after_lds, Lds, Shfl)
