// A library that a CUDA program loads by itself when CUDA_INJECTION64_PATH names it: it patches every kernel with
// record.cu and writes which thread accessed which global address, launch by launch, as lines
//
//   launch,thread,sequence,pc,flags,bytes,allocation,offset
//
// with pc as an offset into the function, and the allocation by its place among those that live, in the order in which
// they were made. FOREWARP_RECORD_PATCH is record.cu compiled, FOREWARP_RECORD_FILE the file to write.
#include <sanitizer.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "record.h"

namespace {

constexpr unsigned long long kRoom = 1ull << 23;  // records of a launch: 320 MB

struct Allocation {
  uint64_t address, bytes;
};

struct Launch {
  Recording* device = nullptr;
  Recording host{};
  uint64_t function = 0, bytes = 0;
};

std::vector<Allocation> allocations;
Launch launch;
int launches = 0;
std::FILE* out = nullptr;

void check(SanitizerResult result, const char* what) {
  if (result == SANITIZER_SUCCESS) return;
  const char* text = nullptr;
  sanitizerGetResultString(result, &text);
  std::fprintf(stderr, "recorder: %s: %s\n", what, text != nullptr ? text : "failed");
  std::exit(1);
}

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') return value;
  std::fprintf(stderr, "recorder: %s is not set\n", name);
  std::exit(1);
}

void patch(const Sanitizer_ResourceModuleData& module) {
  check(sanitizerAddPatchesFromFile(setting("FOREWARP_RECORD_PATCH"), module.context), "loading the patch");
  check(sanitizerPatchInstructions(SANITIZER_INSTRUCTION_GLOBAL_MEMORY_ACCESS, module.module, "record_access"),
        "choosing instructions");
  check(sanitizerPatchModule(module.module), "patching");
}

void begin(const Sanitizer_LaunchData& data) {
  const uint64_t threads =
      uint64_t{data.gridDim_x} * data.gridDim_y * data.gridDim_z * data.blockDim_x * data.blockDim_y * data.blockDim_z;
  launch = {};
  check(sanitizerGetFunctionPcAndSize(data.module, data.functionName, &launch.function, &launch.bytes),
        "finding the function");
  void* records = nullptr;
  void* counts = nullptr;
  void* device = nullptr;
  check(sanitizerAlloc(data.context, &records, kRoom * sizeof(AccessRecord)), "room for records");
  check(sanitizerAlloc(data.context, &counts, threads * sizeof(uint32_t)), "room for counts");
  check(sanitizerAlloc(data.context, &device, sizeof(Recording)), "room for the recording");
  check(sanitizerMemset(counts, 0, threads * sizeof(uint32_t), data.hStream), "clearing counts");
  launch.host = {0, kRoom, static_cast<AccessRecord*>(records), static_cast<uint32_t*>(counts)};
  launch.device = static_cast<Recording*>(device);
  check(sanitizerMemcpyHostToDeviceAsync(device, &launch.host, sizeof(Recording), data.hStream),
        "setting up the recording");
  check(sanitizerStreamSynchronize(data.hStream), "setting up the recording");
  check(sanitizerSetLaunchCallbackData(data.hLaunch, data.function, data.hStream, device),
        "handing over the recording");
}

void write(const AccessRecord& r) {
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    if (r.address - allocations[i].address >= allocations[i].bytes) continue;
    std::fprintf(out, "%d,%u,%u,%" PRIu64 ",%u,%u,%zu,%" PRIu64 "\n", launches, r.thread, r.sequence,
                 r.pc - launch.function, r.flags, r.bytes, i, r.address - allocations[i].address);
    return;
  }
  std::fprintf(stderr, "recorder: an access outside every allocation\n");
  std::exit(1);
}

void end(const Sanitizer_LaunchData& data) {
  check(sanitizerStreamSynchronize(data.hStream), "waiting for the kernel");
  Recording done{};
  check(sanitizerMemcpyDeviceToHost(&done, launch.device, sizeof done, data.hStream), "reading the recording");
  check(sanitizerStreamSynchronize(data.hStream), "reading the recording");
  if (done.used > done.room) {
    std::fprintf(stderr, "recorder: %llu accesses are more than there is room for\n", done.used);
    std::exit(1);
  }
  std::vector<AccessRecord> records(done.used);
  if (done.used > 0)
    check(sanitizerMemcpyDeviceToHost(records.data(), done.records, done.used * sizeof(AccessRecord), data.hStream),
          "reading records");
  check(sanitizerStreamSynchronize(data.hStream), "reading records");
  for (const AccessRecord& r : records) write(r);
  std::fflush(out);
  ++launches;
  sanitizerFree(data.context, launch.host.records);
  sanitizerFree(data.context, launch.host.counts);
  sanitizerFree(data.context, launch.device);
}

void on_event(void*, Sanitizer_CallbackDomain domain, Sanitizer_CallbackId id, const void* data) {
  if (domain == SANITIZER_CB_DOMAIN_RESOURCE) {
    if (id == SANITIZER_CBID_RESOURCE_MODULE_LOADED) patch(*static_cast<const Sanitizer_ResourceModuleData*>(data));
    const auto* memory = static_cast<const Sanitizer_ResourceMemoryData*>(data);
    if (id == SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_ALLOC && memory->flags == SANITIZER_MEMORY_FLAG_NONE)
      allocations.push_back({memory->address, memory->size});
    if (id == SANITIZER_CBID_RESOURCE_DEVICE_MEMORY_FREE)
      std::erase_if(allocations, [&](const Allocation& a) { return a.address == memory->address; });
  }
  if (domain == SANITIZER_CB_DOMAIN_LAUNCH) {
    if (id == SANITIZER_CBID_LAUNCH_BEGIN) begin(*static_cast<const Sanitizer_LaunchData*>(data));
    if (id == SANITIZER_CBID_LAUNCH_END) end(*static_cast<const Sanitizer_LaunchData*>(data));
  }
}

}  // namespace

/// The driver calls this once.
extern "C" int InitializeInjection() {
  out = std::fopen(setting("FOREWARP_RECORD_FILE"), "w");
  if (out == nullptr) {
    std::perror("recorder");
    std::exit(1);
  }
  Sanitizer_SubscriberHandle subscriber;
  check(sanitizerSubscribe(&subscriber, on_event, nullptr), "subscribing");
  check(sanitizerEnableDomain(1, subscriber, SANITIZER_CB_DOMAIN_RESOURCE), "asking for events");
  check(sanitizerEnableDomain(1, subscriber, SANITIZER_CB_DOMAIN_LAUNCH), "asking for events");
  return 1;
}
