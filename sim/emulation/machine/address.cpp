#include "emulation/machine/address.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/error.h"
#include "trace/builder.h"

namespace forewarp::emulation {
namespace {

// Local memory in traces: warp after warp, far from every buffer. Blocks share the addresses; which of them live side
// by side is for the timing model to know.
constexpr std::uint64_t kLocalTraceBase = 0x0000700000000000ull;

std::string hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

[[noreturn]] void fail(const Exec& x, int lane, const std::string& what, const std::string& remedy) {
  throw InputError(place_text(*x.block, *x.warp, lane, x.pc) + ": " + what, remedy);
}

struct Bounds {
  std::uint64_t low, high, bits;
};

/// Without a branch by lane, so that the compiler can take several at once.
Bounds bounds_of(const Exec& x, LaneMask lanes) {
  std::uint64_t low = ~std::uint64_t{0}, high = 0, bits = 0;
  const std::uint64_t* address = x.address.data();
  for (int i = 0; i < kWarpLanes; ++i) {
    const std::uint64_t keep = std::uint64_t{0} - (lanes >> i & 1u);
    low = std::min(low, address[i] | ~keep);
    high = std::max(high, address[i] & keep);
    bits |= address[i] & keep;
  }
  return {low, high, bits};
}

int first_lane(LaneMask lanes) { return std::countr_zero(lanes); }

void check_alignment(const Exec& x, const Op& op, LaneMask lanes, std::uint64_t bits) {
  const std::uint64_t rest = std::min<std::uint64_t>(op.bytes, 16) - 1;
  if ((bits & rest) == 0) [[likely]]
    return;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    const std::uint64_t address = x.address[static_cast<std::size_t>(lane)];
    if ((address & rest) == 0) continue;
    fail(x, lane, "misaligned address " + hex(address) + " for an access of " + std::to_string(op.bytes) + " bytes",
         "a real GPU reports a misaligned address here; check the arguments and offsets in the launch file");
  }
}

void check_global(Exec& x, const Op& op, LaneMask lanes) {
  const Bounds b = bounds_of(x, lanes);
  x.lowest = b.low;
  x.highest = b.high;
  check_alignment(x, op, lanes, b.bits);
  GlobalView& global = *x.block->global;
  if (global.find(b.low, b.high - b.low + op.bytes) != nullptr) [[likely]]
    return;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    const std::uint64_t address = x.address[static_cast<std::size_t>(lane)];
    if (global.find(address, op.bytes) != nullptr) continue;
    fail(x, lane,
         "global address " + hex(address) + " (" + std::to_string(op.bytes) +
             " bytes) is in no buffer: " + global.describe(address),
         "check grid, block, arguments and the buffers' sizes in the launch file");
  }
}

void check_bounded(const Exec& x, const Op& op, LaneMask lanes, std::uint64_t size, const char* memory) {
  const Bounds b = bounds_of(x, lanes);
  check_alignment(x, op, lanes, b.bits);
  if (b.high < size && size - b.high >= op.bytes) [[likely]]
    return;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    const std::uint64_t address = x.address[static_cast<std::size_t>(lane)];
    if (address < size && size - address >= op.bytes) continue;
    fail(x, lane,
         std::string(memory) + " offset " + hex(address) + " (" + std::to_string(op.bytes) + " bytes) is beyond the " +
             std::to_string(size) + " bytes it has",
         "check dynamic_shared_bytes and the arguments in the launch file");
  }
}

/// Turns shared addresses into offsets without the reserved base, those of other blocks of the cluster into
/// remote_address()es, whose lanes x.remote names.
void shared_offsets(Exec& x, const Op& op, LaneMask lanes) {
  const BlockState& block = *x.block;
  x.remote = 0;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    std::uint64_t& address = x.address[static_cast<std::size_t>(lane)];
    const auto low = static_cast<std::uint32_t>(address);
    const std::uint32_t rank = block.sm >= 90 ? low >> kRankShift : block.cluster_rank;
    const std::uint32_t inside = block.sm >= 90 ? low & ((1u << kRankShift) - 1) : low;
    if (inside < block.shared_base) fail(x, lane, "shared address " + hex(low) + " is in the reserved first KiB", "");
    address = inside - block.shared_base;
    if (rank == block.cluster_rank) continue;
    if (!op.clusterwide)
      fail(x, lane, "shared address " + hex(low) + " belongs to another block of the cluster",
           "this instruction reaches its own block's shared memory alone");
    if (cluster_block(block, rank) == nullptr)
      fail(x, lane,
           "shared address " + hex(low) + " belongs to block " + std::to_string(rank) + " of a cluster of " +
               std::to_string(block.cluster->blocks.size()),
           "give the launch the cluster that the kernel is written for");
    address = remote_address(rank, address);
    x.remote |= 1u << lane;
  }
}

/// Lanes in other blocks' shared memory, which is as large as the block's own.
void check_remote(const Exec& x, const Op& op, LaneMask lanes, std::uint64_t size) {
  check_alignment(x, op, lanes, bounds_of(x, lanes).bits);
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    const std::uint64_t address = x.address[static_cast<std::size_t>(lane)];
    const std::uint64_t offset = address & ((std::uint64_t{1} << kRemoteShift) - 1);
    if (offset < size && size - offset >= op.bytes) continue;
    fail(x, lane,
         "offset " + hex(offset) + " (" + std::to_string(op.bytes) + " bytes) in shared memory of block " +
             std::to_string(remote_rank(address)) + " of the cluster is beyond the " + std::to_string(size) +
             " bytes it has",
         "check dynamic_shared_bytes and the arguments in the launch file");
  }
}

LaneMask lanes_in_window(const Exec& x, LaneMask lanes, std::uint64_t window, std::uint64_t bytes) {
  LaneMask in = 0;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const int lane = first_lane(m);
    if (x.address[static_cast<std::size_t>(lane)] - window < bytes) in |= 1u << lane;
  }
  return in;
}

LaneMask settle(Exec& x, const Op& op, LaneMask lanes, MemorySpace space) {
  x.space = space;
  if (space == MemorySpace::Global) {
    check_global(x, op, lanes);
  } else if (space == MemorySpace::Shared) {
    shared_offsets(x, op, lanes);
    if (x.remote != 0) check_remote(x, op, x.remote, x.block->shared.size());
    if (lanes != x.remote) check_bounded(x, op, lanes & ~x.remote, x.block->shared.size(), "shared memory");
  } else {
    check_bounded(x, op, lanes, x.block->local_bytes, "local memory");
  }
  return lanes;
}

/// A generic access: every lane to its own space; x.space is the lowest lane's.
LaneMask settle_generic(Exec& x, const Op& op) {
  const LaneMask shared = lanes_in_window(x, x.enabled, kSharedWindow, kSharedWindowBytes);
  const LaneMask local = lanes_in_window(x, x.enabled, kLocalWindow, kWindowBytes);
  const LaneMask global = x.enabled & ~shared & ~local;
  for (LaneMask m = shared; m != 0; m &= m - 1) x.address[static_cast<std::size_t>(first_lane(m))] -= kSharedWindow;
  for (LaneMask m = local; m != 0; m &= m - 1) x.address[static_cast<std::size_t>(first_lane(m))] -= kLocalWindow;
  x.generic = {global, shared, local};
  const LaneMask lowest = x.enabled & (0u - x.enabled);
  LaneMask reported = 0;
  MemorySpace space = MemorySpace::Global;
  const auto one = [&](LaneMask lanes, MemorySpace s) {
    if (lanes == 0) return;
    settle(x, op, lanes, s);
    if ((lanes & lowest) != 0) {
      reported = lanes;
      space = s;
    }
  };
  one(global, MemorySpace::Global);
  one(shared, MemorySpace::Shared);
  one(local, MemorySpace::Local);
  x.space = space;
  return reported;
}

void raw_addresses(Exec& x, const Source& index, const Source& uniform, const Op& op, bool narrow) {
  const std::uint32_t* low = x.row(index);
  std::uint64_t fixed = static_cast<std::uint64_t>(op.offset);
  if (op.has_uniform) {
    fixed += x.row(uniform)[0];
    if (op.wide_uniform) fixed += static_cast<std::uint64_t>(x.high(uniform)[0]) << 32;
  }
  std::uint64_t* out = x.address.data();
  if (op.wide_index) {
    const std::uint32_t* high = x.high(index);
    FW_LANES out[i] = (low[i] | static_cast<std::uint64_t>(high[i]) << 32) + fixed;
  } else if (narrow) {
    const auto fixed32 = static_cast<std::uint32_t>(fixed);
    const std::uint32_t scale = op.scale;
    FW_LANES out[i] = low[i] * scale + fixed32;
  } else {
    const std::uint64_t scale = op.scale;
    FW_LANES out[i] = low[i] * scale + fixed;
  }
}

std::uint8_t* local_frame(Exec& x) {
  std::vector<std::uint8_t>& local = x.warp->local;
  if (local.empty()) local.resize(std::size_t{x.block->local_bytes} * kWarpLanes);
  return local.data();
}

std::uint8_t touch_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::Store:
    case MemoryKind::Reduction:
      return GlobalMemory::kWritten;
    case MemoryKind::Atomic:
      return GlobalMemory::kRead | GlobalMemory::kWritten;
    default:
      return GlobalMemory::kRead;
  }
}

/// Lanes whose addresses, from `low` to `high`, lie in one region.
void move_in_region(Exec& x, const Op& op, LaneMask lanes, std::uint64_t low, std::uint64_t high,
                    GlobalMemory::Region& region) {
  x.data = x.block->global->open(region, low, high - low + op.bytes, touch_of(op.memory));
  if (x.data == nullptr) return;
  x.enabled = lanes;
  x.origin = region.begin;
  x.stride = 0;
  op.run(x, op);
}

/// The lanes that check_global has just seen.
void move_global(Exec& x, const Op& op, LaneMask lanes) {
  GlobalView& global = *x.block->global;
  if (GlobalMemory::Region* all = global.find(x.lowest, x.highest - x.lowest + op.bytes)) {
    move_in_region(x, op, lanes, x.lowest, x.highest, *all);
    return;
  }
  x.full = false;
  for (LaneMask rest = lanes; rest != 0;) {
    GlobalMemory::Region* region = global.find(x.address[static_cast<std::size_t>(first_lane(rest))], op.bytes);
    LaneMask here = 0;
    for (LaneMask m = rest; m != 0; m &= m - 1) {
      const std::uint64_t a = x.address[static_cast<std::size_t>(first_lane(m))];
      if (a >= region->begin && a < region->end) here |= m & (0u - m);
    }
    const Bounds b = bounds_of(x, here);
    move_in_region(x, op, here, b.low, b.high, *region);
    rest &= ~here;
  }
}

/// Units of kLeftBytes that hold any of so many bytes.
std::uint32_t units_of(std::uint32_t offset, std::uint32_t bytes) {
  return (offset + bytes + kLeftBytes - 1) / kLeftBytes - offset / kLeftBytes;
}

/// What is read must not be what was left out.
void check_left(const Exec& x, const Op& op, LaneMask lanes, const BlockState& block, std::uint64_t origin) {
  if (block.left.empty() || op.memory == MemoryKind::Store) return;
  for (LaneMask m = lanes; m != 0; m &= m - 1) {
    const std::uint64_t offset = x.address[static_cast<std::size_t>(first_lane(m))] - origin;
    if (was_left(block, static_cast<std::uint32_t>(offset), op.bytes)) throw StoresMatter();
  }
}

/// Lanes in shared memory of other blocks, one block after another.
void move_remote(Exec& x, const Op& op, LaneMask lanes) {
  x.full = false;
  x.stride = 0;
  for (LaneMask rest = lanes; rest != 0;) {
    const int rank = remote_rank(x.address[static_cast<std::size_t>(first_lane(rest))]);
    x.enabled = 0;
    for (LaneMask m = rest; m != 0; m &= m - 1)
      if (remote_rank(x.address[static_cast<std::size_t>(first_lane(m))]) == rank) x.enabled |= m & (0u - m);
    rest &= ~x.enabled;
    BlockState& block = *cluster_block(*x.block, static_cast<std::uint32_t>(rank));
    block.written_by_others |= op.memory != MemoryKind::Load;
    x.data = block.shared.data();
    x.origin = remote_address(static_cast<std::uint32_t>(rank), 0);
    check_left(x, op, x.enabled, block, x.origin);
    op.run(x, op);
  }
}

void move_in(Exec& x, const Op& op, LaneMask lanes, MemorySpace space) {
  if (lanes == 0) return;
  if (space == MemorySpace::Global) {
    move_global(x, op, lanes);
    return;
  }
  if (space == MemorySpace::Shared && (lanes & x.remote) != 0) {
    move_remote(x, op, lanes & x.remote);
    lanes &= ~x.remote;
    if (lanes == 0) return;
  }
  x.enabled = lanes;
  x.origin = 0;
  const bool shared = space == MemorySpace::Shared;
  x.data = shared ? x.block->shared.data() : local_frame(x);
  x.stride = shared ? 0 : x.block->local_bytes;
  if (shared) check_left(x, op, lanes, *x.block, 0);
  op.run(x, op);
}

}  // namespace

std::string place_text(const BlockState& block, const Warp& warp, int lane, std::uint32_t pc) {
  const Kernel& kernel = *block.kernel->kernel;
  const std::uint64_t thread = static_cast<std::uint64_t>(warp.index) * kWarpLanes + static_cast<unsigned>(lane);
  const auto triple = [](std::uint64_t x, std::uint64_t y, std::uint64_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
  };
  std::string text =
      "kernel " + kernel.demangled + ", block " + triple(block.index.x, block.index.y, block.index.z) + ", thread " +
      triple(thread % block.block.x, thread / block.block.x % block.block.y, thread / block.block.x / block.block.y) +
      ", instruction " + hex(std::uint64_t{pc} * 16);
  if (pc < kernel.text.size()) text += " `" + kernel.text[pc] + "`";
  if (pc < kernel.source.size() && !kernel.source[pc].empty()) text += " of " + kernel.source[pc];
  return text;
}

LaneMask compute_addresses(Exec& x, const Op& op) {
  raw_addresses(x, op.a, op.b, op, op.space == MemorySpace::Shared || op.space == MemorySpace::Local);
  if (op.space == MemorySpace::Generic) return settle_generic(x, op);
  return settle(x, op, x.enabled, op.space);
}

void move_data(Exec& x, const Op& op) {
  const LaneMask enabled = x.enabled;
  const bool full = x.full;
  if (op.space != MemorySpace::Generic) {
    move_in(x, op, enabled, x.space);
  } else {
    x.full = false;
    move_in(x, op, x.generic[0], MemorySpace::Global);
    move_in(x, op, x.generic[1], MemorySpace::Shared);
    move_in(x, op, x.generic[2], MemorySpace::Local);
  }
  x.enabled = enabled;
  x.full = full;
}

bool was_left(const BlockState& block, std::uint32_t offset, std::uint32_t bytes) {
  if (block.left.empty()) return false;
  const auto first = block.left.begin() + offset / kLeftBytes;
  return std::any_of(first, first + units_of(offset, bytes), [](std::uint8_t left) { return left != 0; });
}

void leave_store(Exec& x, const Op& op) {
  if (op.space == MemorySpace::Shared) {
    if (x.remote != 0) throw StoresMatter();
    std::vector<std::uint8_t>& left = x.block->left;
    left.resize(x.block->shared.size() / kLeftBytes + 1, 0);
    for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
      const auto offset = static_cast<std::uint32_t>(x.address[static_cast<std::size_t>(first_lane(m))]);
      std::fill_n(left.begin() + offset / kLeftBytes, units_of(offset, op.bytes), std::uint8_t{1});
    }
    return;
  }
  GlobalView& global = *x.block->global;
  const bool generic = op.space == MemorySpace::Generic;
  const LaneMask lanes = generic ? x.generic[0] : x.space == MemorySpace::Global ? x.enabled : 0;
  if (lanes == 0) return;
  if (!generic) {
    if (GlobalMemory::Region* all = global.find(x.lowest, x.highest - x.lowest + op.bytes)) {
      global.leave(*all);
      return;
    }
  }
  for (LaneMask m = lanes; m != 0; m &= m - 1)
    global.leave(*global.find(x.address[static_cast<std::size_t>(first_lane(m))], op.bytes));
}

LaneMask compute_copy_source(Exec& x, const Op& op) {
  raw_addresses(x, op.a, op.b, op, false);
  return x.enabled == 0 ? 0 : settle(x, op, x.enabled, MemorySpace::Global);
}

LaneMask compute_copy_target(Exec& x, const Op& op) {
  const std::uint32_t* low = x.row(op.c);
  const std::uint32_t uniform = x.row(op.d)[0];
  FW_LANES x.address[static_cast<std::size_t>(i)] = low[i] + uniform + op.immediate;
  return settle(x, op, x.enabled, MemorySpace::Shared);
}

void interleave_local(const Exec& x, std::uint64_t* out) {
  const std::uint64_t frame_words = (std::uint64_t{x.block->local_bytes} + 3) / 4;
  const std::uint64_t base = kLocalTraceBase + static_cast<std::uint64_t>(x.warp->index) * frame_words * kLineBytes;
  for (int i = 0; i < kWarpLanes; ++i) {
    out[i] = interleaved_local_address(base, i, x.address[static_cast<std::size_t>(i)]);
  }
}

}  // namespace forewarp::emulation
