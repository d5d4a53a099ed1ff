// Calibration: what an asynchronous copy of 16 bytes a lane asks L2 for.
//
// Isolates  copies of 512 bytes from rows of 16 to 512 bytes that begin with a line, or 16, 32, 48 or 112 bytes after it; each trip
//           copies from other lines.
// Supports  ask_by_pairs (sim/trace/coalesce.cpp), by lts__t_requests_srcunit_tex and l1tex__m_xbar2l1tex_read_sectors.
// Launch    one block of 4 warps.
// Args      out[threads], trips, in, bytes to the first row. Each warp walks through 32 KiB a trip; rows are a KiB apart.

#include "micro.cuh"

template <unsigned kRow>
static __device__ __forceinline__ void copies(unsigned* out, int trips, const char* in, int start) {
  extern __shared__ __align__(128) char room[];
  constexpr unsigned kLanes = kRow / 16, kPitch = 1024;
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 512 * warp + 16 * lane;
  const char* from = in + warp * 32768 + start + lane / kLanes * kPitch + lane % kLanes * 16;
  COUNTED_LOOP(trips) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
    asm volatile("cp.async.wait_all;" ::: "memory");
    from += 4 * 32768;
  }
  out[thread_of_grid()] = *reinterpret_cast<unsigned*>(room + 4 * lane);
}

#define OF(ROW)                                                                                        \
  extern "C" __global__ void copy_requests_##ROW(unsigned* out, int trips, const char* in, int start) { \
    copies<ROW>(out, trips, in, start);                                                                \
  }
OF(16)
OF(32)
OF(64)
OF(128)
OF(256)
OF(512)
