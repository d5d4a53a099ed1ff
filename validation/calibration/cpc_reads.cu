// What SMs get of L2 when all of them ask for more than it gives, in CPCs of two TPCs and of three. On a machine with a GPU:
//   nvcc -O3 -std=c++17 -gencode=arch=compute_90a,code=sm_90a -o cpc_reads cpc_reads.cu -lcuda
//   ./cpc_reads > cpc_reads.csv
// Clusters of all sizes say which SMs share a GPC. Then every SM walks through 20 MB, which L2 holds, from a place of its own
// ("own") or all from the same one ("same"), by boxes of 64 rows of 128 bytes or by loads of 16 bytes a thread. What was seen
// is in cpc_reads.csv:
//   by, place, row     boxes or loads; own or same; bytes from a row to the next
//   threads, kib       that ask, and what is under way, in each SM
//   all                bytes a cycle of all SMs
//   slowest, fastest   ... of one SM
//   slow, fast         ... of those below and above the middle of these two, in the mean
//   fast_sms           how many are above. Where much is under way, these are the SMs in CPCs of two TPCs (ports.cu)
#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "../../kernels/common/hopper.cuh"

constexpr int kSms = 132, kBox = 8192, kMostShared = 200 << 10, kAlone = 116 << 10;
constexpr long long kBytes = 20ll << 20, kSpan = 300000;

static void must(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, "%s: error %d\n", what, error);
  std::exit(1);
}

__device__ __forceinline__ int sm_id() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}

__global__ void where(int* sms) {
  if (threadIdx.x == 0) sms[blockIdx.x] = sm_id();
  for (const long long start = clock64(); clock64() - start < 20000;) {
  }
}

template <int kAhead>
__global__ void __launch_bounds__(32)
    boxes(const __grid_constant__ CUtensorMap map, int rows, bool same, unsigned* trips) {
  extern __shared__ char unaligned[];
  char* shared = unaligned + (-shared_word_address(unaligned) & (kSwizzledAtom - 1));
  __shared__ Barrier full[kAhead];
  if (threadIdx.x != 0) return;
  for (Barrier& one : full) one.init(1);
  publish_to_async();
  const int sm = sm_id(), steps = rows / 64;
  int at = same ? 0 : steps * (sm * 37 % kSms) / kSms;
  const auto fetch = [&](int i) {
    full[i].expect(kBox);
    load_box(shared + i * kBox, map, 0, at * 64, full[i]);
    if (++at == steps) at = 0;
  };
  for (int i = 0; i < kAhead; ++i) fetch(i);
  unsigned trip = 0;
  int slot = 0, parity = 0;
  const auto next = [&] {
    if (++slot == kAhead) slot = 0, parity ^= 1;
  };
  for (const long long start = clock64(); clock64() - start < kSpan; ++trip, next()) {
    full[slot].wait(parity);
    fetch(slot);
  }
  for (int i = 0; i < kAhead; ++i, next()) full[slot].wait(parity);
  trips[sm] = trip;
}

template <int kAtOnce>
__global__ void __launch_bounds__(1024) loads(const char* in, bool same, unsigned* trips, unsigned* sink) {
  const int sm = sm_id();
  const long long step = 16ll * kAtOnce * blockDim.x;
  long long at = same ? 0 : kBytes / kSms * (sm * 37 % kSms) / step * step;
  unsigned sum = 0, trip = 0;
  for (const long long start = clock64(); clock64() - start < kSpan; ++trip) {
    uint4 v[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const char* from = in + at + (k * blockDim.x + threadIdx.x) * 16;
      asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(v[k].x), "=r"(v[k].y), "=r"(v[k].z), "=r"(v[k].w)
                   : "l"(from));
    }
    at = at + 2 * step > kBytes ? 0 : at + step;
#pragma unroll
    for (const uint4& one : v) sum ^= one.x ^ one.y ^ one.z ^ one.w;
  }
  if (threadIdx.x == 0) trips[sm] = trip;
  if (sum == 1) *sink = sum;
}

/// Prints which SMs clusters hold together.
static void print_gpcs(int* device) {
  std::vector<int> parent(kSms);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int sm) {
    while (parent[sm] != sm) sm = parent[sm];
    return sm;
  };
  must(cudaFuncSetAttribute(where, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared), "shared memory");
  must(cudaFuncSetAttribute(where, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "cluster size");
  for (int size = 2; size <= 16; ++size) {
    cudaLaunchAttribute cluster{};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = static_cast<unsigned>(size);
    cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(kSms / size * size));
    config.blockDim = dim3(32);
    config.dynamicSmemBytes = kMostShared;
    config.attrs = &cluster;
    config.numAttrs = 1;
    if (cudaLaunchKernelEx(&config, where, device) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    std::vector<int> sms(config.gridDim.x);
    must(cudaMemcpy(sms.data(), device, sms.size() * sizeof(int), cudaMemcpyDeviceToHost), "copy");
    for (std::size_t i = 0; i < sms.size(); ++i) parent[root(sms[i])] = root(sms[i / size * size]);
  }
  std::map<int, int> gpcs;
  for (int sm = 0; sm < kSms; ++sm) ++gpcs[root(sm)];
  std::printf("# GPCs of");
  for (const auto& [first, sms] : gpcs) std::printf(" %d", sms);
  std::printf(" SMs, as clusters reach them\nby,place,row,threads,kib,all,slowest,fastest,slow,fast,fast_sms\n");
}

static void print(const char* by, bool same, int row, int threads, int kib, double bytes_a_trip, const unsigned* trips) {
  must(cudaGetLastError(), by);
  std::vector<unsigned> h(kSms);
  must(cudaMemcpy(h.data(), trips, kSms * sizeof(unsigned), cudaMemcpyDeviceToHost), by);
  std::sort(h.begin(), h.end());
  double all = 0, of[2] = {}, n[2] = {};
  for (const unsigned one : h) {
    const double bytes = one * bytes_a_trip / kSpan;
    const bool fast = 2 * one > h.front() + h.back();
    all += bytes, of[fast] += bytes, ++n[fast];
  }
  std::printf("%s,%s,%d,%d,%d,%.0f,%.1f,%.1f,%.1f,", by, same ? "same" : "own", row, threads, kib, all,
              h.front() * bytes_a_trip / kSpan, h.back() * bytes_a_trip / kSpan, of[0] / n[0]);
  if (n[1] > 0) std::printf("%.1f", of[1] / n[1]);
  std::printf(",%.0f\n", n[1]);
}

template <int kAhead>
static void try_boxes(void* in, bool same, int row, unsigned* trips) {
  const int rows = static_cast<int>(kBytes / row) / 64 * 64;
  const cuuint64_t shape[] = {64, static_cast<cuuint64_t>(rows)}, strides[] = {static_cast<cuuint64_t>(row)};
  const cuuint32_t box[] = {64, 64}, steps[] = {1, 1};
  CUtensorMap map;
  must(cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, in, shape, strides, box, steps,
                              CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
       "tensor map");
  must(cudaFuncSetAttribute(boxes<kAhead>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared), "shared memory");
  for (int run = 0; run < 2; ++run) boxes<kAhead><<<kSms, 32, kMostShared>>>(map, rows, same, trips);
  print("boxes", same, row, 1, kAhead * kBox / 1024, kBox, trips);
}

template <int kAtOnce>
static void try_loads(const char* in, bool same, int threads, unsigned* trips) {
  must(cudaFuncSetAttribute(loads<kAtOnce>, cudaFuncAttributeMaxDynamicSharedMemorySize, kAlone), "shared memory");
  for (int run = 0; run < 2; ++run) loads<kAtOnce><<<kSms, threads, kAlone>>>(in, same, trips, trips + kSms);
  print("loads", same, 128, threads, threads * kAtOnce * 16 / 1024, threads * kAtOnce * 16., trips);
}

template <int... kAhead>
static void try_all_boxes(void* in, bool same, int row, unsigned* trips) {
  (try_boxes<kAhead>(in, same, row, trips), ...);
}

template <int... kAtOnce>
static void try_all_loads(const char* in, bool same, int threads, unsigned* trips) {
  (try_loads<kAtOnce>(in, same, threads, trips), ...);
}

int main() {
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "device");
  std::printf("# gpu: %s\n", properties.name);
  char* in;
  unsigned* trips;
  must(cudaMalloc(&in, kBytes), "memory");
  must(cudaMalloc(&trips, (kSms + 1) * sizeof(unsigned)), "memory");
  must(cudaMemset(in, 1, kBytes), "memory");
  print_gpcs(reinterpret_cast<int*>(trips));
  for (const bool same : {false, true}) {
    for (const int row : {128, 256, 160, 192, 144})
      try_all_boxes<2, 4, 6, 8, 9, 10, 12, 16, 20, 24>(in, same, row, trips);
    for (const int threads : {256, 512, 1024}) try_all_loads<2, 4, 8>(in, same, threads, trips);
  }
}
