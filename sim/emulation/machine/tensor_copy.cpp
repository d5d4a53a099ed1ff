#include "emulation/machine/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "emulation/machine/constants.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kSharedMask = 0xffffff;  // of a shared address; above it is the block's rank in its cluster

std::string hex(u64 v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

[[noreturn]] void fail(const Exec& x, const std::string& what, const std::string& remedy) {
  const int lane = std::countr_zero(x.enabled != 0 ? x.enabled : x.active);
  throw InputError(place_text(*x.block, *x.warp, lane, x.pc) + ": " + what, remedy);
}

u32 shared_offset(const Exec& x, u32 address, u32 bytes, u32 alignment, const char* what) {
  const BlockState& block = *x.block;
  if (address >> 24 != block.cluster_rank)
    fail(x, std::string(what) + " at shared address " + hex(address) + " belongs to another block of the cluster",
         "distributed shared memory is not supported");
  const u32 inside = address & kSharedMask;
  if (inside % alignment != 0)
    fail(x,
         std::string(what) + " at shared address " + hex(address) + " is not aligned to " + std::to_string(alignment) +
             " bytes",
         "a real GPU reports a fault here; align the shared memory that the copy names");
  if (inside < block.shared_base || inside - block.shared_base + u64{bytes} > block.shared.size())
    fail(x,
         std::string(what) + " at shared address " + hex(address) + " (" + std::to_string(bytes) +
             " bytes) is outside the block's " + std::to_string(block.shared.size()) + " bytes of shared memory",
         "check dynamic_shared_bytes in the launch file");
  return inside - block.shared_base;
}

void read_map(const Exec& x, u64 address, TensorMap& map) {
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  const std::vector<std::uint8_t>* parameters = x.block->constants->find(0);
  const u64 at = address - kParameterWindow + x.block->kernel->kernel->parameter_base;
  if (address >= kParameterWindow && parameters != nullptr && at + kTensorMapBytes <= parameters->size())
    std::memcpy(bytes.data(), parameters->data() + at, bytes.size());
  const std::optional<TensorMap> found = decode_tensor_map(bytes);
  if (!found)
    fail(x, "there is no tensor map at " + hex(address),
         "give the parameter as tensor_map in the launch file; maps in global memory are not emulated");
  map = *found;
  if (map.interleave != TensorInterleave::None)
    fail(x, "tensor maps with interleave are not emulated", "use interleave none");
  const u32 span = swizzle_bytes(map.swizzle);
  if (span != 0 && map.box[0] * element_bytes(map.type) != span)
    fail(x, "a box whose rows are shorter than the swizzle's span is not emulated", "make its rows as long");
}

u64 pair(const u32* low, const u32* high) { return low[0] | u64{high[0]} << 32; }

/// Cuts the box at the tensor's edges.
void clip(const TensorMap& map, CopiedBox& box) {
  box.any = true;
  box.base = map.address;
  for (std::size_t d = 0; d < static_cast<std::size_t>(map.rank); ++d) {
    const std::int64_t first = box.coordinates[d], step = map.steps[d], count = map.extent(static_cast<int>(d)),
                       length = static_cast<std::int64_t>(map.shape[d]);
    const std::int64_t skipped = first < 0 ? (-first + step - 1) / step : 0;
    const std::int64_t within = length > first ? std::min(count, (length - first + step - 1) / step) : 0;
    box.pitch[d] = map.strides[d] * map.steps[d];
    if (within <= skipped) {
      box.any = false;
      box.extent[d] = 0;
      continue;
    }
    box.base += static_cast<u64>(first + skipped * step) * map.strides[d];
    box.extent[d] = static_cast<u32>(within - skipped);
  }
  box.extent[0] *= element_bytes(map.type);
}

u32 swizzled(u32 address, TensorSwizzle swizzle) {
  const u32 mask = swizzle == TensorSwizzle::None ? 0 : (1u << static_cast<unsigned>(swizzle)) - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

std::uint8_t* open(Exec& x, u64 address, u64 bytes, std::uint8_t how) {
  GlobalView& global = *x.block->global;
  GlobalMemory::Region* region = global.find(address, bytes);
  if (region == nullptr)
    fail(x,
         "global address " + hex(address) + " (" + std::to_string(bytes) +
             " bytes) is in no buffer: " + global.describe(address),
         "check the tensor map, its coordinates and the buffers' sizes in the launch file");
  std::uint8_t* data = global.open(*region, address, bytes, how);
  return data == nullptr ? nullptr : data + (address - region->begin);
}

/// What a box holds beyond its tensor: zeros, or a NaN of the type.
void fill_beyond(std::uint8_t* row, u32 bytes, const TensorMap& map) {
  std::memset(row, 0, bytes);
  if (map.fill != TensorFill::Nan) return;
  const u32 size = element_bytes(map.type);
  for (u32 at = 0; at < bytes; at += size) {
    // All ones but the sign: 0x7fff, 0x7fffffff, ...
    std::memset(row + at, 0xff, size);
    row[at + size - 1] = 0x7f;
  }
}

void move_tensor(Exec& x, const CopiedBox& box) {
  const TensorMap& map = *box.map;
  BlockState& block = *x.block;
  const u32 size = element_bytes(map.type), row_bytes = map.extent(0) * size;
  std::array<std::int64_t, kMostTensorDims> at{};
  std::vector<std::uint8_t> row(row_bytes);
  u32 to = box.shared + block.shared_base;
  const u32 rows = box.bytes / row_bytes;
  for (u32 r = 0; r < rows; ++r, to += row_bytes) {
    u64 address = map.address;
    bool within = true;
    for (std::size_t d = 1; d < static_cast<std::size_t>(map.rank); ++d) {
      const std::int64_t c = box.coordinates[d] + at[d] * map.steps[d];
      within &= c >= 0 && c < static_cast<std::int64_t>(map.shape[d]);
      address += static_cast<u64>(c) * map.strides[d];
    }
    const std::int64_t first = box.coordinates[0];
    const std::int64_t skipped = std::clamp<std::int64_t>(-first, 0, map.extent(0)) * size;
    const std::int64_t end =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(map.shape[0]) - first, 0, map.extent(0)) * size;
    const u64 bytes = within && end > skipped ? static_cast<u64>(end - skipped) : 0;
    address += static_cast<u64>(first * size + skipped);
    if (box.inward) {
      fill_beyond(row.data(), row_bytes, map);
      if (bytes > 0) {
        if (const std::uint8_t* from = open(x, address, bytes, GlobalMemory::kRead))
          std::memcpy(row.data() + skipped, from, bytes);
      }
    }
    for (u32 chunk = 0; chunk < row_bytes; chunk += 16) {
      std::uint8_t* place = block.shared.data() + (swizzled(to + chunk, map.swizzle) - block.shared_base);
      const u32 part = std::min(16u, row_bytes - chunk);
      if (box.inward)
        std::memcpy(place, row.data() + chunk, part);
      else
        std::memcpy(row.data() + chunk, place, part);
    }
    if (!box.inward && bytes > 0) {
      if (std::uint8_t* into = open(x, address, bytes, GlobalMemory::kWritten))
        std::memcpy(into, row.data() + skipped, bytes);
    }
    for (std::size_t d = 1; d < static_cast<std::size_t>(map.rank); ++d) {
      if (++at[d] < map.extent(static_cast<int>(d))) break;
      at[d] = 0;
    }
  }
}

}  // namespace

CopiedBox read_copy(Exec& x, const Op& op, TensorMap& map) {
  CopiedBox box;
  const auto form = static_cast<CopyForm>(op.variant);
  const u32 *near = x.row(op.a), *far = x.row(op.b);
  const auto word = [&](const u32* row, u32 i) { return row[i * kWarpLanes]; };
  box.inward = form == CopyForm::TensorIn || form == CopyForm::BulkIn;
  if (form == CopyForm::TensorIn || form == CopyForm::TensorOut) {
    read_map(x, pair(far, far + kWarpLanes), map);
    if (map.rank != static_cast<int>(op.combine))
      fail(x,
           "a copy of " + std::to_string(op.combine) + " dimensions with a tensor map of " + std::to_string(map.rank),
           "a real GPU reports a fault here; check the shape in the launch file");
    box.map = &map;
    box.rank = map.rank;
    box.bytes = static_cast<u32>(map.box_bytes());
    const u32 first = box.inward ? 2 : 1;  // behind the place and the barrier
    for (u32 d = 0; d < static_cast<u32>(map.rank); ++d)
      box.coordinates[d] = static_cast<std::int32_t>(word(near, first + d));
    clip(map, box);
    box.shared = shared_offset(x, word(near, 0), box.bytes, 128, "the box");
  } else {
    box.bytes = (x.row(op.c)[0] & 0xffffu) * 16;
    box.any = box.bytes > 0;
    box.extent[0] = box.bytes;
    box.pitch[0] = 1;
    box.base = form == CopyForm::BulkIn ? pair(far, far + kWarpLanes) : pair(near, near + kWarpLanes);
    if (box.base % 16 != 0)
      fail(x, "misaligned address " + hex(box.base) + " for a bulk copy", "a real GPU reports a fault here");
    box.shared = shared_offset(x, form == CopyForm::BulkIn ? near[0] : far[0], box.bytes, 16, "the stretch");
    if (box.any && x.block->global->find(box.base, box.bytes) == nullptr)
      fail(x,
           "global address " + hex(box.base) + " (" + std::to_string(box.bytes) +
               " bytes) is in no buffer: " + x.block->global->describe(box.base),
           "check grid, block, arguments and the buffers' sizes in the launch file");
  }
  if (box.inward) box.barrier = shared_offset(x, word(near, 1), 8, 8, "the barrier");
  return box;
}

void move_copy(Exec& x, const Op& op, const CopiedBox& box) {
  const auto form = static_cast<CopyForm>(op.variant);
  if (form == CopyForm::TensorIn || form == CopyForm::TensorOut) {
    move_tensor(x, box);
    return;
  }
  if (!box.any) return;
  std::uint8_t* data = open(x, box.base, box.bytes, box.inward ? GlobalMemory::kRead : GlobalMemory::kWritten);
  std::uint8_t* place = x.block->shared.data() + box.shared;
  if (data == nullptr) return;
  if (box.inward)
    std::memcpy(place, data, box.bytes);
  else
    std::memcpy(data, place, box.bytes);
}

}  // namespace forewarp::emulation
