// Calibration: what an asynchronous copy of 16 bytes a lane costs of which only the first lanes of each row read.
//
// Isolates  copies of 512 bytes from rows of 64 and 512 bytes that begin with a line, or 16, 48 or 112 bytes after it, as at the edge of
//           a matrix: the other lanes write zeros, or do not take part.
// Supports  ask_by_pairs (sim/trace/coalesce.cpp), by l1tex__t_sectors_pipe_lsu_mem_global_op_ld, and what Nsight Compute counts of
//           lanes that read nothing.
// Launch    one block of 4 warps.
// Args      out[threads], trips, in, bytes to the first row, lanes of a row that read. Each warp walks through 32 KiB a trip; rows are a
//           KiB apart.

#include "micro.cuh"

template <unsigned kRow, bool kZeros>
static __device__ __forceinline__ void copies(unsigned* out, int trips, const char* in, int start, unsigned lanes) {
  extern __shared__ __align__(128) char room[];
  constexpr unsigned kLanes = kRow / 16, kPitch = 1024;
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(room)) + 512 * warp + 16 * lane;
  const bool reads = lane % kLanes < lanes;
  const char* from = in + warp * 32768 + start + lane / kLanes * kPitch + lane % kLanes * 16;
  COUNTED_LOOP(trips) {
    if constexpr (kZeros) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(reads ? 16 : 0) : "memory");
    } else {
      asm volatile(
          "{\n"
          ".reg .pred reads;\n"
          "setp.ne.u32 reads, %2, 0;\n"
          "@reads cp.async.cg.shared.global [%0], [%1], 16;\n"
          "}\n" ::"r"(to), "l"(from), "r"(reads ? 1 : 0) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
    from += 4 * 32768;
  }
  out[thread_of_grid()] = *reinterpret_cast<unsigned*>(room + 4 * lane);
}

#define OF(KIND, ZEROS, ROW)                                                                                                \
  extern "C" __global__ void copy_parts_##KIND##_##ROW(unsigned* out, int trips, const char* in, int start, unsigned lanes) { \
    copies<ROW, ZEROS>(out, trips, in, start, lanes);                                                                       \
  }
OF(zeros, true, 64)
OF(zeros, true, 512)
OF(off, false, 64)
OF(off, false, 512)
