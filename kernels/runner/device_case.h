// One case of a launch file on the device: buffers filled, kernels resolved, arguments packed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "driver.h"
#include "launch/launch.h"

namespace forewarp::runner {

/// Host copies of fills, so that cases with equal inputs generate them once. Holds a few GiB at most.
class FillCache {
 public:
  /// The first buffer.bytes bytes of the fill; valid until the next call.
  std::span<const std::uint8_t> bytes(const Buffer& buffer);

 private:
  std::map<std::string, std::vector<std::uint8_t>> fills_;
  std::uint64_t held_ = 0;
};

class DeviceCase {
 public:
  DeviceCase(const Module& module, const Case& item, FillCache& fills);

  const Case& description() const { return case_; }
  std::size_t launches() const { return case_.launches.size(); }
  const Function& function(std::size_t launch) const { return functions_[launch]; }
  void launch(std::size_t index) const { launch_kernel(functions_[index], case_.launches[index], parameters_[index]); }
  /// Contents of a buffer now; InputError if the case has none of this name.
  std::vector<std::uint8_t> read(const std::string& buffer) const;

 private:
  const Case& case_;
  std::vector<DeviceMemory> memory_;
  std::vector<Function> functions_;
  std::vector<std::vector<std::uint8_t>> parameters_;
};

}  // namespace forewarp::runner
