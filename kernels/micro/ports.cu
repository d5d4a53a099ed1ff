// Calibration: which SMs share a way to L2, and how wide it is.
//
// Isolates  what SMs that write at once take from each other: each SM writes the same amount to lines of its own, over and over,
//           while the two SMs of one TPC may be left out. Those that then get faster share a way with it: on Hopper the TPCs of
//           a CPC, of which a GPC has three.
// Supports  chip.cpcs_per_gpc, crossbar.{cpc_write_bytes_per_cycle,slice_write_bytes_per_cycle}; validation/calibration/ports.cu looks
//           at sets of SMs.
// Launch    1024 threads, a block an SM, held apart by dynamic shared memory.
// Args      memory[grid * 32 KiB], out[SMs]: cycles of each SM, read with `forewarp-run --dump out=FILE`; trips; the TPC left out.

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
