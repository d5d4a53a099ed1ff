// Calibration: what a fence before the asynchronous proxy costs, as kernels have it that fill by other means what wgmma reads.
//
// Isolates  a fence of the block (MEMBAR.CTA), one of the proxies behind it (FENCE.VIEW.ASYNC): alone, after stores to shared
//           memory, after copies that are under way or waited for, and while loads from L2 are under way.
// Supports  issue.membar_cta_cycles, issue.membar_cta_interval, async.fence_view_cycles.
// Launch    132 blocks (one an SM) of any size.
// Args      out[threads], trips, in: zeros. A trip is 8 times what the name says.

#include "../common/hopper.cuh"
#include "micro.cuh"

#define BLOCK asm volatile("fence.acq_rel.cta;" ::: "memory")
#define VIEW asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
#define STORE(TO, V) asm volatile("st.shared.u32 [%0], %1;" ::"r"(TO), "r"(V) : "memory")
#define COPY(TO, FROM) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(TO), "l"(FROM) : "memory")
#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT asm volatile("cp.async.wait_group 0;" ::: "memory")

#define FENCED(NAME, BEFORE, FENCE, AFTER)                                                            \
  extern "C" __global__ void NAME(unsigned* out, int trips, const char* in) {                         \
    extern __shared__ char room[];                                                                    \
    const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 16 * threadIdx.x;     \
    const char* from = in + 16 * threadIdx.x;                                                         \
    unsigned v = 0;                                                                                   \
    COUNTED_LOOP(trips) {                                                                             \
      _Pragma("unroll") for (int k = 0; k < 8; ++k) {                                                 \
        BEFORE;                                                                                       \
        FENCE;                                                                                        \
        AFTER;                                                                                        \
      }                                                                                               \
    }                                                                                                 \
    out[thread_of_grid()] = v + at + static_cast<unsigned>(reinterpret_cast<unsigned long long>(from)); \
  }
#define NOTHING static_cast<void>(0)
#define COPIES                                                                    \
  _Pragma("unroll") for (unsigned c = 0; c < 4; ++c) COPY(at + 16384 * (c % 2), from + 16384 * c); \
  COMMIT
#define LOAD asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(from + v) : "memory")
#define USE v = v & 1

FENCED(alone_fence_block, NOTHING, BLOCK, NOTHING)
FENCED(alone_fence_view, NOTHING, VIEW, NOTHING)
FENCED(store_fence_none, STORE(at, v), NOTHING, NOTHING)
FENCED(store_fence_block, STORE(at, v), BLOCK, NOTHING)
FENCED(store_fence_view, STORE(at, v), VIEW, NOTHING)
FENCED(copies_fence_none, COPIES, NOTHING, WAIT)
FENCED(copies_fence_view, COPIES, VIEW, WAIT)
FENCED(waited_fence_none, COPIES; WAIT; __syncthreads(), NOTHING, NOTHING)
FENCED(waited_fence_view, COPIES; WAIT; __syncthreads(), VIEW, NOTHING)
FENCED(load_fence_none, LOAD, NOTHING, USE)
FENCED(load_fence_view, LOAD, VIEW, USE)
