// Calibration: shared memory and what shares its pipe.
//
// Isolates  loads that wait for the last (latency, by width and by the banks' conflicts), loads, stores and atomics that do
//           not (throughput, by width, warps and conflicts), shuffles, votes, reductions and matches of a warp.
// Supports  latency.{shared_load,shared_atomic,shared_store_read,shuffle,vote,redux,match},
//           memory_pipe.{shared_wavefront_cycles,shared_conflict_latency,lsu_interval,register_cycles,shuffle_interval,
//           queue_entries,writeback_bytes_per_cycle,wide_latency,port_wavefront_cycles,bank_queue_cycles}.
// Launch    132 blocks of 32 to 1024.
// Args      out[threads], iterations, words between the accesses of neighbouring lanes (1: no conflict, n: n ways for powers
//           of two). Every iteration is 16 operations (sts_counter: 1).

#include "micro.cuh"

// 32 lanes, at most 32 words apart, and a word for every thread.
#define WORDS (32 * 32)

static __device__ __forceinline__ unsigned zeroed_shared(unsigned* words, int stride) {
  for (int i = threadIdx.x; i < WORDS; i += blockDim.x) words[i] = 0;
  __syncthreads();
  return static_cast<unsigned>(__cvta_generic_to_shared(words)) + 4 * (threadIdx.x & 31) * stride;
}

#define LOAD_CHAIN(NAME, LOAD)                                                                   \
  extern "C" __global__ void NAME(unsigned* out, int iterations, int stride) {                   \
    __shared__ __align__(16) unsigned words[WORDS];                                              \
    unsigned at = zeroed_shared(words, stride);                                                  \
    const unsigned first = at;                                                                   \
    unsigned loaded;                                                                             \
    COUNTED_LOOP(iterations) {                                                                   \
      REPEAT_16(asm volatile(LOAD : "=r"(loaded) : "r"(at) : "memory"); at = first + loaded;)    \
    }                                                                                            \
    out[thread_of_grid()] = at;                                                                  \
  }

LOAD_CHAIN(lds_32_dependent, "ld.volatile.shared.u32 %0, [%1];")
LOAD_CHAIN(lds_64_dependent, "{ .reg .u32 y; ld.volatile.shared.v2.u32 {%0, y}, [%1]; }")
LOAD_CHAIN(lds_128_dependent, "{ .reg .u32 y, z, w; ld.volatile.shared.v4.u32 {%0, y, z, w}, [%1]; }")

#define TWO "=r"(x), "=r"(y)
#define FOUR "=r"(x), "=r"(y), "=r"(z), "=r"(w)

#define LOADS(NAME, LOAD, RESULTS)                                               \
  extern "C" __global__ void NAME(unsigned* out, int iterations, int stride) {   \
    __shared__ __align__(16) unsigned words[WORDS];                              \
    const unsigned at = zeroed_shared(words, stride);                            \
    unsigned x = 0, y = 0, z = 0, w = 0, sum = 0;                                \
    COUNTED_LOOP(iterations) {                                                   \
      REPEAT_16(asm volatile(LOAD : RESULTS : "r"(at) : "memory"); sum ^= x ^ y ^ z ^ w;) \
    }                                                                            \
    out[thread_of_grid()] = sum;                                                 \
  }

LOADS(lds_32, "ld.volatile.shared.u32 %0, [%1];", "=r"(x))
LOADS(lds_64, "ld.volatile.shared.v2.u32 {%0, %1}, [%2];", TWO)
LOADS(lds_128, "ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];", FOUR)

#define STORES(NAME, STORE)                                                      \
  extern "C" __global__ void NAME(unsigned* out, int iterations, int stride) {   \
    __shared__ __align__(16) unsigned words[WORDS];                              \
    const unsigned at = zeroed_shared(words, stride);                            \
    const unsigned x = threadIdx.x, y = x * 3, z = x * 5, w = x * 7;              \
    COUNTED_LOOP(iterations) {                                                   \
      REPEAT_16(asm volatile(STORE ::"r"(at), "r"(x), "r"(y), "r"(z), "r"(w) : "memory");) \
    }                                                                            \
    __syncthreads();                                                             \
    out[thread_of_grid()] = words[threadIdx.x];                                  \
  }

STORES(sts_32, "st.volatile.shared.u32 [%0], %1;")
STORES(sts_64, "st.volatile.shared.v2.u32 [%0], {%1, %2};")
STORES(sts_128, "st.volatile.shared.v4.u32 [%0], {%1, %2, %3, %4};")

// Stores, each of a value made from the one before; ptxas gives every value a register of its own, so no store holds the next
// operation up: what STS and LOP3 cost in turn.
extern "C" __global__ void sts_then_overwrite(unsigned* out, int iterations, int stride) {
  __shared__ __align__(16) unsigned words[WORDS];
  const unsigned at = zeroed_shared(words, stride);
  unsigned value = threadIdx.x;
  COUNTED_LOOP(iterations) {
    REPEAT_16(asm volatile("st.volatile.shared.u32 [%1], %0; lop3.b32 %0, %0, %1, %2, 0x78;"
                           : "+r"(value) : "r"(at), "r"(iterations) : "memory");)
  }
  __syncthreads();
  out[thread_of_grid()] = words[threadIdx.x] + value;
}

// Stores the loop's counter, which can only be counted on once the store has read it: how soon that is, beside a branch.
extern "C" __global__ void sts_counter(unsigned* out, int iterations, int stride) {
  __shared__ __align__(16) unsigned words[WORDS];
  const unsigned at = zeroed_shared(words, stride);
  COUNTED_LOOP(iterations) { asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(at), "r"(iteration) : "memory"); }
  __syncthreads();
  out[thread_of_grid()] = words[threadIdx.x];
}

// Stride 0: all lanes add to one word.
extern "C" __global__ void atoms_add(unsigned* out, int iterations, int stride) {
  __shared__ __align__(16) unsigned words[WORDS];
  const unsigned at = zeroed_shared(words, stride);
  const unsigned value = threadIdx.x + 1;
  COUNTED_LOOP(iterations) { REPEAT_16(asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(at), "r"(value) : "memory");) }
  __syncthreads();
  out[thread_of_grid()] = words[threadIdx.x];
}

// An atomic that leaves the zeros and gives the next one its address.
extern "C" __global__ void atoms_dependent(unsigned* out, int iterations, int stride) {
  __shared__ __align__(16) unsigned words[WORDS];
  unsigned at = zeroed_shared(words, stride);
  const unsigned first = at;
  unsigned old;
  COUNTED_LOOP(iterations) {
    REPEAT_16(asm volatile("atom.shared.and.b32 %0, [%1], %2;" : "=r"(old) : "r"(at), "r"(iterations) : "memory");
              at = first + old;)
  }
  out[thread_of_grid()] = at;
}

#define WARP_CHAINS(NAME, COUNT, OPERATION)                                                       \
  extern "C" __global__ void NAME(unsigned* out, int iterations) {                                \
    unsigned a[COUNT];                                                                            \
    const unsigned b = threadIdx.x & 1;                                                           \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) a[j] = threadIdx.x * (j + 1);               \
    COUNTED_LOOP(iterations) {                                                                    \
      _Pragma("unroll") for (int k = 0; k < 16; ++k) asm volatile(OPERATION : "+r"(a[k % COUNT]) : "r"(b)); \
    }                                                                                             \
    unsigned sum = 0;                                                                             \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) sum ^= a[j];                                \
    out[thread_of_grid()] = sum;                                                                  \
  }

WARP_CHAINS(shuffle_dependent, 1, "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;")
WARP_CHAINS(shuffle, 8, "shfl.sync.bfly.b32 %0, %0, 1, 31, 0xffffffff;")
WARP_CHAINS(vote_dependent, 1, "{ .reg .pred p; setp.ne.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, 0xffffffff; }")
WARP_CHAINS(redux_dependent, 1, "{ .reg .u32 r; redux.sync.add.u32 r, %0, 0xffffffff; xor.b32 %0, r, %1; }")
WARP_CHAINS(match_dependent, 1, "match.any.sync.b32 %0, %0, 0xffffffff;")
