// Calibration: the tag stage of L1.
//
// Isolates  how many lines of one load are looked up at once, by the address bits in which they differ: two lines, and 32 lines at
//           a pitch. l1tex__t_output_wavefronts counts the passes.
// Supports  l1.tags_per_cycle, l1.tag_bank_bits.
// Launch    one block of any size an SM.

#include "micro.cuh"

// Lane i reads (i mod 2^bits) x pitch bytes on. ptxas makes one load of all of them, so passes a load can be compared, cycles of
// iterations can not (l1_strides.cu has loads that stay).
extern "C" __global__ void l1_tags(const char* in, unsigned* out, int iterations, unsigned pitch, int bits) {
  const char* at = in + (threadIdx.x & ((1u << bits) - 1)) * static_cast<unsigned long long>(pitch);
  unsigned sum = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(asm volatile("{ .reg .u32 v; ld.global.ca.u32 v, [%1]; xor.b32 %0, %0, v; }" : "+r"(sum) : "l"(at));)
  }
  out[thread_of_grid()] = sum;
}
