// Calibration: what L2 changes in place: reductions of few lanes, and words of a sector written one by one.
//
// Isolates  reductions of some lanes of many warps on one word, on words of a sector, of a line, of lines (modify_lanes); stores
//           of words that share a sector, from the lanes of one warp or from the warps of a block in turn, as a transposed
//           write makes them (modify_columns).
// Supports  l2.{atomic_interval,atomic_word_interval}, the cost of a partial write (sim/timing/memory/memory.cpp).
// Launch    blocks of 256 threads.
// Args      by kernel.

#include "micro.cuh"

// `lanes` lanes of every warp add to words `apart` words from each other, 8 times an iteration; the warps take `owners` lines in
// turn.
extern "C" __global__ void modify_lanes(float* sums, int iterations, int lanes, int apart, int owners) {
  const unsigned lane = threadIdx.x % 32;
  if (lane >= lanes) return;
  float* mine = sums + lane * apart + thread_of_grid() / 32 % owners * 32;
  const float value = threadIdx.x;
  COUNTED_LOOP(iterations) { REPEAT_8(asm volatile("red.global.add.f32 [%0], %1;" ::"l"(mine), "f"(value) : "memory");) }
}

// Of sectors `stride` words apart, `words` words are written: by a lane each (turns 0), or by a warp each, of 32 sectors.
extern "C" __global__ void modify_columns(unsigned* out, int count, int words, int stride, int turns) {
  const unsigned lane = threadIdx.x % 32, thread = thread_of_grid();
  const unsigned warp = thread / 32, word = turns ? warp % words : lane % words;
  const unsigned sector = turns ? warp / words * 32 + lane : thread / words;
  unsigned* to = out + static_cast<unsigned long long>(sector) * stride + word;
  const unsigned long long step = static_cast<unsigned long long>(threads_of_grid()) / words * stride;
#pragma unroll 1
  for (int i = 0; i < count; ++i, to += step) asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(thread) : "memory");
}
