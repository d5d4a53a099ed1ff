// Calibration: what a tile of products loses to accesses to shared memory, copies, moves and additions between its products.
//
// Isolates  how much longer a product of a 4 x 4 tile takes with one or two of these after each product, or one after every second,
//           fourth or sixteenth.
// Supports  memory_pipe.register_cycles.
// Launch    132 blocks (one an SM) of 4 or 8 warps.
// Args      out[threads], trips, in (16 KiB a warp). A trip is 32 products a warp.

#include "micro.cuh"
#include "mma.cuh"

using Half = f16_16816_f32;

static __device__ __forceinline__ unsigned word(const unsigned* in) {
  unsigned v;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(v) : "l"(in));
  return v;
}

struct Loaded {
  unsigned n[16], m, word, wide;
  const char* from;
};

template <class Other>
static __device__ __forceinline__ void tile(unsigned* out, int trips, const char* in, Other other) {
  __shared__ __align__(128) unsigned room[4096 + 128];
  for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x) room[i] = 0;
  __syncthreads();
  unsigned a[4][4], b[4][2];
#pragma unroll
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = word(out + i);
#pragma unroll
  for (int i = 0; i < 8; ++i) b[i / 2][i % 2] = word(out + 16 + i);
  float sums[4][4][4] = {};
  Loaded r;
#pragma unroll
  for (int i = 0; i < 16; ++i) r.n[i] = i;
  r.m = threadIdx.x & 1;
  r.word = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 4 * (threadIdx.x & 31);
  r.wide = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 16 * (threadIdx.x & 31);
  r.from = in + thread_of_grid() / 32 * 16384 + 16 * (threadIdx.x & 31);
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      Half::multiply(sums[i / 4 % 4][i % 4], a[i / 4 % 4], b[i % 4]);
      other(r, i);
    }
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) all += sums[i / 16][i / 4 % 4][i % 4];
  unsigned of_others = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) of_others += r.n[i];
  out[thread_of_grid()] = __float_as_uint(all) + of_others;
}

// COUNT of them after every EVERYth product.
#define TILE(NAME, COUNT, EVERY, STEP)                                                    \
  extern "C" __global__ void tile_##NAME##_##COUNT##_of_##EVERY(unsigned* out, int trips, const char* in) { \
    tile(out, trips, in, [](Loaded& r, int k) {                                                \
      constexpr int kEvery = EVERY;                                                        \
      if (k % kEvery != 0) return;                                                         \
      _Pragma("unroll") for (int j = 0; j < COUNT; ++j) {                                  \
        [[maybe_unused]] const int i = (k / EVERY * COUNT + j) % 16, four = i % 4 * 4;     \
        STEP;                                                                              \
      }                                                                                    \
    });                                                                                    \
  }

#define LDS asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(r.n[i]) : "r"(r.word) : "memory")
#define LDS_4                                                                                                          \
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"                                                     \
               : "=r"(r.n[four]), "=r"(r.n[four + 1]), "=r"(r.n[four + 2]), "=r"(r.n[four + 3]) : "r"(r.wide) : "memory")
#define STS asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(r.word), "r"(r.m) : "memory")
#define MOVE asm volatile("mov.u32 %0, %1;" : "=r"(r.n[i]) : "n"(0x1234567))
#define ADD asm volatile("add.u32 %0, %0, %1;" : "+r"(r.n[i]) : "r"(r.m))
// Each of a trip goes to a place of its own, from lines that L2 has after the first trip; those of two trips are under way.
#define COPY                                                                                                             \
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(r.wide + 512 * k), "l"(r.from + 512 * k) : "memory");    \
  if (k + kEvery >= 32) asm volatile("cp.async.commit_group; cp.async.wait_group 1;" ::: "memory")
#define NOTHING

TILE(none, 1, 1, NOTHING)
TILE(lds, 1, 4, LDS)
TILE(lds, 1, 2, LDS)
TILE(lds, 1, 1, LDS)
TILE(lds, 2, 1, LDS)
TILE(lds_4, 1, 4, LDS_4)
TILE(lds_4, 1, 2, LDS_4)
TILE(sts, 1, 2, STS)
TILE(sts, 1, 1, STS)
TILE(copy, 1, 16, COPY)
TILE(move, 1, 1, MOVE)
TILE(move, 2, 1, MOVE)
TILE(add, 1, 2, ADD)
TILE(add, 1, 1, ADD)
TILE(add, 2, 1, ADD)
