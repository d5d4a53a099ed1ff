// Calibration: device memory.
//
// Isolates  loads that wait for the last, each to a line nobody has touched; streams read, written, copied and added; a stream
//           by warps and loads in flight; single sectors at strides (burst sections, rows, channels).
// Supports  hbm.{bytes_per_ns,controller_ns,t_rp,t_rcd,t_cl,row_bytes,access_bytes,queue_entries,read_requests,
//           write_high,write_low,t_wtr,t_rtw}, l1.{loads_in_flight,miss_lines}, l2.miss_entries, chip.sm_clock_mhz.
// Launch    by case.

#include "micro.cuh"

// One warp, all lanes at one address; `step` bytes on each time, within `mask` + 1. Every iteration is 8 loads.
extern "C" __global__ void dram_chase(const char* in, unsigned* out, int iterations, unsigned mask, unsigned step) {
  unsigned at = 0, loaded = 0;
  COUNTED_LOOP(iterations) {
    REPEAT_8(loaded = chase_l2(in + at, loaded); at = (at + step) & mask;)
  }
  out[thread_of_grid()] = loaded;
}

// All threads of the grid walk on together, COUNT x 16 bytes a thread a step.
#define READ(NAME, COUNT)                                                                 \
  extern "C" __global__ void NAME(const uint4* in, unsigned* out, int steps) {            \
    const unsigned threads = threads_of_grid();                                           \
    const uint4* at = in + thread_of_grid();                                              \
    unsigned sum = 0;                                                                     \
    _Pragma("unroll 1") for (int step = 0; step < steps; ++step) {                        \
      uint4 v[COUNT];                                                                     \
      _Pragma("unroll") for (int k = 0; k < COUNT; ++k, at += threads) v[k] = *at;        \
      _Pragma("unroll") for (int k = 0; k < COUNT; ++k) sum ^= mixed(v[k]);               \
    }                                                                                     \
    out[thread_of_grid()] = sum;                                                          \
  }

READ(dram_read_1, 1)
READ(dram_read_4, 4)

extern "C" __global__ void dram_write(uint4* out, int steps) {
  const unsigned x = threadIdx.x, y = x * 3, z = x * 5, w = x * 7;
  const unsigned threads = threads_of_grid();
  uint4* at = out + thread_of_grid();
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < 4; ++k, at += threads) *at = make_uint4(x, y, z, w);
  }
}

extern "C" __global__ void dram_copy(const uint4* __restrict__ in, uint4* __restrict__ out, int steps) {
  const unsigned threads = threads_of_grid();
  unsigned at = thread_of_grid();
#pragma unroll 1
  for (int step = 0; step < steps; ++step, at += 4 * threads) {
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = in[at + k * threads];
#pragma unroll
    for (int k = 0; k < 4; ++k) out[at + k * threads] = v[k];
  }
}

// Two read, one written.
extern "C" __global__ void dram_add(const uint4* __restrict__ a, const uint4* __restrict__ b, uint4* __restrict__ out, int steps) {
  const unsigned threads = threads_of_grid();
  unsigned at = thread_of_grid();
#pragma unroll 1
  for (int step = 0; step < steps; ++step, at += 2 * threads) {
    uint4 v[2], w[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      v[k] = a[at + k * threads];
      w[k] = b[at + k * threads];
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) out[at + k * threads] = make_uint4(v[k].x + w[k].x, v[k].y + w[k].y, v[k].z + w[k].z, v[k].w + w[k].w);
  }
}

// A word every `stride` bytes by neighbouring threads; the grid walks on together.
extern "C" __global__ void dram_strided(const char* in, unsigned* out, int steps, unsigned stride) {
  const unsigned long long on = static_cast<unsigned long long>(threads_of_grid()) * stride;
  const char* at = in + static_cast<unsigned long long>(thread_of_grid()) * stride;
  unsigned sum = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, at += on) sum ^= *reinterpret_cast<const unsigned*>(at);
  out[thread_of_grid()] = sum;
}
