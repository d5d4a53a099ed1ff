// How the warps of an SM get on when all send more than the SM can take. On a machine with a GPU, with caches that ncu empties:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o bursts bursts.cu &&
//   ncu --metrics gpc__cycles_elapsed.max --cache-control all --clock-control none --log-file /dev/null ./bursts > bursts.csv
// Each warp loads 40 or stores 96 lines of its own one after another, a word or 16 bytes a thread, writes down when it had sent 8 (12)
// of them, 16 (24) and so on, and when it had all data or a fence had all acknowledged. Printed are, in cycles since the first warp
// of its SM began, the first warp to get there and the last one (medians of the SMs), and where all SMs do so the last one of the
// fastest tenth of the SMs: those of small CPCs.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "../../kernels/micro/micro.cuh"

constexpr int kLoads = 40, kLoadsEach = 8, kStores = 96, kStoresEach = 12;
constexpr int kMostSent = kStores / kStoresEach, kMarks = kMostSent + 2, kSms = 132, kMostWarps = 32, kRuns = 5;

template <int kBits>
__device__ unsigned load(const char* at) {
  unsigned x, y, z, w;
  if constexpr (kBits == 32) asm volatile("ld.global.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  if constexpr (kBits == 128)
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(w) : "l"(at) : "memory");
  return x;
}

template <int kBits>
__device__ void store(char* at, unsigned value) {
  if constexpr (kBits == 32) asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
  if constexpr (kBits == 128) asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(value) : "memory");
}

/// Marks: the start, each so many sent, and all done.
template <int kBits, bool kStore>
__global__ void burst(char* memory, unsigned* out) {
  constexpr int kBytes = 32 * kBits / 8, kAll = kStore ? kStores : kLoads, kEach = kStore ? kStoresEach : kLoadsEach, kSent = kAll / kEach;
  const int lane = threadIdx.x % 32, of_all = thread_of_grid() / 32;
  char* at = memory + static_cast<std::size_t>(of_all) * kAll * kBytes + lane * (kBits / 8);
  unsigned when[kSent + 2], value[kStore ? 1 : kLoads], sum = 0;
  when[0] = clock_now();
#pragma unroll
  for (int i = 0; i < kAll; ++i) {
    if constexpr (kStore) {
      store<kBits>(at + i * kBytes, lane);
    } else {
      value[i] = load<kBits>(at + i * kBytes);
    }
    if (i % kEach == kEach - 1) when[1 + i / kEach] = clock_now();
  }
  if constexpr (kStore) {
    __threadfence();
  } else {
#pragma unroll
    for (int i = 0; i < kAll; ++i) sum += value[i];
    if (sum == 0x12345) out[0] = sum;
  }
  when[kSent + 1] = clock_now();
  if (lane == 0)
#pragma unroll
    for (int i = 0; i < kSent + 2; ++i) out[of_all * kMarks + i] = when[i];
}

double part(std::vector<double> of, double share) {
  const std::size_t at = std::min(of.size() - 1, static_cast<std::size_t>(share * static_cast<double>(of.size())));
  std::nth_element(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(at), of.end());
  return of[at];
}

/// What the warps of SMs wrote down: of each run, of each block, of each warp so many marks.
struct Clocks {
  int marks, warps, blocks;
  std::vector<unsigned> all;
};

void print(const char* access, int bits, const Clocks& clocks) {
  std::vector<std::vector<double>> first(clocks.marks), last(clocks.marks);
  for (std::size_t at = 0; at < clocks.all.size(); at += static_cast<std::size_t>(clocks.warps) * kMarks) {
    const unsigned* of_sm = &clocks.all[at];
    unsigned begin = of_sm[0];
    for (int w = 1; w < clocks.warps; ++w)
      if (static_cast<int>(of_sm[w * kMarks] - begin) < 0) begin = of_sm[w * kMarks];
    for (int mark = 0; mark < clocks.marks; ++mark) {
      unsigned least = ~0u, most = 0;
      for (int w = 0; w < clocks.warps; ++w) {
        least = std::min(least, of_sm[w * kMarks + mark] - begin);
        most = std::max(most, of_sm[w * kMarks + mark] - begin);
      }
      first[mark].push_back(least);
      last[mark].push_back(most);
    }
  }
  const auto row = [&](const char* who, const std::vector<std::vector<double>>& times, double share) {
    std::printf("%s,%d,%d,%d,%s", access, bits, clocks.blocks, clocks.warps, who);
    for (int mark = 1; mark <= kMostSent; ++mark)
      if (mark < clocks.marks - 1) {
        std::printf(",%.0f", part(times[mark], share));
      } else {
        std::printf(",");
      }
    std::printf(",%.0f\n", part(times[clocks.marks - 1], share));
  };
  row("first warp", first, 0.5);
  row("last warp", last, 0.5);
  if (clocks.blocks == kSms) row("last warp of fast SMs", last, 0.1);
}

template <int kBits, bool kStore>
bool measure(char* memory, unsigned* out) {
  for (int blocks : {1, kSms})
    for (int warps : {4, 12, kStore ? kMostWarps : 16}) {
      Clocks clocks{(kStore ? kStores / kStoresEach : kLoads / kLoadsEach) + 2, warps, blocks, {}};
      for (int again = 0; again < kRuns; ++again) {
        burst<kBits, kStore><<<blocks, 32 * warps>>>(memory, out);
        std::vector<unsigned> all(static_cast<std::size_t>(blocks) * warps * kMarks);
        if (cudaMemcpy(all.data(), out, all.size() * 4, cudaMemcpyDeviceToHost) != cudaSuccess) return false;
        if (again > 0) clocks.all.insert(clocks.all.end(), all.begin(), all.end());
      }
      print(kStore ? "store" : "load", kBits, clocks);
    }
  return true;
}

int main() {
  char* memory = nullptr;
  unsigned* out = nullptr;
  const std::size_t bytes = std::size_t{kSms} * kMostWarps * kStores * 512;
  cudaMalloc(&memory, bytes);
  cudaMalloc(&out, kSms * kMostWarps * kMarks * 4);
  cudaMemset(memory, 0, bytes);
  std::puts("access,bits,sms,warps,who,sent_1,sent_2,sent_3,sent_4,sent_5,sent_6,sent_7,sent_8,done");
  if (measure<32, false>(memory, out) && measure<128, false>(memory, out) && measure<32, true>(memory, out) && measure<128, true>(memory, out))
    return 0;
  std::fputs("bursts: no GPU, or a launch failed\n", stderr);
  return 1;
}
