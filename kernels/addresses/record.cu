// The code that compute-sanitizer's API calls at every global memory access of a patched kernel. Compiled by collect.sh
// as a patch; it is no kernel.
#include <sanitizer_patching.h>

#include "record.h"

extern "C" __device__ __noinline__ SanitizerPatchResult record_access(void* userdata, uint64_t pc, void* address,
                                                                      uint32_t bytes, uint32_t flags, const void*) {
  auto* recording = static_cast<Recording*>(userdata);
  if (recording == nullptr) return SANITIZER_PATCH_SUCCESS;
  const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread =
      (block * blockDim.z + threadIdx.z) * blockDim.y * blockDim.x + threadIdx.y * blockDim.x + threadIdx.x;
  const uint32_t sequence = recording->counts[thread]++;
  const unsigned long long place = atomicAdd(&recording->used, 1ull);
  if (place < recording->room)
    recording->records[place] = {reinterpret_cast<uint64_t>(address), pc, thread, sequence, bytes, flags};
  return SANITIZER_PATCH_SUCCESS;
}
