#include "device_case.h"

#include <bit>

#include "launch/fill.h"

namespace forewarp::runner {
namespace {

constexpr std::uint64_t kMostHeldBytes = std::uint64_t{8} << 30;

/// Equal texts have equal bytes, as far as both reach: every fill is a prefix of a longer one.
std::string key_of(const Buffer& buffer) {
  if (const auto* uniform = std::get_if<FillUniform>(&buffer.fill))
    return "uniform " + std::to_string(static_cast<int>(uniform->type)) + " " +
           std::to_string(std::bit_cast<std::uint64_t>(uniform->low)) + " " +
           std::to_string(std::bit_cast<std::uint64_t>(uniform->high)) + " " + std::to_string(uniform->seed);
  if (const auto* lcg = std::get_if<FillLcg>(&buffer.fill))
    return "lcg " + std::to_string(lcg->seed) + " " + std::to_string(lcg->modulus);
  if (const auto* file = std::get_if<FillFile>(&buffer.fill))
    return "file " + std::to_string(buffer.bytes) + " " + file->path;
  return "iota";
}

std::vector<std::uint8_t> encoded_maps(const Buffer& buffer, std::span<const std::uint64_t> addresses) {
  std::vector<std::uint8_t> bytes = make_buffer(buffer, addresses);
  for (std::size_t at = 0; at < bytes.size(); at += kTensorMapBytes)
    encode_for_driver(std::span(bytes).subspan(at, kTensorMapBytes));
  return bytes;
}

}  // namespace

std::span<const std::uint8_t> FillCache::bytes(const Buffer& buffer) {
  const std::string key = key_of(buffer);
  const auto found = fills_.find(key);
  if (found != fills_.end() && found->second.size() >= buffer.bytes) return {found->second.data(), buffer.bytes};
  if (held_ + buffer.bytes > kMostHeldBytes) {
    fills_.clear();
    held_ = 0;
  }
  std::vector<std::uint8_t>& kept = fills_[key];
  held_ -= kept.size();
  kept = make_buffer(buffer);
  held_ += kept.size();
  return {kept.data(), buffer.bytes};
}

DeviceCase::DeviceCase(const Module& module, const Case& item, FillCache& fills) : case_(item) {
  std::vector<std::uint64_t> addresses;
  for (const Buffer& buffer : item.buffers) {
    memory_.emplace_back(buffer.bytes);
    addresses.push_back(memory_.back().address());
  }
  for (std::size_t i = 0; i < item.buffers.size(); ++i) {
    const Buffer& buffer = item.buffers[i];
    if (std::holds_alternative<FillZero>(buffer.fill))
      FW_CUDA(cuMemsetD8(addresses[i], 0, buffer.bytes));
    else if (std::holds_alternative<FillPointers>(buffer.fill))
      FW_CUDA(cuMemcpyHtoD(addresses[i], make_buffer(buffer, addresses).data(), buffer.bytes));
    else if (std::holds_alternative<FillTensorMaps>(buffer.fill))
      FW_CUDA(cuMemcpyHtoD(addresses[i], encoded_maps(buffer, addresses).data(), buffer.bytes));
    else
      FW_CUDA(cuMemcpyHtoD(addresses[i], fills.bytes(buffer).data(), buffer.bytes));
  }
  std::map<std::string, Function> known;
  for (const Launch& launch : item.launches) {
    if (!known.contains(launch.kernel)) known[launch.kernel] = module.function(launch);
    functions_.push_back(known[launch.kernel]);
    parameters_.push_back(pack_parameters(launch, addresses, functions_.back().parameters));
    for (const std::uint32_t at : map_places(launch, functions_.back().parameters))
      encode_for_driver(std::span(parameters_.back()).subspan(at, kTensorMapBytes));
    prepare(functions_.back(), launch);
  }
  FW_CUDA(cuCtxSynchronize());
}

std::vector<std::uint8_t> DeviceCase::read(const std::string& name) const {
  for (std::size_t i = 0; i < case_.buffers.size(); ++i) {
    if (case_.buffers[i].name != name) continue;
    std::vector<std::uint8_t> bytes(case_.buffers[i].bytes);
    FW_CUDA(cuMemcpyDtoH(bytes.data(), memory_[i].address(), bytes.size()));
    return bytes;
  }
  throw InputError(case_.where, "case " + case_.id + " has no buffer " + name);
}

}  // namespace forewarp::runner
