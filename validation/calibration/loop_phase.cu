// What two warps of a sub-partition cost each other that go round the same short loop, by how far one is behind the
// other. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o loop_phase loop_phase.cu && ./loop_phase > loop_phase.csv
// Warps 0 and 4 of a block, all others gone, load a word each from shared memory, at banks of which so many lanes meet that one
// warp has it 4 to 64 cycles before the other; then both make 256 trips of dependent FMAs and a counter. Printed is, by the
// number of FMAs, how many cycles the later one was behind before the first trip and after the last, and how many cycles a
// trip took each of them (`alone`: how many it takes one warp).
#include <cstdio>
#include <set>
#include <tuple>

#include "../../kernels/micro/micro.cuh"

constexpr int kTrips = 256, kBlock = 512;

struct Times {
  unsigned begin, end;
};

/// `meet0`, `meet4`: lanes of warp 0, of warp 4 that load from one bank.
template <int kFmas>
__global__ void two_loops(float* out, Times* times, int trips, int meet0, int meet4, int warps) {
  __shared__ float words[1024];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < 1024; i += kBlock) words[i] = 0.25f;
  __syncthreads();
  if (warp % 4 != 0 || warp / 4 >= warps) return;
  const int meet = warp == 0 ? meet0 : meet4;
  float x = *static_cast<volatile float*>(&words[lane % meet * 32 + lane / meet]);
  x = x * 2.f + 1.f;
  asm volatile("" : "+f"(x)::"memory");
  const unsigned begin = clock_now();
#pragma unroll 1
  for (int i = 0; i < trips; ++i) {
#pragma unroll
    for (int k = 0; k < kFmas; ++k) x = x * (0.5f + k / 16.f) + (1.f + k);
  }
  asm volatile("" : "+f"(x)::"memory");
  const unsigned end = clock_now();
  out[threadIdx.x] = x;
  if (lane == 0) times[warp / 4] = {begin, end};
}

template <int kFmas>
bool measure(float* out, Times* times) {
  Times seen[2];
  const auto run = [&](int meet0, int meet4, int warps) {
    for (int again = 0; again < 2; ++again)  // the first finds no code in the caches
      two_loops<kFmas><<<1, kBlock>>>(out, times, kTrips, meet0, meet4, warps);
    return cudaMemcpy(seen, times, sizeof seen, cudaMemcpyDeviceToHost) == cudaSuccess;
  };
  const auto trip = [&](int i) { return static_cast<double>(seen[i].end - seen[i].begin) / kTrips; };
  if (!run(1, 1, 1)) return false;
  std::printf("%d,alone,,%.2f,\n", kFmas, trip(0));
  std::set<std::tuple<int, int, double, double>> rows;
  for (int meet0 : {1, 9})
    for (int meet4 = 1; meet4 <= 32; ++meet4) {
      if (!run(meet0, meet4, 2)) return false;
      const int before = static_cast<int>(seen[1].begin - seen[0].begin), after = static_cast<int>(seen[1].end - seen[0].end);
      rows.insert({before, after, trip(0), trip(1)});
    }
  for (const auto& [before, after, first, second] : rows)
    std::printf("%d,%d,%d,%.2f,%.2f\n", kFmas, before, after, first, second);
  return true;
}

int main() {
  float* out = nullptr;
  Times* times = nullptr;
  cudaMalloc(&out, kBlock * sizeof(float));
  cudaMalloc(&times, 2 * sizeof(Times));
  std::puts("fmas,behind_before,behind_after,cycles_0,cycles_4");
  if (measure<1>(out, times) && measure<2>(out, times) && measure<3>(out, times) && measure<4>(out, times) &&
      measure<6>(out, times) && measure<8>(out, times) && measure<12>(out, times))
    return 0;
  std::fputs("loop_phase: no GPU, or a launch failed\n", stderr);
  return 1;
}
