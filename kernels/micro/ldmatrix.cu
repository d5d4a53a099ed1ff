// Calibration: matrices of 8 x 8 halves between registers and shared memory (ldmatrix, stmatrix), and movmatrix.
//
// Isolates  loads that wait for the last, of 1, 2 and 4 matrices, transposed or not, by the banks' conflicts; loads and stores
//           that do not wait, by warps and conflicts; a store and the load of what it stored; loads beside ordinary ones,
//           stores and asynchronous copies; the transposition in registers. Stores are of sm_90 (on sm_80: nothing).
// Supports  latency.{shared_load,movm}, memory_pipe.{register_cycles,movm_interval,shared_wavefront_cycles,
//           shared_conflict_latency,port_wavefront_cycles,queue_entries}.
// Launch    132 blocks of 32 to 512.
// Args      out[threads], trips, pitch: bytes from row to row (16: no conflict; 32, 64, 128: 2, 4 and 8 ways), in (of zeros).
//           A trip is 16 operations.

#include "micro.cuh"

static __device__ __forceinline__ unsigned zeroed_rows(char* room, int pitch) {
  for (int i = threadIdx.x; i < 32 * 128; i += blockDim.x) reinterpret_cast<unsigned*>(room)[i] = 0;
  __syncthreads();
  return static_cast<unsigned>(__cvta_generic_to_shared(room)) + pitch * (threadIdx.x & 31);
}
#define ROOM __shared__ __align__(128) char room[4 * 32 * 128 + 8192]

#define X1 "=r"(v[0])
#define X2 "=r"(v[0]), "=r"(v[1])
#define X4 "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
#define LDSM_1 asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : X1 : "r"(at) : "memory")
#define LDSM_2 asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : X2 : "r"(at) : "memory")
#define LDSM_4 asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : X4 : "r"(at) : "memory")
#define LDSM_1_TRANS asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : X1 : "r"(at) : "memory")
#define LDSM_4_TRANS \
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : X4 : "r"(at) : "memory")
#if __CUDA_ARCH__ >= 900
#define STSM_1 asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(at), "r"(v[0]) : "memory")
#define STSM_2 asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(v[0]), "r"(v[1]) : "memory")
#define STSM_4                                                                                                          \
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]), "r"(v[2]), \
               "r"(v[3]) : "memory")
#define STSM_4_TRANS                                                                                                    \
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v[0]), "r"(v[1]), \
               "r"(v[2]), "r"(v[3]) : "memory")
#else
#define STSM_1
#define STSM_2
#define STSM_4
#define STSM_4_TRANS
#endif
#define LDS asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(other) : "r"(word) : "memory")
#define LDS_4                                                                          \
  asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"                     \
               : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory")
#define STS asm volatile("st.volatile.shared.u32 [%0], %1;" ::"r"(word), "r"(trips) : "memory")
#define COPY asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(copy_to), "l"(from) : "memory")
#define COMMIT asm volatile("cp.async.commit_group; cp.async.wait_group 2;" ::: "memory")

// The next address is made of what was loaded.
#define CHAIN(NAME, STEP)                                                                            \
  extern "C" __global__ void NAME(unsigned* out, int trips, int pitch, const char*) {                \
    ROOM;                                                                                            \
    const unsigned first = zeroed_rows(room, pitch);                                                 \
    unsigned at = first, v[4] = {0, 0, 0, 0};                                                        \
    COUNTED_LOOP(trips) { REPEAT_16(STEP; at = first + v[0];) }                                      \
    out[thread_of_grid()] = at;                                                                      \
  }
CHAIN(ldsm_1_chain, LDSM_1)
CHAIN(ldsm_2_chain, LDSM_2)
CHAIN(ldsm_4_chain, LDSM_4)
CHAIN(ldsm_1_trans_chain, LDSM_1_TRANS)
CHAIN(ldsm_4_trans_chain, LDSM_4_TRANS)
CHAIN(stsm_ldsm_1_chain, STSM_1; LDSM_1)
CHAIN(stsm_ldsm_4_chain, STSM_4; LDSM_4)

#define MANY(NAME, STEP)                                                                             \
  extern "C" __global__ void NAME(unsigned* out, int trips, int pitch, const char* in) {             \
    ROOM;                                                                                            \
    const unsigned at = zeroed_rows(room, pitch);                                                    \
    [[maybe_unused]] const unsigned word =                                                           \
        static_cast<unsigned>(__cvta_generic_to_shared(room)) + 4 * (threadIdx.x & 31);              \
    [[maybe_unused]] const unsigned copy_to =                                                        \
        static_cast<unsigned>(__cvta_generic_to_shared(room)) + 32 * 128 * 4 + 16 * threadIdx.x;     \
    [[maybe_unused]] const char* from = in + 16 * thread_of_grid();                                  \
    unsigned v[4] = {0, 0, 0, 0}, sum = 0;                                                           \
    [[maybe_unused]] unsigned other = 0, w[4] = {0, 0, 0, 0};                                        \
    COUNTED_LOOP(trips) { REPEAT_16(STEP; sum ^= v[0] ^ v[1] ^ v[2] ^ v[3] ^ other ^ w[0] ^ w[1] ^ w[2] ^ w[3];) } \
    out[thread_of_grid()] = sum;                                                                     \
  }
MANY(ldsm_1, LDSM_1)
MANY(ldsm_2, LDSM_2)
MANY(ldsm_4, LDSM_4)
MANY(ldsm_4_trans, LDSM_4_TRANS)
MANY(ldsm_4_lds, LDSM_4; LDS)
MANY(ldsm_4_lds_4, LDSM_4; LDS_4)
MANY(ldsm_4_sts, LDSM_4; STS)
MANY(ldsm_4_copy, LDSM_4; COPY; COMMIT)

#define STORES(NAME, STEP)                                                                           \
  extern "C" __global__ void NAME(unsigned* out, int trips, int pitch, const char*) {                \
    ROOM;                                                                                            \
    const unsigned at = zeroed_rows(room, pitch);                                                    \
    const unsigned v[4] = {threadIdx.x, threadIdx.x * 3, threadIdx.x * 5, threadIdx.x * 7};          \
    COUNTED_LOOP(trips) { REPEAT_16(STEP;) }                                                         \
    __syncthreads();                                                                                 \
    out[thread_of_grid()] = reinterpret_cast<unsigned*>(room)[threadIdx.x] + v[0] + v[1] + v[2] + v[3] + at; \
  }
STORES(stsm_1, STSM_1)
STORES(stsm_2, STSM_2)
STORES(stsm_4, STSM_4)
STORES(stsm_4_trans, STSM_4_TRANS)

// In registers.
#define REGISTER_CHAINS(NAME, COUNT, OPERATION)                                                       \
  extern "C" __global__ void NAME(unsigned* out, int trips, int pitch, const char*) {                \
    unsigned a[COUNT];                                                                               \
    [[maybe_unused]] const unsigned b = pitch;                                                       \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) a[j] = threadIdx.x * (j + 1);                  \
    COUNTED_LOOP(trips) {                                                                            \
      _Pragma("unroll") for (int k = 0; k < 16; ++k) asm volatile(OPERATION : "+r"(a[k % COUNT]) : "r"(b)); \
    }                                                                                                \
    unsigned sum = 0;                                                                                \
    _Pragma("unroll") for (int j = 0; j < COUNT; ++j) sum ^= a[j];                                   \
    out[thread_of_grid()] = sum;                                                                     \
  }
#define TRANSPOSE "movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;"
#define PACK_BF16 "{ .reg .f32 x, y; mov.b32 x, %0; mov.b32 y, %1; cvt.rn.bf16x2.f32 %0, x, y; }"
#if __CUDA_ARCH__ >= 890
#define PACK_E4M3 "{ .reg .f32 x, y; .reg .b16 h; mov.b32 x, %0; mov.b32 y, %1; cvt.rn.satfinite.e4m3x2.f32 h, x, y; mov.b32 %0, {h, h}; }"
#define UNPACK_E4M3 "{ .reg .b16 l, h; mov.b32 {l, h}, %0; cvt.rn.f16x2.e4m3x2 %0, l; }"
#else
#define PACK_E4M3 ""
#define UNPACK_E4M3 ""
#endif
REGISTER_CHAINS(movm_chain, 1, TRANSPOSE)
REGISTER_CHAINS(movm, 8, TRANSPOSE)
REGISTER_CHAINS(pack_bf16_chain, 1, PACK_BF16)
REGISTER_CHAINS(pack_bf16, 8, PACK_BF16)
REGISTER_CHAINS(pack_e4m3_chain, 1, PACK_E4M3)
REGISTER_CHAINS(pack_e4m3, 8, PACK_E4M3)
REGISTER_CHAINS(unpack_e4m3_chain, 1, UNPACK_E4M3)
REGISTER_CHAINS(unpack_e4m3, 8, UNPACK_E4M3)
