// How far translations reach: what a load costs as more pages are in use. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -arch=sm_90 -o translation translation.cu && ./translation > translation.csv
// One lane of an SM follows pointers, one in each 2 MB page of a piece of memory, in an order in which no two neighbours follow
// each other, after it has followed all of them before: every line is in L2 by then, so that what is more than an L2 hit is the
// way to its address. On one SM, and on all at once, each from a page of its own.
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

constexpr std::size_t kPage = 2u << 20;
constexpr unsigned kSms = 132, kTimed = 2048;

/// Where in its page a pointer stands: lines of all pages spread over L2.
__host__ __device__ std::size_t place(std::size_t page) { return page * kPage + page * 0x9E3779B1u % (kPage / 128) * 128; }

__global__ void link(char* memory, unsigned pages, unsigned step) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < pages; i += gridDim.x * blockDim.x)
    *reinterpret_cast<std::uint64_t*>(memory + place(i)) = place((i + step) % pages);
}

__device__ std::uint64_t follow(const char* memory, std::uint64_t at, unsigned loads) {
  for (unsigned i = 0; i < loads; ++i)
    asm volatile("ld.global.cg.u64 %0, [%1];" : "=l"(at) : "l"(memory + at) : "memory");
  return at;
}

__global__ void walk(const char* memory, unsigned pages, unsigned timed, float* cycles, std::uint64_t* out) {
  std::uint64_t at = place(static_cast<std::uint64_t>(blockIdx.x) * pages / gridDim.x);
  at = follow(memory, at, pages);
  const long long begin = clock64();
  at = follow(memory, at, timed);
  cycles[blockIdx.x] = static_cast<float>(clock64() - begin) / timed;
  out[blockIdx.x] = at;
}

unsigned coprime(unsigned pages) {
  unsigned step = static_cast<unsigned>(pages * 0.618) | 1;
  const auto common = [](unsigned a, unsigned b) {
    while (b != 0) a %= b, std::swap(a, b);
    return a;
  };
  while (common(step, pages) != 1) step += 2;
  return step;
}

int main() {
  char* memory = nullptr;
  float* cycles = nullptr;
  std::uint64_t* out = nullptr;
  std::size_t most = std::size_t{64} << 30;
  while (most > (1u << 30) && cudaMalloc(&memory, most) != cudaSuccess) most /= 2;
  cudaGetLastError();
  cudaMalloc(&cycles, kSms * sizeof(float));
  cudaMalloc(&out, kSms * sizeof(std::uint64_t));
  std::puts("sms,pages,mib,cycles_a_load");
  for (unsigned sms : {1u, kSms})
    for (unsigned pages = 16; std::size_t{pages} * kPage <= most; pages += pages < 64 ? 16 : pages / 4) {
      link<<<264, 256>>>(memory, pages, coprime(pages));
      walk<<<sms, 1>>>(memory, pages, kTimed, cycles, out);
      std::vector<float> seen(sms);
      if (cudaMemcpy(seen.data(), cycles, sms * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess) {
        std::fputs("translation: no GPU, or a launch failed\n", stderr);
        return 1;
      }
      double sum = 0;
      for (float c : seen) sum += c;
      std::printf("%u,%u,%zu,%.1f\n", sms, pages, std::size_t{pages} * 2, sum / sms);
    }
}
