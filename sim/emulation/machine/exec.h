// What a handler sees of the machine: the rows of the warp, its predicates, the lanes that take part. The helpers keep
// handlers down to a loop over 32 lanes that the compiler vectorises; lanes that do not take part are merged back.
#pragma once

#include <array>
#include <cstdint>

#include "emulation/ops/op.h"

#if defined(__clang__)
#define FW_LANES _Pragma("clang loop vectorize(enable)") for (int i = 0; i < kWarpLanes; ++i)
#else
#define FW_LANES _Pragma("GCC ivdep") for (int i = 0; i < kWarpLanes; ++i)
#endif

namespace forewarp::emulation {

struct Warp;
struct BlockState;

struct Exec {
  std::array<std::uintptr_t, 2> base{};  ///< register file; literal pool less kLiteralBit
  LaneMask* predicates = nullptr;
  LaneMask active = 0;   ///< lanes at this instruction
  LaneMask enabled = 0;  ///< of those, the lanes whose guard is true: what is written
  bool full = false;     ///< every lane that still lives is enabled: rows may be written whole
  Warp* warp = nullptr;
  BlockState* block = nullptr;
  std::uint32_t pc = 0;
  // Of the memory instruction at hand: addresses inside the space, which is never Generic, and where lane i's byte is:
  // data + (address[i] - origin) + i * stride.
  MemorySpace space = MemorySpace::None;
  std::uint64_t lowest = 0, highest = 0;  ///< of the addresses checked last, those of x.space if that is Global
  std::uint8_t* data = nullptr;
  std::uint64_t origin = 0;
  std::uint64_t stride = 0;
  std::array<LaneMask, 3> generic{};  ///< lanes of a generic access in global, shared, local memory
  LaneMask remote = 0;                ///< lanes in shared memory of other blocks of the cluster (remote_address)
  alignas(64) std::array<std::uint64_t, kWarpLanes> address{};
  alignas(64) std::array<Row, 8> scratch{};
  alignas(64) Row lane_bit{};  ///< 1 << lane

  const std::uint32_t* row(std::uint32_t offset) const {
    return static_cast<const std::uint32_t*>(
        __builtin_assume_aligned(reinterpret_cast<const void*>(base[offset >> 31] + offset), 64));
  }
  const std::uint32_t* row(const Source& s) const { return row(s.row); }
  const std::uint32_t* high(const Source& s) const { return row(s.row + kRowBytes); }
  std::uint32_t* register_row(std::uint32_t offset) {
    return static_cast<std::uint32_t*>(__builtin_assume_aligned(reinterpret_cast<void*>(base[0] + offset), 64));
  }
  LaneMask predicate(const PredicateSource& p) const { return predicates[p.slot] ^ p.flip; }
  std::uint8_t* lane_data(int lane) const {
    const auto i = static_cast<std::size_t>(lane);
    return data + (address[i] - origin) + i * stride;
  }
  void set_predicate(int slot, LaneMask value) { predicates[slot] = (predicates[slot] & ~enabled) | (value & enabled); }
};

/// Sets bit i where lane i of `flags` is not zero.
inline LaneMask pack_lanes(const Exec& x, const std::uint32_t* flags) {
  const std::uint32_t* bit = x.lane_bit.lane.data();
  LaneMask mask = 0;
  for (int i = 0; i < kWarpLanes; ++i) mask |= flags[i] != 0 ? bit[i] : 0u;
  return mask;
}

/// Spreads a mask: lane i is all ones where bit i is set.
inline void spread_mask(const Exec& x, LaneMask mask, std::uint32_t* out) {
  const std::uint32_t* bit = x.lane_bit.lane.data();
  FW_LANES out[i] = (mask & bit[i]) != 0 ? ~0u : 0u;
}

/// Copies the enabled lanes of `count` scratch rows to the rows from `dst`.
inline void merge_rows(Exec& x, std::uint32_t dst, int count) {
  alignas(64) std::uint32_t take[kWarpLanes];
  spread_mask(x, x.enabled, take);
  for (int r = 0; r < count; ++r) {
    std::uint32_t* out = x.register_row(dst + static_cast<std::uint32_t>(r) * kRowBytes);
    const std::uint32_t* in = x.scratch[static_cast<std::size_t>(r)].lane.data();
    FW_LANES out[i] = (in[i] & take[i]) | (out[i] & ~take[i]);
  }
}

/// Runs `compute(rows...)` on the destination itself, or on scratch rows that are merged when lanes are missing.
template <class Compute>
inline void write_row(Exec& x, const Op& op, Compute&& compute) {
  if (x.full) [[likely]] {
    compute(x.register_row(op.dst));
  } else {
    compute(static_cast<std::uint32_t*>(__builtin_assume_aligned(x.scratch[0].lane.data(), 64)));
    merge_rows(x, op.dst, 1);
  }
}

/// The same for 64-bit results: low and high rows.
template <class Compute>
inline void write_pair(Exec& x, const Op& op, Compute&& compute) {
  if (x.full) [[likely]] {
    compute(x.register_row(op.dst), x.register_row(op.dst + kRowBytes));
  } else {
    compute(static_cast<std::uint32_t*>(__builtin_assume_aligned(x.scratch[0].lane.data(), 64)),
            static_cast<std::uint32_t*>(__builtin_assume_aligned(x.scratch[1].lane.data(), 64)));
    merge_rows(x, op.dst, 2);
  }
}

/// The same value in every lane of a uniform register.
inline void write_uniform(Exec& x, std::uint32_t dst, std::uint32_t value) {
  std::uint32_t* out = x.register_row(dst);
  FW_LANES out[i] = value;
}

/// Integer reading of a source lane.
struct IntegerModifier {
  std::uint32_t flip, add;
  explicit IntegerModifier(const Source& s) : flip(s.flip), add(s.add) {}
  std::uint32_t operator()(std::uint32_t raw) const { return (raw ^ flip) + add; }
};

/// Bits of a float or packed half source lane.
struct FloatModifier {
  std::uint32_t keep, flip;
  explicit FloatModifier(const Source& s) : keep(s.keep), flip(s.flip) {}
  std::uint32_t operator()(std::uint32_t raw) const { return (raw & keep) ^ flip; }
};

/// Result of a comparison combined with the source predicate: P = cmp op p, Q = !cmp op p.
inline void write_comparison(Exec& x, const Op& op, LaneMask outcome) {
  const LaneMask with = x.predicate(op.p[0]);
  const auto join = [&](LaneMask m) { return op.combine == 0 ? m & with : op.combine == 1 ? m | with : m ^ with; };
  x.set_predicate(op.pdst[0], join(outcome));
  x.set_predicate(op.pdst[1], join(~outcome));
}

}  // namespace forewarp::emulation
