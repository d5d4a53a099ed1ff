#include "emulation/memory.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "program/program.h"

namespace forewarp::emulation {

GlobalMemory::GlobalMemory(const Case& item, const std::vector<std::uint8_t>& module_data)
    : addresses_(place_buffers(item)) {
  std::vector<std::size_t> order(item.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return addresses_[a] < addresses_[b]; });
  region_of_.resize(order.size());
  regions_.reserve(order.size());
  for (const std::size_t i : order) {
    region_of_[i] = regions_.size();
    Region region;
    region.begin = addresses_[i];
    region.end = addresses_[i] + item.buffers[i].bytes;
    region.buffer = &item.buffers[i];
    regions_.push_back(std::move(region));
  }
  if (module_data.empty()) return;
  Region own;
  own.begin = kModuleDataAddress;
  own.end = own.begin + module_data.size();
  own.bytes = module_data;
  own.filled = true;
  FW_CHECK(regions_.empty() || regions_.back().end <= own.begin, "buffers reach into the program's variables");
  regions_.push_back(std::move(own));
}

GlobalMemory::Region* GlobalMemory::search(std::uint64_t address, std::uint64_t size) {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](std::uint64_t a, const Region& r) { return a < r.begin; });
  if (after == regions_.begin()) return nullptr;
  Region& region = *std::prev(after);
  if (address >= region.end || size > region.end - address) return nullptr;
  last_ = &region;
  return last_;
}

void GlobalMemory::fill(Region& region) {
  region.bytes = make_buffer(*region.buffer);
  region.filled = true;
}

void GlobalMemory::save(Region& region, std::uint64_t address, std::uint64_t size) {
  const std::uint64_t first = (address - region.begin) / kPageBytes,
                      last = (address - region.begin + size - 1) / kPageBytes;
  for (std::uint64_t page = first; page <= last; ++page) {
    const auto [place, is_new] = saved_.try_emplace({&region, page});
    if (!is_new) continue;
    const std::uint8_t* from = bytes(region) + page * kPageBytes;
    place->second.assign(from, from + std::min(kPageBytes, region.bytes.size() - page * kPageBytes));
  }
}

void GlobalMemory::undo_writes() {
  for (const auto& [place, old] : saved_) {
    std::copy(old.begin(), old.end(),
              place.first->bytes.begin() + static_cast<std::ptrdiff_t>(place.second * kPageBytes));
  }
  saved_.clear();
  undoable_ = false;
}

const std::vector<std::uint8_t>& GlobalMemory::buffer(std::size_t index) {
  Region& region = regions_[region_of_[index]];
  bytes(region);
  return region.bytes;
}

std::string GlobalMemory::describe(std::uint64_t address) const {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](std::uint64_t a, const Region& r) { return a < r.begin; });
  char text[64];
  if (after == regions_.begin()) {
    std::snprintf(text, sizeof text, "below every buffer");
    return text;
  }
  const Region& region = *std::prev(after);
  const std::uint64_t offset = address - region.begin;
  std::snprintf(text, sizeof text, "byte %llu of ", static_cast<unsigned long long>(offset));
  const std::string name = region.buffer != nullptr ? "buffer " + region.buffer->name : "the program's own variables";
  return text + name + " (" + std::to_string(region.end - region.begin) + " bytes)";
}

}  // namespace forewarp::emulation
