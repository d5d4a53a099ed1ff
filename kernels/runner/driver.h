// The CUDA driver API as values that clean up after themselves and calls that throw.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "launch/launch.h"
#include "launch/parameters.h"

namespace forewarp::runner {

struct CudaError : std::runtime_error {
  CudaError(CUresult result, const std::string& call);
  CUresult code;
};

void check(CUresult result, const char* call);
#define FW_CUDA(call) ::forewarp::runner::check((call), #call)

/// The device's primary context, current on this thread for the object's life.
class Context {
 public:
  explicit Context(int ordinal);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  CUdevice device() const { return device_; }
  int attribute(CUdevice_attribute) const;

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(std::uint64_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept : address_(other.address_), bytes_(other.bytes_) { other.address_ = 0; }
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  CUdeviceptr address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  CUdeviceptr address_ = 0;
  std::uint64_t bytes_ = 0;
};

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record();
  float milliseconds_since(const Event& earlier) const;

 private:
  CUevent event_ = nullptr;
};

struct Function {
  CUfunction handle = nullptr;
  std::string symbol;
  std::vector<ParameterSlot> parameters;
};

class Module {
 public:
  explicit Module(const std::string& cubin_path);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// By exact symbol, exact demangled name or unique demangled prefix, as the simulator resolves it.
  Function function(const Launch& launch) const;

 private:
  std::string path_;
  CUmodule module_ = nullptr;
};

/// Replaces a tensor map in our encoding by the driver's.
void encode_for_driver(std::span<std::uint8_t> map);

/// Queues one launch on the default stream. `parameters` is the packed parameter area.
void launch_kernel(const Function& function, const Launch& launch, std::span<const std::uint8_t> parameters);

/// Shared memory and cluster opt-ins that this launch needs; once for a function and launch.
void prepare(const Function& function, const Launch& launch);

/// Every attribute the driver knows of the device, one "name: value" a line.
std::string describe_device(const Context& context);

}  // namespace forewarp::runner
