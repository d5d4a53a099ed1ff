// Calibration: which SMs share a way to L2, and how wide it is.
//
// Isolates  what SMs that write at once take from each other: each SM writes the same amount to lines of its own, over and over,
//           while the two SMs of one TPC may be left out. Those that then get faster share a way with it: on Hopper the TPCs of
//           a CPC, of which a GPC has three. ports_write_lanes: what all of them together write of words, sectors and lines.
// Supports  chip.cpcs_per_gpc, crossbar.{cpc_fabric_writes,slice_write_bytes_per_cycle}; validation/calibration/ports.cu looks at sets
//           of SMs.
// Launch    1024 threads, a block an SM, held apart by dynamic shared memory.
// Args      memory[grid * 32 or 128 KiB], out[SMs]: cycles of each SM, read with `forewarp-run --dump out=FILE`; trips; the TPC left
//           out, or how many lanes write.

#include "micro.cuh"

extern "C" __global__ void __launch_bounds__(1024) ports_write(uint4* memory, unsigned* out, int trips, int left_out) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  if (static_cast<int>(sm / 2) == left_out) return;
  uint4* mine = memory + static_cast<size_t>(blockIdx.x) * 2048 + threadIdx.x;
  const unsigned start = clock();
  COUNTED_LOOP(trips) {
    REPEAT_4(asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(mine), "r"(iteration));
             asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(mine + 1024), "r"(iteration));)
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) out[sm] = clock() - start;
}

// Words of the first `lanes` lanes of each warp, 128 KiB of lines an SM: 32 write whole lines, 8 a sector each, 1 a word.
extern "C" __global__ void __launch_bounds__(1024) ports_write_lanes(unsigned* memory, unsigned* out, int trips, int lanes) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  unsigned* mine = memory + static_cast<size_t>(blockIdx.x) * 32768 + threadIdx.x;
  const unsigned start = clock();
  if (static_cast<int>(threadIdx.x % 32) < lanes) {
    COUNTED_LOOP(trips) {
      unsigned* at = mine + iteration % 4 * 8192;
      REPEAT_8(asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(iteration)); at += 1024;)
    }
  }
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) out[sm] = clock() - start;
}
