// Divergence: paths of equal length taken by lanes of one warp, and the same work regrouped so that each warp takes one path.
//
// Shows   serialised paths: with w ways by lane a warp runs every path with 32 / w lanes, w times the issue slots; by warp it
//         runs one with all lanes. Every path is code of its own, so w ways also fetch w times the instructions.
//         divergence_first_four is `if (threadIdx.x < 4) A else X`: only the first warp of a block pays, for both sides.
// Bound   issue of dependent FMAs; the time follows the number of paths a warp takes.
// Launch  block 256 (divergence_first_four also 32, where every warp diverges), grid ceil(n / block).
// Args    x[n], y[n] fp32, n, steps (of the loop in every path).

// Path number kPath: the same loop of FMAs with constants of its own.
template <int kPath>
__device__ float path(float x, int steps) {
#pragma unroll 1
  for (int i = 0; i < steps; ++i) {
    x = x * (0.5f + kPath / 128.0f) + (1.0f + kPath);
    x = x * (0.25f + kPath / 128.0f) + (2.0f + kPath);
    x = x * (0.125f + kPath / 128.0f) + (3.0f + kPath);
    x = x * (0.0625f + kPath / 128.0f) + (4.0f + kPath);
  }
  return x;
}

// The path that `way` names, of kPath .. kWays - 1: a chain of tests.
template <int kWays, int kPath = 0>
__device__ float one_of(int way, float x, int steps) {
  if constexpr (kPath + 1 < kWays) {
    if (way != kPath) return one_of<kWays, kPath + 1>(way, x, steps);
  }
  return path<kPath>(x, steps);
}

template <int kWays, bool kByWarp>
__device__ void branch(const float* __restrict__ x, float* __restrict__ y, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = one_of<kWays>((kByWarp ? i / 32 : i) % kWays, x[i], steps);
}

extern "C" __global__ void divergence_first_four(const float* __restrict__ x, float* __restrict__ y, int n, int steps) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = one_of<2>(threadIdx.x < 4 ? 0 : 1, x[i], steps);
}

#define WAYS(ways)                                                                                                  \
  extern "C" __global__ void divergence_by_lane_##ways(const float* __restrict__ x, float* __restrict__ y, int n,   \
                                                       int steps) {                                                 \
    branch<ways, false>(x, y, n, steps);                                                                            \
  }                                                                                                                 \
  extern "C" __global__ void divergence_by_warp_##ways(const float* __restrict__ x, float* __restrict__ y, int n,   \
                                                       int steps) {                                                 \
    branch<ways, true>(x, y, n, steps);                                                                             \
  }

WAYS(2)
WAYS(4)
WAYS(8)
WAYS(32)
