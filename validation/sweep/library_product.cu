// Times the library's square bf16 products (fp32 accumulation), one line of CSV a size: size, median, least and most
// nanoseconds of one product among groups of back-to-back launches, and the number of groups.
//
//   nvcc -O2 -arch=sm_90 library_product.cu -lcublasLt -o library_product && ./library_product 1792 1793 ... > sizes.csv
//
// Row-major matrices without padding, as a caller gets them who allocates N x N; the first algorithm that the library's
// own heuristics name, with 32 MiB of workspace.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::size_t kWorkspace = 32u << 20;
constexpr int kGroups = 7;
constexpr double kGroupMicroseconds = 2000;  // launches of a group fill about this time
constexpr int kMostLaunches = 50;

void check(bool good, const char* what, int size) {
  if (good) return;
  std::fprintf(stderr, "library_product: %s failed at %d\n", what, size);
  std::exit(1);
}

__global__ void fill(__nv_bfloat16* out, std::size_t count, unsigned seed) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * std::size_t{blockDim.x}) {
    unsigned s = static_cast<unsigned>(i) * 2654435761u + seed;
    s ^= s >> 16;
    s *= 2246822519u;
    s ^= s >> 13;
    out[i] = __float2bfloat16(static_cast<float>(s >> 8) / 8388608.0f - 1.0f);
  }
}

struct Product {
  cublasLtMatmulDesc_t operation{};
  cublasLtMatrixLayout_t layout{};
  cublasLtMatmulPreference_t preference{};
  cublasLtMatmulHeuristicResult_t algorithm{};
  int size;

  Product(cublasLtHandle_t library, int n) : size(n) {
    check(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0, "description", n);
    // Column-major as the library has it: the product of row-major matrices is the same call with a and b exchanged.
    check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, n, n, n) == 0, "layout", n);
    check(cublasLtMatmulPreferenceCreate(&preference) == 0, "preference", n);
    const std::size_t bytes = kWorkspace;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(library, operation, layout, layout, layout, layout, preference,
                                                                 1, &algorithm, &found);
    check(status == 0 && found == 1, "heuristic", n);
  }
  ~Product() {
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
  }
};

double group_microseconds(cublasLtHandle_t library, const Product& p, const __nv_bfloat16* a, const __nv_bfloat16* b,
                          __nv_bfloat16* c, void* workspace, int launches, cudaEvent_t before, cudaEvent_t after) {
  const float one = 1, zero = 0;
  cudaEventRecord(before);
  for (int i = 0; i < launches; ++i)
    check(cublasLtMatmul(library, p.operation, &one, b, p.layout, a, p.layout, &zero, c, p.layout, c, p.layout,
                         &p.algorithm.algo, workspace, kWorkspace, nullptr) == 0,
          "product", p.size);
  cudaEventRecord(after);
  check(cudaEventSynchronize(after) == cudaSuccess, "synchronization", p.size);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, before, after);
  return milliseconds * 1e3 / launches;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) return std::fprintf(stderr, "usage: library_product SIZE...\n"), 2;
  const std::size_t largest = *std::max_element(sizes.begin(), sizes.end());
  __nv_bfloat16 *a = nullptr, *b = nullptr, *c = nullptr;
  void* workspace = nullptr;
  const std::size_t bytes = largest * largest * sizeof(__nv_bfloat16);
  check(cudaMalloc(&a, bytes) == 0 && cudaMalloc(&b, bytes) == 0 && cudaMalloc(&c, bytes) == 0 &&
            cudaMalloc(&workspace, kWorkspace) == 0,
        "allocation", 0);
  fill<<<1024, 256>>>(a, largest * largest, 1);
  fill<<<1024, 256>>>(b, largest * largest, 2);
  cublasLtHandle_t library;
  check(cublasLtCreate(&library) == 0, "library", 0);
  cudaEvent_t before, after;
  cudaEventCreate(&before);
  cudaEventCreate(&after);
  for (const int n : sizes) {
    const Product p(library, n);
    const auto group = [&](int launches) {
      return group_microseconds(library, p, a, b, c, workspace, launches, before, after);
    };
    group(3);
    const int launches = std::clamp(static_cast<int>(kGroupMicroseconds / group(3)), 3, kMostLaunches);
    std::vector<double> times(kGroups);
    for (double& t : times) t = group(launches);
    std::sort(times.begin(), times.end());
    std::printf("%d,%.1f,%.1f,%.1f,%d\n", n, times[kGroups / 2] * 1e3, times.front() * 1e3, times.back() * 1e3, kGroups);
    std::fflush(stdout);
  }
  return 0;
}
