#include "driver.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/kernel_name.h"

namespace forewarp::runner {
namespace {

std::string describe(CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  return std::string(name != nullptr ? name : "unknown CUDA error") + (text != nullptr ? std::string(": ") + text : "");
}

/// Kernel name and template arguments without the parameter list, as a person would write them.
std::vector<ParameterSlot> parameter_slots(CUfunction function) {
  std::vector<ParameterSlot> slots;
  std::size_t offset = 0, size = 0;
  while (cuFuncGetParamInfo(function, slots.size(), &offset, &size) == CUDA_SUCCESS)
    slots.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
  return slots;
}

struct NamedAttribute {
  CUdevice_attribute attribute;
  const char* name;
};

// What the hardware models need first; the rest is printed by number.
#define FW_ATTRIBUTE(name) \
  { CU_DEVICE_ATTRIBUTE_##name, #name }
constexpr NamedAttribute kNamed[] = {FW_ATTRIBUTE(MULTIPROCESSOR_COUNT),
                                     FW_ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR),
                                     FW_ATTRIBUTE(COMPUTE_CAPABILITY_MINOR),
                                     FW_ATTRIBUTE(CLOCK_RATE),
                                     FW_ATTRIBUTE(MEMORY_CLOCK_RATE),
                                     FW_ATTRIBUTE(GLOBAL_MEMORY_BUS_WIDTH),
                                     FW_ATTRIBUTE(L2_CACHE_SIZE),
                                     FW_ATTRIBUTE(MAX_PERSISTING_L2_CACHE_SIZE),
                                     FW_ATTRIBUTE(MAX_ACCESS_POLICY_WINDOW_SIZE),
                                     FW_ATTRIBUTE(MAX_THREADS_PER_BLOCK),
                                     FW_ATTRIBUTE(MAX_THREADS_PER_MULTIPROCESSOR),
                                     FW_ATTRIBUTE(MAX_BLOCKS_PER_MULTIPROCESSOR),
                                     FW_ATTRIBUTE(MAX_REGISTERS_PER_BLOCK),
                                     FW_ATTRIBUTE(MAX_REGISTERS_PER_MULTIPROCESSOR),
                                     FW_ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK),
                                     FW_ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
                                     FW_ATTRIBUTE(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
                                     FW_ATTRIBUTE(RESERVED_SHARED_MEMORY_PER_BLOCK),
                                     FW_ATTRIBUTE(TOTAL_CONSTANT_MEMORY),
                                     FW_ATTRIBUTE(WARP_SIZE),
                                     FW_ATTRIBUTE(ECC_ENABLED),
                                     FW_ATTRIBUTE(CLUSTER_LAUNCH),
                                     FW_ATTRIBUTE(ASYNC_ENGINE_COUNT)};
#undef FW_ATTRIBUTE

}  // namespace

CudaError::CudaError(CUresult result, const std::string& call)
    : std::runtime_error(call + ": " + describe(result)), code(result) {}

void check(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw CudaError(result, call);
}

Context::Context(int ordinal) {
  FW_CUDA(cuInit(0));
  int count = 0;
  FW_CUDA(cuDeviceGetCount(&count));
  if (ordinal >= count)
    throw InputError("device " + std::to_string(ordinal) + " was asked for, but there are " + std::to_string(count));
  FW_CUDA(cuDeviceGet(&device_, ordinal));
  FW_CUDA(cuDevicePrimaryCtxRetain(&context_, device_));
  FW_CUDA(cuCtxSetCurrent(context_));
}

Context::~Context() { cuDevicePrimaryCtxRelease(device_); }

int Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  FW_CUDA(cuDeviceGetAttribute(&value, which, device_));
  return value;
}

DeviceMemory::DeviceMemory(std::uint64_t bytes) : bytes_(bytes) { FW_CUDA(cuMemAlloc(&address_, bytes)); }

DeviceMemory::~DeviceMemory() {
  if (address_ != 0) cuMemFree(address_);
}

Event::Event() { FW_CUDA(cuEventCreate(&event_, CU_EVENT_DEFAULT)); }
Event::~Event() { cuEventDestroy(event_); }
void Event::record() { FW_CUDA(cuEventRecord(event_, nullptr)); }

float Event::milliseconds_since(const Event& earlier) const {
  FW_CUDA(cuEventSynchronize(event_));
  float milliseconds = 0;
  FW_CUDA(cuEventElapsedTime(&milliseconds, earlier.event_, event_));
  return milliseconds;
}

Module::Module(const std::string& cubin_path) : path_(cubin_path) {
  const std::vector<std::uint8_t> image = read_binary_file(cubin_path);
  const CUresult result = cuModuleLoadData(&module_, image.data());
  if (result != CUDA_SUCCESS)
    throw InputError({cubin_path}, "cannot be loaded: " + describe(result),
                     "is it a cubin for this GPU's compute capability?");
}

Module::~Module() { cuModuleUnload(module_); }

Function Module::function(const Launch& launch) const {
  Function found;
  if (cuModuleGetFunction(&found.handle, module_, launch.kernel.c_str()) == CUDA_SUCCESS) {
    found.symbol = launch.kernel;
  } else {
    unsigned count = 0;
    FW_CUDA(cuModuleGetFunctionCount(&count, module_));
    std::vector<CUfunction> functions(count);
    if (count != 0) FW_CUDA(cuModuleEnumerateFunctions(functions.data(), count, module_));
    std::string candidates;
    NameFit best = NameFit::None;
    int matches = 0;
    for (const CUfunction function : functions) {
      const char* symbol = nullptr;
      FW_CUDA(cuFuncGetName(&symbol, function));
      const std::string readable = demangle(symbol);
      candidates += (candidates.empty() ? "" : ", ") + readable;
      const NameFit how = name_fit(launch.kernel, symbol, readable);
      if (how == NameFit::None || how < best) continue;
      matches = how > best ? 1 : matches + 1;
      best = how;
      found.handle = function;
      found.symbol = symbol;
    }
    if (matches != 1)
      throw InputError(launch.where,
                       (matches == 0 ? "no kernel of " : "several kernels of ") + path_ + " match " + launch.kernel,
                       "kernels: " + candidates);
  }
  found.parameters = parameter_slots(found.handle);
  return found;
}

void prepare(const Function& function, const Launch& launch) {
  // Without the opt-in the driver refuses more than 48 KiB of static and dynamic shared memory together.
  if (launch.dynamic_shared_bytes > 0)
    FW_CUDA(cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(launch.dynamic_shared_bytes)));
  if (launch.cluster.count() > 8)
    FW_CUDA(cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
}

void encode_for_driver(std::span<std::uint8_t> map) {
  // Asked for by name: drivers before 12.0 do not have it, and run everything else.
  using Encode = decltype(&cuTensorMapEncodeTiled);
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found{};
  FW_CUDA(cuGetProcAddress("cuTensorMapEncodeTiled", &entry, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found));
  if (entry == nullptr || found != CU_GET_PROC_ADDRESS_SUCCESS)
    throw InputError("this driver has no tensor maps", "they came with CUDA 12.0");
  constexpr CUtensorMapDataType kTypes[] = {
      CU_TENSOR_MAP_DATA_TYPE_UINT8,    CU_TENSOR_MAP_DATA_TYPE_UINT16,      CU_TENSOR_MAP_DATA_TYPE_UINT32,
      CU_TENSOR_MAP_DATA_TYPE_INT32,    CU_TENSOR_MAP_DATA_TYPE_UINT64,      CU_TENSOR_MAP_DATA_TYPE_INT64,
      CU_TENSOR_MAP_DATA_TYPE_FLOAT16,  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,     CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
      CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
      CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ};
  const std::optional<TensorMap> ours = decode_tensor_map(map);
  FW_CHECK(ours.has_value(), "no tensor map in our encoding");
  alignas(kTensorMapAlignment) CUtensorMap theirs;
  static_assert(sizeof theirs == kTensorMapBytes);
  const TensorMap& m = *ours;
  check(reinterpret_cast<Encode>(entry)(
            &theirs, kTypes[static_cast<std::size_t>(m.type)], static_cast<cuuint32_t>(m.rank),
            reinterpret_cast<void*>(m.address), m.shape.data(), m.strides.data() + 1, m.box.data(), m.steps.data(),
            static_cast<CUtensorMapInterleave>(m.interleave), static_cast<CUtensorMapSwizzle>(m.swizzle),
            static_cast<CUtensorMapL2promotion>(m.promotion), static_cast<CUtensorMapFloatOOBfill>(m.fill)),
        "cuTensorMapEncodeTiled");
  std::memcpy(map.data(), &theirs, sizeof theirs);
}

void launch_kernel(const Function& function, const Launch& launch, std::span<const std::uint8_t> parameters) {
  CUlaunchAttribute cluster{};
  cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  cluster.value.clusterDim.x = launch.cluster.x;
  cluster.value.clusterDim.y = launch.cluster.y;
  cluster.value.clusterDim.z = launch.cluster.z;
  CUlaunchConfig config{};
  config.gridDimX = launch.grid.x;
  config.gridDimY = launch.grid.y;
  config.gridDimZ = launch.grid.z;
  config.blockDimX = launch.block.x;
  config.blockDimY = launch.block.y;
  config.blockDimZ = launch.block.z;
  config.sharedMemBytes = launch.dynamic_shared_bytes;
  config.attrs = &cluster;
  config.numAttrs = launch.cluster.count() > 0 ? 1 : 0;
  std::vector<void*> each;
  for (const ParameterSlot& slot : function.parameters)
    each.push_back(const_cast<std::uint8_t*>(parameters.data() + slot.offset));
  check(cuLaunchKernelEx(&config, function.handle, each.data(), nullptr),
        ("launch of " + function.symbol).c_str());
}

std::string describe_device(const Context& context) {
  char name[256] = {};
  FW_CUDA(cuDeviceGetName(name, sizeof name, context.device()));
  int driver = 0;
  FW_CUDA(cuDriverGetVersion(&driver));
  std::size_t memory = 0;
  FW_CUDA(cuDeviceTotalMem(&memory, context.device()));
  std::string text = std::string("name: ") + name + "\ncuda_driver: " + std::to_string(driver) +
                     "\nmemory_bytes: " + std::to_string(memory) + "\n";
  for (const NamedAttribute& item : kNamed)
    text += std::string(item.name) + ": " + std::to_string(context.attribute(item.attribute)) + "\n";
  for (int number = 1; number < static_cast<int>(CU_DEVICE_ATTRIBUTE_MAX); ++number) {
    int value = 0;
    if (cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(number), context.device()) == CUDA_SUCCESS)
      text += "attribute_" + std::to_string(number) + ": " + std::to_string(value) + "\n";
  }
  return text;
}

}  // namespace forewarp::runner
