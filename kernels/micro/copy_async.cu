// Calibration: copies from global to shared memory that registers have no part in (cp.async).
//
// Isolates  how long a copy takes until its group is waited for and the data read, from L1, L2 and of nothing (zeros); what copies
//           of 4, 8 and 16 bytes a lane, through L1 and past it, cost when many are in flight; how the wait for all but the last
//           groups overlaps them; what a store to shared memory with bank conflicts adds.
// Supports  the way of LDGSTS through the memory pipe, of LDGDEPBAR and DEPBAR.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads], trips, in, spread: bytes from one warp's lines to the next one's. A trip is 8 copies a thread.

#include "micro.cuh"

#define COPY(HOW, BYTES, TO, FROM) \
  asm volatile("cp.async." HOW ".shared.global [%0], [%1], " #BYTES ";" ::"r"(TO), "l"(FROM) : "memory")
#define NOTHING(TO, FROM) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, 0;" ::"r"(TO), "l"(FROM) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(N) asm volatile("cp.async.wait_group " #N ";" ::: "memory")

static __device__ __forceinline__ unsigned shared_word(unsigned at) {
  unsigned v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
  return v;
}

// One copy at a time: its group is waited for, the data read, and the next address made of it (memory holds zeros).
#define CHASE(NAME, COPY_ONE)                                                                                             \
  extern "C" __global__ void NAME(unsigned* out, int trips, const char* in, int spread) {                                  \
    extern __shared__ char room[];                                                                                        \
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 16 * threadIdx.x;                         \
    const char* from = in + (thread_of_grid() / 32) * static_cast<unsigned>(spread) + 16 * (threadIdx.x & 31);            \
    unsigned seen = 0;                                                                                                    \
    COUNTED_LOOP(trips) {                                                                                                 \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) {                                                                     \
        COPY_ONE(to, from + seen);                                                                                        \
        COMMIT;                                                                                                           \
        WAIT(0);                                                                                                          \
        seen = shared_word(to);                                                                                           \
      }                                                                                                                   \
    }                                                                                                                     \
    out[thread_of_grid()] = seen;                                                                                         \
  }
#define CA_4(TO, FROM) COPY("ca", 4, TO, FROM)
#define CA_8(TO, FROM) COPY("ca", 8, TO, FROM)
#define CA_16(TO, FROM) COPY("ca", 16, TO, FROM)
#define CG_16(TO, FROM) COPY("cg", 16, TO, FROM)
CHASE(copy_chase_ca_4, CA_4)
CHASE(copy_chase_ca_16, CA_16)
CHASE(copy_chase_cg_16, CG_16)
CHASE(copy_chase_nothing, NOTHING)

// The same by registers: LDG, STS, LDS.
extern "C" __global__ void copy_chase_registers(unsigned* out, int trips, const char* in, int spread) {
  extern __shared__ char room[];
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 16 * threadIdx.x;
  const char* from = in + (thread_of_grid() / 32) * static_cast<unsigned>(spread) + 16 * (threadIdx.x & 31);
  unsigned seen = 0;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      unsigned v;
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(from + seen) : "memory");
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(v) : "memory");
      seen = shared_word(to);
    }
  }
  out[thread_of_grid()] = seen;
}

// Eight copies in a group, then all are waited for: lanes side by side at a step of BYTES, into words that are STEP bytes apart.
#define MANY(NAME, COPY_ONE, BYTES, STEP)                                                                                 \
  extern "C" __global__ void NAME(unsigned* out, int trips, const char* in, int spread) {                                  \
    extern __shared__ char room[];                                                                                        \
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;                                                      \
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 4096 * (warp & 3) + STEP * lane;          \
    const char* from = in + (thread_of_grid() / 32) * static_cast<unsigned>(spread) + BYTES * lane;                       \
    COUNTED_LOOP(trips) {                                                                                                 \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) { COPY_ONE(to, from + 512 * k); }                                     \
      COMMIT;                                                                                                             \
      WAIT(0);                                                                                                            \
    }                                                                                                                     \
    out[thread_of_grid()] = shared_word(to);                                                                              \
  }
MANY(copy_many_ca_4, CA_4, 4, 4)
MANY(copy_many_ca_8, CA_8, 8, 8)
MANY(copy_many_ca_16, CA_16, 16, 16)
MANY(copy_many_cg_16, CG_16, 16, 16)
MANY(copy_many_ca_4_conflicts, CA_4, 4, 128)
MANY(copy_many_nothing, NOTHING, 4, 4)

// Eight copies a trip, each a group of its own, of which the last LEFT may be in flight.
#define GROUPS(LEFT)                                                                                                      \
  extern "C" __global__ void copy_groups_##LEFT(unsigned* out, int trips, const char* in, int spread) {                    \
    extern __shared__ char room[];                                                                                        \
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;                                                      \
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 4096 * (warp & 3) + 16 * lane;            \
    const char* from = in + (thread_of_grid() / 32) * static_cast<unsigned>(spread) + 16 * lane;                          \
    COUNTED_LOOP(trips) {                                                                                                 \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) {                                                                     \
        CG_16(to + 512 * k, from + 512 * k);                                                                              \
        COMMIT;                                                                                                           \
        WAIT(LEFT);                                                                                                       \
      }                                                                                                                   \
    }                                                                                                                     \
    out[thread_of_grid()] = shared_word(to);                                                                              \
  }
GROUPS(0)
GROUPS(1)
GROUPS(2)
GROUPS(3)
GROUPS(5)
