// How fast an SM takes loads that find their lines in L1 or do not, before anything is full. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o miss_rate miss_rate.cu && ./miss_rate > miss_rate.csv
// Each warp of a block sends 40 loads one after another, of 32, 64 or 128 bits a lane, as LDG or as LDG.CONSTANT, and writes down
// when it had sent 8 of them, 16 and so on. Printed is when the last warp had sent so many, in cycles since the first began:
// with 4, 8 and 12 warps, on one SM and on all.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "../../kernels/micro/micro.cuh"

constexpr int kLoads = 40, kMarks = kLoads / 8, kSms = 132, kMostWarps = 12;

template <int kBits, bool kConstant>
__device__ unsigned load(const char* at) {
  unsigned x, y, z, w;
  if constexpr (kBits == 32 && kConstant) asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  if constexpr (kBits == 32 && !kConstant) asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  if constexpr (kBits == 64 && kConstant) asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(at) : "memory");
  if constexpr (kBits == 64 && !kConstant) asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(at) : "memory");
  if constexpr (kBits == 128 && kConstant)
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at) : "memory");
  if constexpr (kBits == 128 && !kConstant)
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at) : "memory");
  return x;
}

template <int kBits, bool kConstant>
__global__ void send(const char* in, unsigned* out, int hit) {
  constexpr int kBytes = 32 * kBits / 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, of_all = blockIdx.x * (blockDim.x / 32) + warp;
  // A hit is one of the lines that the warp has read before; pages are known either way.
  const char* at = in + static_cast<std::size_t>(of_all) * (kLoads + 1) * kBytes + lane * (kBits / 8);
  unsigned sum = load<kBits, kConstant>(at + kLoads * kBytes), sent[kMarks + 1], value[kLoads];
  const char* from = hit ? at + kLoads * kBytes : at;
  const int step = hit ? 0 : kBytes;
  asm volatile("" : "+r"(sum)::"memory");
  __syncthreads();
  sent[0] = clock_now();
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    value[i] = load<kBits, kConstant>(from + i * step);
    if (i % 8 == 7) sent[1 + i / 8] = clock_now();
  }
  for (int i = 0; i < kLoads; ++i) sum += value[i];
  if (lane == 0)
    for (int i = 0; i <= kMarks; ++i) out[of_all * (kMarks + 1) + i] = sent[i];
  if (sum == 0x12345) out[0] = sum;
}

__global__ void read_through(const uint4* in, unsigned* out, std::size_t words) {
  unsigned sum = 0;
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) sum ^= in[i].x;
  if (sum == 0x12345) *out = sum;
}

/// Cycles after which the last warp of a block had sent the loads before a mark, since the first warp began.
unsigned sent_by_all(const unsigned* block, int warps, int mark) {
  unsigned first = block[0], last = 0;
  for (int w = 1; w < warps; ++w)
    if (static_cast<int>(block[w * (kMarks + 1)] - first) < 0) first = block[w * (kMarks + 1)];
  for (int w = 0; w < warps; ++w) last = std::max(last, block[w * (kMarks + 1) + 1 + mark] - first);
  return last;
}

constexpr std::size_t kOther = 256u << 20;

template <int kBits, bool kConstant>
bool measure(const char* in, const uint4* other, unsigned* out) {
  for (bool hit : {true, false})
    for (int blocks : {1, kSms})
      for (int warps : {4, 8, kMostWarps}) {
        std::vector<std::vector<double>> seen(kMarks);
        for (int again = 0; again < 9; ++again) {
          read_through<<<1056, 256>>>(other, out, kOther / 16);
          send<kBits, kConstant><<<blocks, 32 * warps>>>(in, out, hit);
          std::vector<unsigned> all(static_cast<std::size_t>(blocks) * warps * (kMarks + 1));
          if (cudaMemcpy(all.data(), out, all.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
          if (again == 0) continue;
          for (int mark = 0; mark < kMarks; ++mark) {
            double sum = 0;
            for (int b = 0; b < blocks; ++b) sum += sent_by_all(&all[b * warps * (kMarks + 1)], warps, mark);
            seen[mark].push_back(sum / blocks);
          }
        }
        std::printf("%s,%d,%s,%d,%d", kConstant ? "LDG.CONSTANT" : "LDG", kBits, hit ? "hit" : "miss", blocks, warps);
        for (auto& times : seen) {
          std::nth_element(times.begin(), times.begin() + 4, times.end());
          std::printf(",%.0f", times[4]);
        }
        std::puts("");
      }
  return true;
}

int main() {
  char *in = nullptr, *other = nullptr;
  unsigned* out = nullptr;
  const std::size_t bytes = std::size_t{kSms} * kMostWarps * (kLoads + 1) * 512;
  cudaMalloc(&in, bytes);
  cudaMalloc(&other, kOther);
  cudaMalloc(&out, kSms * kMostWarps * (kMarks + 1) * 4);
  cudaMemset(in, 0, bytes);
  cudaMemset(other, 0, kOther);
  const auto* rest = reinterpret_cast<const uint4*>(other);
  std::puts("load,bits,found,blocks,warps,sent_8,sent_16,sent_24,sent_32,sent_40");
  if (measure<32, false>(in, rest, out) && measure<32, true>(in, rest, out) && measure<64, false>(in, rest, out) &&
      measure<64, true>(in, rest, out) && measure<128, false>(in, rest, out) && measure<128, true>(in, rest, out))
    return 0;
  std::fputs("miss_rate: no GPU, or a launch failed\n", stderr);
  return 1;
}
