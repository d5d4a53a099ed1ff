// When DRAM refreshes its banks, seen by reads that have nothing else to wait for. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o refresh refresh.cu && ./refresh > refresh.csv
// The warps of one block read one sector of each 256 bytes of 32 MB, in no order, and write down when each read began and how
// long it took. A read that a refresh holds up comes back a fixed time after its end. What was seen is in refresh.csv:
//   latency    reads by how long they took, in steps of 20 cycles
//   period     cycles after which the ends of long waits come again: |sum of exp(2 pi i end / period)|, the highest
//   coherence  of the ends of two long waits within an aligned piece of memory: 1 for one phase, 0 for none in common
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../../kernels/micro/micro.cuh"

constexpr unsigned kReads = 131072, kStep = 256, kWarps = 32;
constexpr unsigned kLong = 900, kTooLong = 1340;  ///< waits for a refresh, not for an address to be translated

struct Read {
  unsigned start, cycles;
};

__device__ unsigned shuffled(unsigned x) {
  x = (x * 0x9E3779B1u) & (kReads - 1);
  x ^= x >> 7;
  x = (x * 0x85EBCA6Bu) & (kReads - 1);
  x ^= x >> 9;
  return (x * 0xC2B2AE35u) & (kReads - 1);
}

__global__ void read_all(const char* in, Read* reads) {
  for (unsigned page = threadIdx.x; page < kReads / 8192 * kStep / 256; page += blockDim.x)  // addresses are translated
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(reads[kReads].start) : "l"(in + page * (2u << 20) + 672));
  __syncthreads();
  for (unsigned i = threadIdx.x / 32; i < kReads; i += kWarps) {
    const unsigned chunk = shuffled(i), before = clock_now();
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(in + std::size_t{chunk} * kStep) : "memory");
    if (v != 0) asm volatile("st.global.u32 [%0], %1;" ::"l"(reads + kReads), "r"(v) : "memory");  // waits for v
    const unsigned after = clock_now();
    if (threadIdx.x % 32 == 0) reads[chunk] = {before, after - before};
  }
}

std::complex<double> phase(double end, double period) { return std::polar(1.0, 2 * M_PI * end / period); }

double power(const std::vector<double>& ends, double period) {
  std::complex<double> sum = 0;
  for (const double end : ends) sum += phase(end, period);
  return std::abs(sum);
}

void report(const std::vector<Read>& reads) {
  std::vector<unsigned> by_cycles(100);
  std::vector<double> ends;
  std::vector<unsigned> places;
  for (unsigned i = 0; i < reads.size(); ++i) {
    ++by_cycles[std::min(reads[i].cycles / 20, 99u)];
    if (reads[i].cycles < kLong || reads[i].cycles >= kTooLong) continue;
    ends.push_back(static_cast<double>(reads[i].start - reads[0].start + (1u << 30)) + reads[i].cycles);
    places.push_back(i);
  }
  std::puts("what,at,value");
  for (unsigned i = 0; i < by_cycles.size(); ++i)
    if (by_cycles[i] != 0) std::printf("latency,%u,%u\n", i * 20, by_cycles[i]);
  double best = 0, period = 0;
  const auto look = [&](double low, double high, double step) {
    for (double p = low; p < high; p += step)
      if (const double at = power(ends, p); at > best) best = at, period = p;
  };
  look(3000, 9000, 1.0);
  look(period - 1, period + 1, 0.05);
  std::printf("period,%.2f,%.0f\nlong_reads,%u,%zu\n", period, best, kLong, ends.size());
  for (unsigned bytes = 512; bytes <= 4u << 20; bytes *= 2) {
    double together = 0, pairs = 0;
    for (std::size_t i = 0; i < places.size();) {
      std::complex<double> sum = 0;
      double n = 0;
      for (const unsigned piece = places[i] / (bytes / kStep); i < places.size() && places[i] / (bytes / kStep) == piece; ++i)
        sum += phase(ends[i], period), n += 1;
      together += std::norm(sum) - n, pairs += n * (n - 1);
    }
    std::printf("coherence,%u,%.3f\n", bytes, together / pairs);
  }
}

int main() {
  char* in = nullptr;
  Read* reads = nullptr;
  std::vector<Read> seen(kReads);
  cudaMalloc(&in, std::size_t{kReads} * kStep + (64u << 20));
  cudaMemset(in, 0, std::size_t{kReads} * kStep);
  cudaMalloc(&reads, (kReads + 1) * sizeof(Read));
  cudaMemset(in + std::size_t{kReads} * kStep, 0, 64u << 20);  // L2 holds none of the rest
  read_all<<<1, kWarps * 32>>>(in, reads);
  if (cudaMemcpy(seen.data(), reads, kReads * sizeof(Read), cudaMemcpyDeviceToHost) != cudaSuccess) {
    std::fputs("refresh: no GPU, or the launch failed\n", stderr);
    return 1;
  }
  report(seen);
}
