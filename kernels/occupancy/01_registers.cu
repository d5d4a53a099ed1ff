// Occupancy, step 1: a block's elements held in registers, from 8 to 160 a thread.
//
// Shows   registers as the limit of resident warps: the same work an element with 34 to 255 registers a thread. Few
//         rounds make a copy that has more loads in flight a thread the fewer warps there are; many rounds make independent
//         FMAs that need the fewer warps the more of them a thread has.
// Bound   HBM with a round or two, the FMA pipe with hundreds.
// Launch  any block; grid ceil(n / (block * held)).
// Args    in[n], out[n] fp32, n, rounds.

template <int kHeld>
__device__ void hold(const float* __restrict__ in, float* __restrict__ out, int n, int rounds) {
  const int first = blockIdx.x * blockDim.x * kHeld + threadIdx.x;
  float held[kHeld];
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int i = first + k * blockDim.x;
    held[k] = i < n ? in[i] : 0.0f;
  }
#pragma unroll 1
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int k = 0; k < kHeld; ++k) held[k] = held[k] * 0.5f + held[(k + 1) % kHeld];
  }
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int i = first + k * blockDim.x;
    if (i < n) out[i] = held[k];
  }
}

#define HOLD(held)                                                                                                     \
  extern "C" __global__ void hold_##held(const float* __restrict__ in, float* __restrict__ out, int n, int rounds) {   \
    hold<held>(in, out, n, rounds);                                                                                    \
  }

HOLD(8)
HOLD(16)
HOLD(32)
HOLD(64)
HOLD(96)
HOLD(160)
