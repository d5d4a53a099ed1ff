#include "emulation/machine/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "base/error.h"
#include "launch/fill.h"
#include "program/program.h"

namespace forewarp::emulation {

namespace {

std::uint64_t chunks_of(std::uint64_t bytes) {
  return (bytes + GlobalMemory::kChunkBytes - 1) / GlobalMemory::kChunkBytes;
}

/// Address space that reads as zero; pages come when they are written.
std::uint8_t* reserve(std::uint64_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(at);
}

}  // namespace

GlobalMemory::GlobalMemory(const Case& item, const std::vector<std::uint8_t>& module_data)
    : addresses_(place_buffers(item)) {
  std::vector<std::size_t> order(item.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return addresses_[a] < addresses_[b]; });
  region_of_.resize(order.size());
  regions_.reserve(order.size() + 2);
  for (const std::size_t i : order) {
    const Buffer& buffer = item.buffers[i];
    region_of_[i] = regions_.size();
    Region& region = regions_.emplace_back();
    region.begin = addresses_[i];
    region.end = addresses_[i] + buffer.bytes;
    region.buffer = &buffer;
    region.chunks.assign(chunks_of(buffer.bytes),
                         std::holds_alternative<FillZero>(buffer.fill) ? Chunk::Zero : Chunk::Absent);
    region.data = buffer.bytes == 0 ? nullptr : reserve(buffer.bytes);
    if (region.data == nullptr && buffer.bytes != 0)
      throw InputError(buffer.where, "buffer " + buffer.name + " of " + std::to_string(buffer.bytes) +
                                         " bytes does not fit in this machine's memory");
  }
  if (!module_data.empty())
    std::copy(module_data.begin(), module_data.end(), own(kModuleDataAddress, module_data.size()));
  own(kGridWorkspaceAddress, kGridWorkspaceBytes);
}

/// Adds a region that is no buffer, behind the others.
std::uint8_t* GlobalMemory::own(std::uint64_t begin, std::uint64_t bytes) {
  FW_CHECK(regions_.empty() || regions_.back().end <= begin, "buffers reach into the program's variables");
  Region& region = regions_.emplace_back();
  region.begin = begin;
  region.end = begin + bytes;
  region.chunks.assign(chunks_of(bytes), Chunk::Written);
  region.data = reserve(bytes);
  FW_CHECK(region.data != nullptr, "no memory for the program's variables");
  return region.data;
}

GlobalMemory::~GlobalMemory() {
  for (const Region& region : regions_)
    if (region.data != nullptr) ::munmap(region.data, region.end - region.begin);
}

GlobalMemory::Region* GlobalMemory::find(std::uint64_t address, std::uint64_t size) {
  auto after = std::upper_bound(regions_.begin(), regions_.end(), address,
                                [](std::uint64_t a, const Region& r) { return a < r.begin; });
  if (after == regions_.begin()) return nullptr;
  Region& region = *std::prev(after);
  if (address >= region.end || size > region.end - address) return nullptr;
  return &region;
}

void GlobalMemory::make(Region& region, std::uint64_t first, std::uint64_t last) {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t chunk = first; chunk <= last; ++chunk) {
    if (is_there(region.chunks[chunk])) continue;
    make_room(region, first, last);
    fill(region, chunk);
  }
}

void GlobalMemory::make_written(Region& region, std::uint64_t first, std::uint64_t last) {
  make(region, first, last);
  for (std::uint64_t chunk = first; chunk <= last; ++chunk) {
    if (region.chunks[chunk] >= Chunk::Written) continue;
    held_ += region.chunks[chunk] == Chunk::Zero;
    region.chunks[chunk] = undoable_ ? Chunk::Fresh : Chunk::Written;
    if (undoable_) fresh_.push_back({&region, chunk});
  }
}

void GlobalMemory::fill(Region& region, std::uint64_t chunk) {
  const Buffer& buffer = *region.buffer;
  const std::uint64_t begin = chunk * kChunkBytes;
  remade_ += region.chunks[chunk] == Chunk::Dropped;
  if (std::holds_alternative<FillFile>(buffer.fill)) {  // read once, and kept
    fill_buffer(buffer, addresses_, {region.data, buffer.bytes});
    for (Chunk& made : region.chunks) std::atomic_ref(made).store(Chunk::Written, std::memory_order_release);
    held_ += region.chunks.size();
    return;
  }
  fill_part(buffer, addresses_, begin, {region.data + begin, std::min(kChunkBytes, buffer.bytes - begin)});
  std::atomic_ref(region.chunks[chunk]).store(Chunk::Clean, std::memory_order_release);
  ++held_;
  filled_.push_back({&region, chunk});
}

/// Drops what was filled first and never written, but nothing of chunks first ... last of `region`.
void GlobalMemory::make_room(const Region& region, std::uint64_t first, std::uint64_t last) {
  // What comes back all the time is worth its memory.
  if (remade_ > kMostRemade || any_order_) return;
  while (held_ >= kMostChunks && !filled_.empty()) {
    const Place oldest = filled_.front();
    if (oldest.region == &region && oldest.chunk >= first && oldest.chunk <= last) return;
    filled_.pop_front();
    Chunk& chunk = oldest.region->chunks[oldest.chunk];
    if (chunk != Chunk::Clean) continue;
    chunk = Chunk::Dropped;
    --held_;
    give_back(*oldest.region, oldest.chunk);
  }
}

/// Its pages read as zero afterwards.
void GlobalMemory::give_back(Region& region, std::uint64_t chunk) {
  const std::uint64_t begin = chunk * kChunkBytes;
  ::madvise(region.data + begin, std::min(kChunkBytes, region.end - region.begin - begin), MADV_DONTNEED);
}

void GlobalMemory::save(Region& region, std::uint64_t address, std::uint64_t size) {
  const std::uint64_t first = (address - region.begin) / kPageBytes,
                      last = (address - region.begin + size - 1) / kPageBytes;
  for (std::uint64_t page = first; page <= last; ++page) {
    if (region.chunks[page * kPageBytes / kChunkBytes] == Chunk::Fresh) continue;
    const auto [place, is_new] = saved_.try_emplace({&region, page});
    if (!is_new) continue;
    const std::uint8_t* from = region.data + page * kPageBytes;
    place->second.assign(from, from + std::min(kPageBytes, region.end - region.begin - page * kPageBytes));
  }
}

void GlobalMemory::undo_writes() {
  for (const auto& [place, old] : saved_)
    std::copy(old.begin(), old.end(), place.first->data + place.second * kPageBytes);
  saved_.clear();
  for (const Place& place : fresh_) {
    give_back(*place.region, place.chunk);
    const bool zero = std::holds_alternative<FillZero>(place.region->buffer->fill);
    place.region->chunks[place.chunk] = zero ? Chunk::Zero : Chunk::Absent;
    --held_;
  }
  fresh_.clear();
  undoable_ = any_order_ = false;
}

void GlobalMemory::note(Region& region, std::uint8_t how) {
  const std::lock_guard lock(mutex_);
  const std::uint8_t before = std::atomic_ref(region.touched).fetch_or(how, std::memory_order_relaxed);
  constexpr std::uint8_t kBoth = kRead | kLeft;
  if (((before | how) & kBoth) == kBoth) throw StoresMatter();
  if (any_order_ && order_matters()) throw OrderMatters();
}

bool GlobalMemory::allow_any_order() {
  any_order_ = any_order_ || !order_matters();
  return any_order_;
}

/// Also where more may be read than can be held, for then it has to come and go as one block after another needs it.
bool GlobalMemory::order_matters() const {
  std::uint64_t chunks = held_;
  for (const Region& region : regions_) {
    if ((region.touched & (kRead | kWritten)) == (kRead | kWritten)) return true;
    if ((region.touched & kRead) == 0) continue;
    chunks += static_cast<std::uint64_t>(
        std::count_if(region.chunks.begin(), region.chunks.end(), [](Chunk chunk) { return !is_there(chunk); }));
  }
  return chunks > kMostChunks;
}

void GlobalMemory::forget_touches() {
  for (Region& region : regions_) region.touched = 0;
}

std::vector<std::uint8_t> GlobalMemory::buffer(std::size_t index) {
  Region& region = regions_[region_of_[index]];
  if (region.begin == region.end) return {};
  const std::uint8_t* all = bytes(region, region.begin, region.end - region.begin);
  return {all, all + (region.end - region.begin)};
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

GlobalMemory::Region* GlobalView::search(std::uint64_t address, std::uint64_t size) {
  GlobalMemory::Region* found = memory_.find(address, size);
  if (found == nullptr) return nullptr;
  last_ = found;
  begin_ = found->begin;
  end_ = found->end;
  return found;
}

}  // namespace forewarp::emulation
