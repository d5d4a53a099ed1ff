// Calibration: reads of special registers and of constants, as every kernel begins with them.
//
// Isolates  how many reads an SM serves: special_sm reads what is the same for all lanes (8 a trip), special_block
// block indices (3),
//           special_thread thread indices (3), special_constant LDC at addresses from registers (4, one after another).
// Supports  pipes.adu.interval, latency.s2r, issue.constant_hit_cycles.
// Launch    one block an SM, of 1 to 32 warps.
// Args      out[threads], trips.

#include "micro.cuh"

__constant__ unsigned table[16];

#define SPECIAL(NAME, ...)                                        \
  extern "C" __global__ void NAME(unsigned* out, int trips) {     \
    unsigned sum = 0;                                             \
    COUNTED_LOOP(trips){__VA_ARGS__} out[thread_of_grid()] = sum; \
  }
#define READ(special)                                       \
  {                                                         \
    unsigned got;                                           \
    asm volatile("mov.u32 %0, %%" special ";" : "=r"(got)); \
    sum ^= got;                                             \
  }

SPECIAL(special_sm, REPEAT_8(READ("smid")))
SPECIAL(special_block, READ("ctaid.x") READ("ctaid.y") READ("ctaid.z"))
SPECIAL(special_thread, READ("tid.x") READ("tid.y") READ("tid.z"))
SPECIAL(special_constant, REPEAT_4(sum = table[sum & 15];))
