// How much longer a read takes whose line belongs to the other partition of L2: found there, as a copy, or in memory. On a
// machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o l2_far l2_far.cu && ./l2_far > l2_far.csv
// One lane reads lines 4224 bytes apart, one after the other: each SM on its own from memory, then after SM 0 has read them,
// then once more. A line that SM 0 has read, but another SM finds late, was not in the partition of that SM: SMs that find some
// so are of the other one, and those lines belong to SM 0's. A line of l2_far.csv is an SM; cycles, with 50 or so of clocks:
//   partition             0 as SM 0, 1 the other
//   memory_own, _other    medians of reads from memory, lines of the SM's own partition and of the other one
//   own, own_5, own_95    lines of its own partition in L2, mean and percentiles
//   other, copy           lines of the other partition: read for the first time by partition 1, and once copied
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../kernels/micro/micro.cuh"

constexpr unsigned kLines = 8192, kStep = 4224;
constexpr unsigned kLate = 420;  ///< what lies in the other partition, not what lies in one's own

__device__ unsigned load(const char* at) {
  unsigned x;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(at) : "memory");
  return x;
}

/// `in` is all zeros.
__global__ void read_by(unsigned sm, const char* in, unsigned* cycles) {
  unsigned here;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
  if (here != sm) return;
  unsigned zero = 0;
  for (unsigned page = 0; page <= kLines * kStep >> 21; ++page) zero |= load(in + page * (2u << 20) + 64);  // addresses are translated
  for (unsigned i = 0; i < kLines; ++i) {
    const unsigned before = clock_now();
    if (load(in + i * kStep + (before & zero)) != 0) return;  // the comparison waits for it
    cycles[i] = clock_now() - before;
  }
}

void check(cudaError_t e) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "l2_far: %s\n", cudaGetErrorString(e));
  std::exit(1);
}

using Cycles = std::vector<unsigned>;

struct Reader {
  unsigned sm;
  Cycles memory = Cycles(kLines), first = Cycles(kLines), again = Cycles(kLines);
};

double mean(const Cycles& v) {
  double sum = 0;
  for (const unsigned c : v) sum += c;
  return sum / static_cast<double>(v.size());
}

unsigned at(Cycles v, unsigned percent) {
  std::sort(v.begin(), v.end());
  return v[v.size() * percent / 100];
}

Cycles of(const Cycles& all, const std::vector<bool>& lines, bool which) {
  Cycles some;
  for (unsigned i = 0; i < kLines; ++i)
    if (lines[i] == which) some.push_back(all[i]);
  return some;
}

int main() {
  cudaDeviceProp gpu;
  check(cudaGetDeviceProperties(&gpu, 0));
  const std::size_t flush_bytes = 4ull * static_cast<std::size_t>(gpu.l2CacheSize);
  char *in, *flush;
  unsigned* cycles;
  check(cudaMalloc(&in, kLines * kStep + (2u << 20)));
  check(cudaMemset(in, 0, kLines * kStep + (2u << 20)));
  check(cudaMalloc(&flush, flush_bytes));
  check(cudaMalloc(&cycles, kLines * sizeof(unsigned)));
  const auto read = [&](unsigned sm, Cycles& to) {
    read_by<<<gpu.multiProcessorCount, 1>>>(sm, in, cycles);
    check(cudaMemcpy(to.data(), cycles, kLines * sizeof(unsigned), cudaMemcpyDeviceToHost));
  };
  std::vector<Reader> readers;
  Cycles unused(kLines);
  for (unsigned sm = 0; sm < static_cast<unsigned>(gpu.multiProcessorCount); sm += 2) {
    Reader r{sm};
    check(cudaMemset(flush, 1, flush_bytes));
    read(sm, r.memory);
    check(cudaMemset(flush, 2, flush_bytes));
    read(0, unused);
    read(sm, r.first);
    read(sm, r.again);
    readers.push_back(std::move(r));
  }
  const auto other = [](const Reader& r) { return at(r.first, 75) > kLate; };
  const auto witness = std::find_if(readers.begin(), readers.end(), other);
  if (witness == readers.end()) {
    std::fprintf(stderr, "l2_far: no SM finds lines late that SM 0 has read; L2 of this GPU has one partition\n");
    return 1;
  }
  std::vector<bool> of_zero(kLines);
  for (unsigned i = 0; i < kLines; ++i) of_zero[i] = witness->first[i] > kLate;
  std::printf("# gpu: %s\nsm,partition,memory_own,memory_other,own,own_5,own_95,other,copy\n", gpu.name);
  for (const Reader& r : readers) {
    const bool far = other(r);
    const Cycles own = of(r.again, of_zero, !far);
    std::printf("%u,%d,%u,%u,%.1f,%u,%u,", r.sm, far, at(of(r.memory, of_zero, !far), 50), at(of(r.memory, of_zero, far), 50), mean(own),
                at(own, 5), at(own, 95));
    if (far) std::printf("%.1f", mean(of(r.first, of_zero, far)));
    std::printf(",%.1f\n", mean(of(r.again, of_zero, far)));
  }
}
