// Boxes out of shared memory by TMA, one thread a block.
//
// stored_ROWS_AHEAD, written_ROWS_AHEAD: boxes of so many rows of 128 bytes, so many groups under way, until they have been
//   read from shared memory or until they are in memory. AHEAD 1: how long one takes; more: how often an SM sends a line.
// added_ROWS_AHEAD: the same, added in fp32 to what is there.
// beside_ROWS: stored_ROWS_4 while three more warps load from shared memory without a pause: what boxes take of its banks.

#include "../common/hopper.cuh"
#include "micro.cuh"

enum class Until { kRead, kWritten };

template <int kRows, int kAhead, Until kUntil, bool kAdds>
__device__ __forceinline__ void send(const CUtensorMap& map, const char* shared, int iterations, int step, int rows) {
  int row = blockIdx.x * kRows % rows, slot = 0;
  COUNTED_LOOP(iterations) {
    const char* from = shared + slot * kRows * kSwizzledRow;
    if constexpr (kAdds) add_box(map, 0, row, from);
    else store_box(map, 0, row, from);
    commit_boxes();
    if constexpr (kUntil == Until::kRead) wait_for_boxes<kAhead - 1>();
    else wait_for_written_boxes<kAhead - 1>();
    row += step;
    if (row >= rows) row -= rows;
    if (++slot == kAhead) slot = 0;
  }
  wait_for_written_boxes();
}

#define SENT(NAME, ROWS, AHEAD, UNTIL, ADDS)                                                                        \
  extern "C" __global__ void __launch_bounds__(32)                                                                  \
      NAME##_##ROWS##_##AHEAD(const __grid_constant__ CUtensorMap map, int iterations, int step, int rows) {        \
    extern __shared__ __align__(1024) char shared[];                                                                \
    if (threadIdx.x == 0) send<ROWS, AHEAD, UNTIL, ADDS>(map, shared, iterations, step, rows);                      \
  }
SENT(stored, 8, 1, Until::kRead, false)
SENT(stored, 64, 1, Until::kRead, false)
SENT(stored, 64, 4, Until::kRead, false)
SENT(stored, 256, 4, Until::kRead, false)
SENT(written, 8, 1, Until::kWritten, false)
SENT(written, 64, 1, Until::kWritten, false)
SENT(written, 64, 4, Until::kWritten, false)
SENT(added, 8, 1, Until::kWritten, true)
SENT(added, 64, 4, Until::kWritten, true)

extern "C" __global__ void __launch_bounds__(128)
    beside_64(const __grid_constant__ CUtensorMap map, unsigned* out, int iterations, int step, int rows) {
  extern __shared__ __align__(1024) char shared[];
  if (threadIdx.x == 0) send<64, 4, Until::kRead, false>(map, shared, iterations, step, rows);
  if (threadIdx.x < 32) return;
  const uint32_t from = shared_word_address(shared) + threadIdx.x * 16;
  unsigned sum = 0;
  COUNTED_LOOP(iterations * 32) {
    unsigned a, b, c, d;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
    sum += a + b + c + d;
  }
  out[blockIdx.x * 128 + threadIdx.x] = sum;
}
