#include "emulation/machine/tensor_copy.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "emulation/machine/constants.h"
#include "emulation/machine/float_bits.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr u32 kSharedMask = (1u << kRankShift) - 1;

std::string hex(u64 v) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

[[noreturn]] void fail(const Exec& x, const std::string& what, const std::string& remedy) {
  const int lane = std::countr_zero(x.enabled != 0 ? x.enabled : x.active);
  throw InputError(place_text(*x.block, *x.warp, lane, x.pc) + ": " + what, remedy);
}

/// The block that a shared address belongs to.
u32 rank_of(const Exec& x, u32 address, const char* what) {
  const u32 rank = address >> kRankShift;
  if (cluster_block(*x.block, rank) == nullptr)
    fail(x,
         std::string(what) + " at shared address " + hex(address) + " belongs to block " + std::to_string(rank) +
             " of a cluster of " + std::to_string(x.block->cluster->blocks.size()),
         "give the launch the cluster that the kernel is written for");
  return rank;
}

/// Every block of the cluster has as much shared memory.
u32 shared_offset(const Exec& x, u32 address, u32 bytes, u32 alignment, const char* what) {
  const BlockState& block = *x.block;
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

/// The tensor map among the kernel's parameters or in global memory. Returns whether the launch has written there.
bool read_map(const Exec& x, u64 address, TensorMap& map) {
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  bool written = false;
  const std::vector<std::uint8_t>* parameters = x.block->constants->find(0);
  const u64 at = address - kParameterWindow + x.block->kernel->kernel->parameter_base;
  if (address >= kParameterWindow && parameters != nullptr && at + kTensorMapBytes <= parameters->size()) {
    std::memcpy(bytes.data(), parameters->data() + at, bytes.size());
  } else if (GlobalMemory::Region* region = x.block->global->find(address, kTensorMapBytes); region != nullptr) {
    if (address % kTensorMapAlignment != 0)
      fail(x, "the tensor map at " + hex(address) + " is not aligned to 64 bytes", "a real GPU reports a fault here");
    const std::uint8_t* data = x.block->global->open(*region, address, kTensorMapBytes, GlobalMemory::kRead);
    std::memcpy(bytes.data(), data + (address - region->begin), bytes.size());
    written = (region->touched & GlobalMemory::kWritten) != 0;
  }
  const std::optional<TensorMap> found = decode_tensor_map(bytes);
  if (!found)
    fail(x, "there is no tensor map at " + hex(address),
         "give the parameter as tensor_map in the launch file, or fill the buffer with tensor_maps; maps that a "
         "kernel makes itself are not emulated");
  map = *found;
  if (map.interleave != TensorInterleave::None)
    fail(x, "tensor maps with interleave are not emulated", "use interleave none");
  const u32 span = swizzle_bytes(map.swizzle);
  if (span != 0 && map.box[0] * element_bytes(map.type) != span)
    fail(x, "a box whose rows are shorter than the swizzle's span is not emulated", "make its rows as long");
  return written;
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

BulkType bulk_type(TensorType type) {
  switch (type) {
    case TensorType::I32:
      return BulkType::S32;
    case TensorType::U64:
      return BulkType::U64;
    case TensorType::I64:
      return BulkType::S64;
    case TensorType::F16:
      return BulkType::F16;
    case TensorType::Bf16:
      return BulkType::Bf16;
    case TensorType::F32:
    case TensorType::Tf32:
      return BulkType::F32;
    case TensorType::F32Ftz:
    case TensorType::Tf32Ftz:
      return BulkType::F32Ftz;
    case TensorType::F64:
      return BulkType::F64;
    case TensorType::U8:
    case TensorType::U16:
    case TensorType::U32:
      break;
  }
  return BulkType::U32;
}

template <class T>
T combine_integers(BulkOperation operation, T old, T v) {
  using U = std::make_unsigned_t<T>;
  switch (operation) {
    case BulkOperation::Add:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(v));
    case BulkOperation::Min:
      return std::min(old, v);
    case BulkOperation::Max:
      return std::max(old, v);
    case BulkOperation::Increment:
      return old >= v ? T{0} : static_cast<T>(old + 1);
    case BulkOperation::Decrement:
      return old == 0 || old > v ? v : static_cast<T>(old - 1);
    case BulkOperation::And:
      return old & v;
    case BulkOperation::Or:
      return old | v;
    case BulkOperation::Xor:
      return old ^ v;
  }
  return v;
}

template <class F>
F combine_floats(BulkOperation operation, F old, F v) {
  switch (operation) {
    case BulkOperation::Min:
      return v < old ? v : old;
    case BulkOperation::Max:
      return v > old ? v : old;
    default:
      return old + v;
  }
}

template <class Format>
std::uint16_t combine_halves(BulkOperation operation, u32 old, u32 v) {
  if (operation == BulkOperation::Add)
    return static_cast<std::uint16_t>(Format::encode(odd_sum(Format::decode(old), Format::decode(v))));
  return static_cast<std::uint16_t>(Format::encode(combine_floats(operation, Format::decode(old), Format::decode(v))));
}

template <class T, class Combine>
void combine_row(std::uint8_t* into, const std::uint8_t* from, u64 bytes, Combine&& combine) {
  for (u64 at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
    T old, v;
    std::memcpy(&old, into + at, sizeof old);
    std::memcpy(&v, from + at, sizeof v);
    const T next = combine(old, v);
    std::memcpy(into + at, &next, sizeof next);
  }
}

/// What reductions leave of a row.
void reduce_row(std::uint8_t* into, const std::uint8_t* from, u64 bytes, BulkOperation operation, BulkType type) {
  const auto integers = [&](auto old, auto v) { return combine_integers(operation, old, v); };
  const auto floats = [&](auto old, auto v) { return combine_floats(operation, old, v); };
  switch (type) {
    case BulkType::U32:
      return combine_row<u32>(into, from, bytes, integers);
    case BulkType::S32:
      return combine_row<std::int32_t>(into, from, bytes, integers);
    case BulkType::U64:
      return combine_row<u64>(into, from, bytes, integers);
    case BulkType::S64:
      return combine_row<std::int64_t>(into, from, bytes, integers);
    case BulkType::F32:
      return combine_row<float>(into, from, bytes, floats);
    case BulkType::F32Ftz:
      return combine_row<u32>(into, from, bytes, [&](u32 old, u32 v) {
        return flush_bits(as_bits(combine_floats(operation, as_float(flush_bits(old)), as_float(flush_bits(v)))));
      });
    case BulkType::F64:
      return combine_row<double>(into, from, bytes, floats);
    case BulkType::F16:
      return combine_row<std::uint16_t>(into, from, bytes,
                                        [&](u32 old, u32 v) { return combine_halves<Half>(operation, old, v); });
    case BulkType::Bf16:
      return combine_row<std::uint16_t>(into, from, bytes,
                                        [&](u32 old, u32 v) { return combine_halves<Brain>(operation, old, v); });
  }
}

/// A row of what leaves shared memory; nullptr: of what has been left out there.
void write_row(Exec& x, const CopiedBox& box, u64 address, const std::uint8_t* from, u64 bytes) {
  if (from == nullptr) {
    if (GlobalMemory::Region* region = x.block->global->find(address, bytes)) x.block->global->leave(*region);
    return;
  }
  const bool reduces = box.kind == MemoryKind::Reduction;
  const std::uint8_t how = reduces ? GlobalMemory::kRead | GlobalMemory::kWritten : GlobalMemory::kWritten;
  std::uint8_t* into = open(x, address, bytes, how);
  if (into == nullptr) return;
  if (reduces)
    reduce_row(into, from, bytes, box.operation, box.type);
  else
    std::memcpy(into, from, bytes);
}

/// Between global memory and shared memory of `block`.
void move_tensor(Exec& x, const CopiedBox& box, BlockState& block) {
  const TensorMap& map = *box.map;
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
    if (box.inward()) {
      fill_beyond(row.data(), row_bytes, map);
      if (bytes > 0) {
        if (const std::uint8_t* from = open(x, address, bytes, GlobalMemory::kRead))
          std::memcpy(row.data() + skipped, from, bytes);
      }
    }
    bool left = false;
    for (u32 chunk = 0; chunk < row_bytes; chunk += 16) {
      const u32 offset = static_cast<u32>(swizzled(to + chunk, map.swizzle) - block.shared_base);
      std::uint8_t* place = block.shared.data() + offset;
      const u32 part = std::min(16u, row_bytes - chunk);
      if (box.inward()) {
        std::memcpy(place, row.data() + chunk, part);
      } else {
        std::memcpy(row.data() + chunk, place, part);
        left |= was_left(block, offset, part);
      }
    }
    if (box.outward() && bytes > 0) write_row(x, box, address, left ? nullptr : row.data() + skipped, bytes);
    for (std::size_t d = 1; d < static_cast<std::size_t>(map.rank); ++d) {
      if (++at[d] < map.extent(static_cast<int>(d))) break;
      at[d] = 0;
    }
  }
}

void move_stretch(Exec& x, const CopiedBox& box, BlockState& block) {
  if (!box.any) return;
  std::uint8_t* place = block.shared.data() + box.shared;
  if (box.outward()) {
    write_row(x, box, box.base, was_left(block, box.shared, static_cast<u32>(box.bytes)) ? nullptr : place, box.bytes);
  } else if (const std::uint8_t* data = open(x, box.base, box.bytes, GlobalMemory::kRead)) {
    std::memcpy(place, data, box.bytes);
  }
}

/// To which blocks of the cluster a copy goes. A multicast names them by a mask; its addresses, whatever block they
/// name, are offsets in each.
void find_blocks(const Exec& x, const Op& op, CopiedBox& box) {
  const auto form = static_cast<CopyForm>(op.variant);
  const auto own = static_cast<BlockMask>(1u << x.block->cluster_rank);
  const u32* near = x.row(op.a);
  if (!box.inward()) {
    const u32 from = form == CopyForm::TensorOut ? near[0] : x.row(op.b)[0];
    if (rank_of(x, from, "the source") != x.block->cluster_rank)
      fail(x, "copies out of another block's shared memory are not emulated", "copy from the block that owns it");
    return;
  }
  box.blocks = own;
  if (op.carry_out) {
    box.blocks = static_cast<BlockMask>(x.row(op.c)[0] >> 16);
    const std::size_t size = x.block->cluster->blocks.size();
    if (box.blocks == 0 || box.blocks >> size != 0)
      fail(x, "a multicast to blocks " + hex(box.blocks) + " of a cluster of " + std::to_string(size),
           "give the launch the cluster that the kernel is written for");
  } else {
    const u32 rank = rank_of(x, near[0], "the place");
    if (rank_of(x, near[kWarpLanes], "the barrier") != rank)
      fail(x, "a copy whose place and barrier belong to different blocks", "both must be in one block");
    box.blocks = static_cast<BlockMask>(1u << rank);
  }
  if (box.blocks == own) box.blocks = 0;
}

}  // namespace

CopiedBox read_copy(Exec& x, const Op& op, TensorMap& map) {
  CopiedBox box;
  const auto form = static_cast<CopyForm>(op.variant);
  const u32 *near = x.row(op.a), *far = x.row(op.b);
  const auto word = [&](const u32* row, u32 i) { return row[i * kWarpLanes]; };
  if (form == CopyForm::TensorOut || form == CopyForm::BulkOut) box.kind = MemoryKind::Store;
  if (form == CopyForm::TensorPrefetch || form == CopyForm::BulkPrefetch) box.kind = MemoryKind::Load;
  if (op.immediate != 0) {
    box.kind = MemoryKind::Reduction;
    box.operation = static_cast<BulkOperation>(op.immediate - 1);
    box.type = static_cast<BulkType>(op.target);
  }
  if (is_tensor(form)) {
    box.map_written = read_map(x, pair(far, far + kWarpLanes), map);
    if (map.rank != static_cast<int>(op.combine))
      fail(x,
           "a copy of " + std::to_string(op.combine) + " dimensions with a tensor map of " + std::to_string(map.rank),
           "a real GPU reports a fault here; check the shape in the launch file");
    box.map = &map;
    box.rank = map.rank;
    box.bytes = static_cast<u32>(map.box_bytes());
    if (box.kind == MemoryKind::Reduction) {
      if (element_bytes(map.type) == 1 || map.type == TensorType::U16)
        fail(x, "a reduction of 8 or 16-bit integers, which there is not", "use another type for the tensor map");
      box.type = bulk_type(map.type);
    }
    const u32 first = box.before_coordinates();
    for (u32 d = 0; d < static_cast<u32>(map.rank); ++d)
      box.coordinates[d] = static_cast<std::int32_t>(word(near, first + d));
    clip(map, box);
    if (box.kind != MemoryKind::Load) box.shared = shared_offset(x, word(near, 0), box.bytes, 128, "the box");
  } else {
    box.bytes = (x.row(op.c)[0] & 0xffffu) * 16;
    if (op.clusterwide) {
      if (rank_of(x, far[0], "the source") != x.block->cluster_rank)
        fail(x, "copies out of another block's shared memory are not emulated", "copy from the block that owns it");
      box.base = shared_offset(x, far[0], box.bytes, 16, "the source");
      box.shared = shared_offset(x, near[0], box.bytes, 16, "the stretch");
      box.barrier = shared_offset(x, near[kWarpLanes], 8, 8, "the barrier");
      find_blocks(x, op, box);
      return box;
    }
    box.any = box.bytes > 0;
    box.extent[0] = box.bytes;
    box.pitch[0] = 1;
    box.base = form == CopyForm::BulkIn ? pair(far, far + kWarpLanes) : pair(near, near + kWarpLanes);
    if (box.base % 16 != 0)
      fail(x, "misaligned address " + hex(box.base) + " for a bulk copy", "a real GPU reports a fault here");
    if (box.kind != MemoryKind::Load)
      box.shared = shared_offset(x, form == CopyForm::BulkIn ? near[0] : far[0], box.bytes, 16, "the stretch");
    if (box.any && x.block->global->find(box.base, box.bytes) == nullptr)
      fail(x,
           "global address " + hex(box.base) + " (" + std::to_string(box.bytes) +
               " bytes) is in no buffer: " + x.block->global->describe(box.base),
           "check grid, block, arguments and the buffers' sizes in the launch file");
  }
  find_blocks(x, op, box);
  if (box.inward()) box.barrier = shared_offset(x, word(near, 1), 8, 8, "the barrier");
  return box;
}

void move_copy(Exec& x, const Op& op, const CopiedBox& box) {
  if (box.kind == MemoryKind::Load) return;
  const bool tensor = is_tensor(static_cast<CopyForm>(op.variant));
  const BlockMask blocks = box.blocks != 0 ? box.blocks : static_cast<BlockMask>(1u << x.block->cluster_rank);
  for (unsigned m = blocks; m != 0; m &= m - 1) {
    BlockState& block = *cluster_block(*x.block, static_cast<u32>(std::countr_zero(m)));
    block.written_by_others |= &block != x.block;
    if (op.clusterwide) {
      if (was_left(*x.block, static_cast<u32>(box.base), static_cast<u32>(box.bytes))) throw StoresMatter();
      std::memcpy(block.shared.data() + box.shared, x.block->shared.data() + box.base, box.bytes);
    } else if (tensor) {
      move_tensor(x, box, block);
    } else {
      move_stretch(x, box, block);
    }
  }
}

}  // namespace forewarp::emulation
