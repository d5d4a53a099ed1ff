// Calibration: branches.
//
// Isolates  a taken branch (loops of 1, 4 and 16 dependent FFMA; forward branches over 16 FFMA taken or not), operations
//           that are predicated off, two sides of a branch run one after the other, lanes that loop longer than others.
// Supports  issue.branch_cycles, pipes.cbu.{interval,latency}; divergence.
// Launch    132 blocks of 32 (or more).
// Args      out[threads], iterations, and where named a number that turns the branch.

#include "micro.cuh"

#define FFMA asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(a) : "f"(b), "f"(c));
#define BODY(LENGTH)                                                                 \
  const float b = threadIdx.x * 0.5f, c = threadIdx.x * 0.25f;                       \
  float a = threadIdx.x;                                                             \
  COUNTED_LOOP(iterations) { REPEAT_##LENGTH(FFMA) }                                 \
  out[thread_of_grid()] = a;

extern "C" __global__ void loop_2(float* out, int iterations) { BODY(2) }
extern "C" __global__ void loop_4(float* out, int iterations) { BODY(4) }
extern "C" __global__ void loop_16(float* out, int iterations) { BODY(16) }

// Eight forward branches an iteration, jumping over 16 FFMA each: taken when `skip` is not 0.
extern "C" __global__ void forward(float* out, int iterations, int skip) {
  const float b = threadIdx.x * 0.5f, c = threadIdx.x * 0.25f;
  float a = threadIdx.x;
  COUNTED_LOOP(iterations) {
    REPEAT_8(if (skip == 0) { REPEAT_16(FFMA) } FFMA)
  }
  out[thread_of_grid()] = a;
}

// 64 FFMA an iteration for threads below `limit`, predicated.
extern "C" __global__ void predicated(float* out, int iterations, int limit) {
  const float b = threadIdx.x * 0.5f, c = threadIdx.x * 0.25f;
  float a = threadIdx.x;
  COUNTED_LOOP(iterations) {
    REPEAT_64(asm volatile("{ .reg .pred p; setp.lt.s32 p, %3, %4; @p fma.rn.f32 %0, %0, %1, %2; }"
                           : "+f"(a) : "f"(b), "f"(c), "r"(threadIdx.x), "r"(limit));)
  }
  out[thread_of_grid()] = a;
}

// Two sides of 32 FFMA: lanes with a bit of `mask` take one, the others the other. Mask 0: one side only.
extern "C" __global__ void two_sides(float* out, int iterations, int mask) {
  const float b = threadIdx.x * 0.5f, c = threadIdx.x * 0.25f;
  float a = threadIdx.x;
  COUNTED_LOOP(iterations) {
    if (threadIdx.x & mask) {
      REPEAT_32(FFMA)
    } else {
      REPEAT_32(asm volatile("fma.rn.f32 %0, %0, %2, %1;" : "+f"(a) : "f"(b), "f"(c));)
    }
  }
  out[thread_of_grid()] = a;
}

// An inner loop of 8 FFMA with 1 + lane / 8 trips (uniform 4 when `same` is not 0).
extern "C" __global__ void longest_lane(float* out, int iterations, int same) {
  const float b = threadIdx.x * 0.5f, c = threadIdx.x * 0.25f;
  const int trips = same ? 4 : 1 + (threadIdx.x & 31) / 8;
  float a = threadIdx.x;
  COUNTED_LOOP(iterations) {
#pragma unroll 1
    for (int trip = 0; trip < trips; ++trip) { REPEAT_8(FFMA) }
  }
  out[thread_of_grid()] = a;
}
