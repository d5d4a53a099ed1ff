// Calibration: which stores L1 puts together, where they are not all of one warp to the same lines.
//
// Isolates  two stores a warp of 16 bytes in each of 8 rows, of which the second goes on in some rows and begins other lines in the
//           rest (lines_parts); 32 stores along rows whose pitch decides how many of them begin another line at a time (lines_along);
//           1 to 4 groups of 8 rows in turn (lines_turns); 1 to 4 groups of 1 to 8 lines in turn, a word of each at a time (lines_sets);
//           stores of 2 to 16 bytes a lane (lines_wide); warps of which each has another part of the same lines, all or side by side
//           as those of a product (lines_warps, lines_beside).
// Supports  the merging of stores (sim/timing/sm/memory_pipe.cpp).
// Launch    by case.
// Args      out, trips, and what the case varies.

#include "micro.cuh"

static __device__ __forceinline__ void store_word(char* at) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(1u) : "memory");
}

constexpr int kRegion = 1 << 15;  // bytes a warp has in a trip

extern "C" __global__ void lines_parts(char* out, int trips, int other) {
  const unsigned lane = threadIdx.x & 31, row = lane / 4;
  char* at = out + thread_of_grid() / 32 * kRegion + row * 512 + lane % 4 * 4;
  const unsigned next = 16 + (other >> row & 1) * 128;
  COUNTED_LOOP(trips) {
    store_word(at);
    store_word(at + next);
    at += threads_of_grid() / 32 * kRegion;
  }
}

extern "C" __global__ void lines_along(char* out, int trips, int pitch, int start) {
  const unsigned lane = threadIdx.x & 31;
  char* at = out + thread_of_grid() / 32 * kRegion + lane / 4 * pitch + lane % 4 * 4 + start;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int part = 0; part < 32; ++part) store_word(at + part * 16);
    at += threads_of_grid() / 32 * kRegion;
  }
}

template <int kGroups>
static __device__ __forceinline__ void turns(char* out, int trips, int pitch) {
  const unsigned lane = threadIdx.x & 31;
  char* at = out + thread_of_grid() / 32 * kRegion + lane / 4 * pitch + lane % 4 * 4;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int part = 0; part < 8; ++part)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) store_word(at + part * 16 + group * 8 * pitch);
    at += threads_of_grid() / 32 * kRegion;
  }
}

// A word of each of so many lines; lines are 512 bytes apart.
template <int kGroups>
static __device__ __forceinline__ void sets(char* out, int trips, int lines) {
  const unsigned lane = threadIdx.x & 31;
  if (lane >= lines) return;
  char* at = out + thread_of_grid() / 32 * kRegion + lane * 512;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int word = 0; word < 8; ++word)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) store_word(at + word * 4 + group * 4096);
    at += threads_of_grid() / 32 * kRegion;
  }
}

#define GROUPS(COUNT)                                                                                            \
  extern "C" __global__ void lines_turns_##COUNT(char* out, int trips, int pitch) { turns<COUNT>(out, trips, pitch); } \
  extern "C" __global__ void lines_sets_##COUNT(char* out, int trips, int lines) { sets<COUNT>(out, trips, lines); }
GROUPS(1)
GROUPS(2)
GROUPS(3)
GROUPS(4)

// Four lanes a row of 512 bytes, eight stores along it: each of a lane goes on where its last one ended (close), or all four
// lanes do (row).
template <typename T, bool kClose>
static __device__ __forceinline__ void wide(char* out, int trips) {
  const unsigned lane = threadIdx.x & 31;
  constexpr int kSize = sizeof(T), kStep = kClose ? kSize : 4 * kSize;
  char* at = out + thread_of_grid() / 32 * kRegion + lane / 4 * 512 + lane % 4 * (kClose ? 8 : 1) * kSize;
  COUNTED_LOOP(trips) {
#pragma unroll
    for (int part = 0; part < 8; ++part) *reinterpret_cast<volatile T*>(at + part * kStep) = T{1};
    at += threads_of_grid() / 32 * kRegion;
  }
}
#define WIDE(BYTES, TYPE)                                                                                                 \
  extern "C" __global__ void lines_wide_close_##BYTES(char* out, int trips) { wide<TYPE, true>(out, trips); }   \
  extern "C" __global__ void lines_wide_row_##BYTES(char* out, int trips) { wide<TYPE, false>(out, trips); }
WIDE(1, unsigned char)
WIDE(2, unsigned short)
WIDE(4, unsigned)
WIDE(8, unsigned long long)

// Warp w of each eight has the w-th 16 bytes of the same 8 lines.
extern "C" __global__ void lines_warps(char* out, int trips) {
  const unsigned lane = threadIdx.x & 31, warp = thread_of_grid() / 32;
  char* at = out + warp / 8 * kRegion + warp % 8 * 16 + lane / 4 * 512 + lane % 4 * 4;
  COUNTED_LOOP(trips) {
    store_word(at);
    at += (threads_of_grid() / 256 + 1) * kRegion;
  }
}

// Warps side by side, each with `width` bytes of the same 8 rows, 16 bytes a store; four of them a row, the others below.
extern "C" __global__ void lines_beside(char* out, int trips, int pitch, int width) {
  const unsigned lane = threadIdx.x & 31, warp = thread_of_grid() / 32;
  char* at = out + warp / 4 * 8 * pitch + warp % 4 * width + lane / 4 * pitch + lane % 4 * 4;
  COUNTED_LOOP(trips) {
#pragma unroll 4
    for (int part = 0; part < width; part += 16) store_word(at + part);
    at += 64 * pitch;
  }
}
