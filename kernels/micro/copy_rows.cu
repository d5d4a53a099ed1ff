// Calibration: asynchronous copies past L1 of rows, as tiles of matrices are copied, alone and beside loads of matrices.
//
// Isolates  how fast copies go that take their 512 bytes from rows of 16 to 512 bytes, of one SM and of all; how long loads of matrices
//           wait behind copies that other warps of the SM send, one after another (chain) and as fast as they go (many).
// Supports  memory_pipe.fill_wavefront_cycles, crossbar.{sm_requests_per_cycle_x16,sm_response_bytes_per_cycle}.
// Launch    copy_rows: up to four warps, each of which writes places of its own. copies_beside: 8 warps, of which four copy, up to
//           four copies a trip, and four load.
// Args      copy_rows: out[threads], trips, in, bytes from block to block, from warp to warp. A trip is 8 copies a warp.
//           copies_beside: out, trips, in, copies of each of the four warps in a trip.

#include "micro.cuh"

#define COMMIT asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(N) asm volatile("cp.async.wait_group " #N ";" ::: "memory")

constexpr unsigned kRegion = 8192;  // of a warp: it walks along the rows in it, over and over

static __device__ __forceinline__ void copy_16(unsigned to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

/// Where a lane's 16 bytes of a warp's first copy are.
template <unsigned kRow>
static __device__ __forceinline__ unsigned in_rows() {
  constexpr unsigned kLanes = kRow / 16, kPitch = kRegion / (32 / kLanes);
  const unsigned lane = threadIdx.x & 31;
  return lane / kLanes * kPitch + lane % kLanes * 16;
}

template <unsigned kRow>
static __device__ __forceinline__ void rows(unsigned* out, int trips, const char* in, int of_block, int of_warp) {
  extern __shared__ char room[];
  constexpr unsigned kPitch = kRegion / (512 / kRow);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 4096 * (warp & 3) + 16 * lane;
  const char* from = in + blockIdx.x * static_cast<unsigned>(of_block) + warp * static_cast<unsigned>(of_warp) + in_rows<kRow>();
  unsigned along = 0;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      copy_16(to + 512 * k, from + along);
      along = (along + kRow) & (kPitch - 1);
      if (k % 4 == 3) {
        COMMIT;
        WAIT(1);
      }
    }
  }
  WAIT(0);
  out[thread_of_grid()] = *reinterpret_cast<unsigned*>(room + 4 * (threadIdx.x & 31));
}

/// Of a place of its own each: the compiler makes one of two loads from the same address.
template <int kOffset>
static __device__ __forceinline__ void load_matrices(unsigned (&v)[4], unsigned at) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4+%5];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(at), "n"(kOffset) : "memory");
}

#define LOAD_ROWS(AT) load_matrices<AT>(v, first); sum ^= v[0];
#define REPEAT_ROWS(AT) LOAD_ROWS(AT) LOAD_ROWS(AT + 512) LOAD_ROWS(AT + 1024) LOAD_ROWS(AT + 1536)

// A trip: four warps copy, the other four load matrices; then all meet.
template <unsigned kRow, bool kChain>
static __device__ __forceinline__ void beside(unsigned* out, int trips, const char* in, int copies) {
  __shared__ __align__(128) char room[8192 + 512];
  for (int i = threadIdx.x; i < (8192 + 512) / 4; i += blockDim.x) reinterpret_cast<unsigned*>(room)[i] = 0;
  constexpr unsigned kPitch = kRegion / (512 / kRow);
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const unsigned base = static_cast<unsigned>(__cvta_generic_to_shared(room));
  const unsigned to = base + 512 + 2048 * (warp & 3) + 16 * lane;
  const char* from = in + (blockIdx.x * 4 + warp) * kRegion + in_rows<kRow>();
  unsigned first = base + 16 * lane, at = first, along = 0, sum = 0;
  COUNTED_LOOP(trips) {
    __syncthreads();
    if (warp < 4) {
#pragma unroll 1
      for (int k = 0; k < copies; ++k) {
        copy_16(to + 512 * (k & 3), from + along);
        along = (along + kRow) & (kPitch - 1);
      }
      COMMIT;
      WAIT(2);
    } else if (kChain) {
      unsigned v[4];
#pragma unroll
      for (int k = 0; k < 12; ++k) {
        load_matrices<0>(v, at);
        at = first + v[0];
      }
    } else {
#pragma unroll 1
      for (int k = 0; k < 2; ++k) {
        unsigned v[4];
        REPEAT_ROWS(0)
        REPEAT_ROWS(2048)
        REPEAT_ROWS(4096)
        REPEAT_ROWS(6144)
      }
    }
  }
  out[thread_of_grid()] = at + sum;
}

#define OF_ROWS(ROW)                                                                                                                      \
  extern "C" __global__ void copy_rows_##ROW(unsigned* out, int trips, const char* in, int of_block, int of_warp) {                       \
    rows<ROW>(out, trips, in, of_block, of_warp);                                                                                         \
  }
OF_ROWS(16)
OF_ROWS(32)
OF_ROWS(64)
OF_ROWS(128)
OF_ROWS(512)

#define OF_BESIDE(ROW)                                                                                                                    \
  extern "C" __global__ void copies_beside_chain_##ROW(unsigned* out, int trips, const char* in, int copies) {                            \
    beside<ROW, true>(out, trips, in, copies);                                                                                            \
  }                                                                                                                                       \
  extern "C" __global__ void copies_beside_many_##ROW(unsigned* out, int trips, const char* in, int copies) {                             \
    beside<ROW, false>(out, trips, in, copies);                                                                                           \
  }
OF_BESIDE(64)
OF_BESIDE(128)
OF_BESIDE(512)
