// Loads, stores and constant loads of every width, matrix loads and stores, asynchronous copies. Addresses are made and
// checked in address.cpp; handlers here move bytes for the enabled lanes.
#include <bit>
#include <cstring>

#include "emulation/machine/exec.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

template <class T>
T read(const std::uint8_t* from) {
  T v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// Runs f(lane) for the enabled lanes in ascending order.
template <class F>
void each_lane(const Exec& x, F f) {
  if (x.enabled == ~0u) {
    for (int i = 0; i < kWarpLanes; ++i) f(i);
  } else {
    for (LaneMask m = x.enabled; m != 0; m &= m - 1) f(std::countr_zero(m));
  }
}

template <class T>
void load_narrow(Exec& x, const Op& op) {
  u32* d = x.register_row(op.dst);
  each_lane(x, [&](int i) { d[i] = static_cast<u32>(static_cast<std::int32_t>(read<T>(x.lane_data(i)))); });
}

template <int kWords>
void load(Exec& x, const Op& op) {
  u32* d[kWords];
  for (u32 w = 0; w < kWords; ++w) d[w] = x.register_row(op.dst + w * kRowBytes);
  each_lane(x, [&](int i) {
    const std::uint8_t* from = x.lane_data(i);
    for (int w = 0; w < kWords; ++w) d[w][i] = read<u32>(from + 4 * w);
  });
}

template <class T>
void store_narrow(Exec& x, const Op& op) {
  const u32* v = x.row(op.c);
  each_lane(x, [&](int i) {
    const T value = static_cast<T>(v[i]);
    std::memcpy(x.lane_data(i), &value, sizeof value);
  });
}

template <int kWords>
void store(Exec& x, const Op& op) {
  const u32* v[kWords];
  for (u32 w = 0; w < kWords; ++w) v[w] = x.row(op.c.row + w * kRowBytes);
  each_lane(x, [&](int i) {
    std::uint8_t* to = x.lane_data(i);
    for (int w = 0; w < kWords; ++w) std::memcpy(to + 4 * w, &v[w][i], 4);
  });
}

/// LDC with an index: bytes of a constant bank, zero beyond its end.
void ldc(Exec& x, const Op& op) {
  const u32* index = x.row(op.a);
  const u32 extra = op.has_uniform ? x.row(op.b)[0] : 0u;
  const ConstantBanks& constants = *x.block->constants;
  const int words = op.bytes <= 4 ? 1 : op.bytes / 4;
  for (int w = 0; w < words; ++w) {
    u32* d = x.register_row(op.dst + static_cast<u32>(w) * kRowBytes);
    each_lane(x, [&](int i) {
      const u32 v =
          constants.word(op.variant, index[i] + extra + static_cast<u32>(op.offset) + 4 * static_cast<u32>(w));
      d[i] = op.bytes == 1   ? (op.carry_out ? static_cast<u32>(static_cast<std::int8_t>(v)) : v & 0xffu)
             : op.bytes == 2 ? (op.carry_out ? static_cast<u32>(static_cast<std::int16_t>(v)) : v & 0xffffu)
                             : v;
    });
  }
}

/// ldmatrix: lane 8m + r gives the address of row r of matrix m; every lane gets two neighbouring elements of a row.
void ldsm(Exec& x, const Op& op) {
  const int matrices = op.variant;
  const bool transposed = op.combine != 0;
  for (int m = 0; m < matrices; ++m) {
    u32* d = x.register_row(op.dst + static_cast<u32>(m) * kRowBytes);
    for (int i = 0; i < kWarpLanes; ++i) {
      const auto element = [&](int row, int column) {
        return u32{read<std::uint16_t>(x.lane_data(8 * m + row) + 2 * column)};
      };
      const int r = i / 4, c = 2 * (i % 4);
      d[i] = transposed ? element(c, r) | element(c + 1, r) << 16 : element(r, c) | element(r, c + 1) << 16;
    }
  }
}

void stsm(Exec& x, const Op& op) {
  const int matrices = op.variant;
  const bool transposed = op.combine != 0;
  for (int m = 0; m < matrices; ++m) {
    const u32* v = x.row(op.c.row + static_cast<u32>(m) * kRowBytes);
    for (int i = 0; i < kWarpLanes; ++i) {
      for (int e = 0; e < 2; ++e) {
        const int r = transposed ? 2 * (i % 4) + e : i / 4, c = transposed ? i / 4 : 2 * (i % 4) + e;
        const auto half = static_cast<std::uint16_t>(v[i] >> (16 * e));
        std::memcpy(x.lane_data(8 * m + r) + 2 * c, &half, sizeof half);
      }
    }
  }
}

/// The shared side of LDGSTS; the bytes were read by the global side into Warp::copied.
void copy_in(Exec& x, const Op& op) {
  each_lane(x,
            [&](int i) { std::memcpy(x.warp->copied[static_cast<std::size_t>(i)].data(), x.lane_data(i), op.bytes); });
}
void copy_out(Exec& x, const Op& op) {
  each_lane(x,
            [&](int i) { std::memcpy(x.lane_data(i), x.warp->copied[static_cast<std::size_t>(i)].data(), op.bytes); });
}

// --- decoding --------------------------------------------------------------------------------------------------------

Handler load_handler(const Op& op, bool is_signed) {
  switch (op.bytes) {
    case 1:
      return is_signed ? load_narrow<std::int8_t> : load_narrow<std::uint8_t>;
    case 2:
      return is_signed ? load_narrow<std::int16_t> : load_narrow<std::uint16_t>;
    case 4:
      return load<1>;
    case 8:
      return load<2>;
    case 16:
      return load<4>;
    default:
      return nullptr;
  }
}

Handler store_handler(const Op& op) {
  switch (op.bytes) {
    case 1:
      return store_narrow<std::uint8_t>;
    case 2:
      return store_narrow<std::uint16_t>;
    case 4:
      return store<1>;
    case 8:
      return store<2>;
    case 16:
      return store<4>;
    default:
      return nullptr;
  }
}

bool decode_matrix(const OperandReader& r, Op& op, bool to_memory) {
  if (r.memory() == nullptr || !(r.has(Modifier::M88) || r.has(Modifier::MT88))) return false;
  read_address(r, *r.memory(), op);
  op.variant = r.has(Modifier::B4) ? 4 : r.has(Modifier::B2) ? 2 : 1;
  op.combine = r.has(Modifier::MT88) ? 1 : 0;
  op.bytes = 16;  // a row of eight elements at each address
  op.lanes = op.variant == 4 ? ~0u : (1u << (8 * op.variant)) - 1;
  op.c = r.integer(0);
  op.run = to_memory ? stsm : ldsm;
  return true;
}

}  // namespace

void read_address(const OperandReader& r, const Operand& memory, Op& op) {
  const Instruction& in = r.instruction();
  op.kind = OpKind::Memory;
  op.space = in.space;
  op.memory = in.memory;
  op.bytes = in.access_bytes;
  op.a = r.index_source(memory);
  op.scale = memory.scale;
  op.wide_index = memory.wide;
  op.has_uniform = memory.uniform != kUniformRegisterZero;
  op.b = r.uniform_source(memory.uniform);
  op.wide_uniform = op.has_uniform && (in.space == MemorySpace::Global || in.space == MemorySpace::Generic ||
                                       in.memory == MemoryKind::AsyncCopy);
  op.offset = memory.offset;
  op.strong = in.has(Modifier::STRONG);
  op.compares = in.has(Modifier::CAS);
  op.clusterwide = in.space == MemorySpace::Generic;
}

Handler copy_target_handler() { return copy_out; }

bool emulate_ldc(const OperandReader& r, Op& op) {
  if (r.values() != 1 || r.value(0).kind != OperandKind::Constant || r.value(0).bank == kBindlessBank) return false;
  const Operand& o = r.value(0);
  op.bytes = r.has(Modifier::U8) || r.has(Modifier::S8)     ? 1
             : r.has(Modifier::U16) || r.has(Modifier::S16) ? 2
             : r.has(Modifier::B64)                         ? 8
             : r.has(Modifier::B128)                        ? 16
                                                            : 4;
  if (o.index == kRegisterZero && o.uniform == kUniformRegisterZero && (op.bytes == 4 || op.bytes == 8)) {
    op.a = r.integer(0);
    op.run = op.bytes == 8 ? move_rows2 : move_rows1;
    return true;
  }
  op.a = r.index_source(o);
  op.has_uniform = o.uniform != kUniformRegisterZero;
  op.b = r.uniform_source(o.uniform);
  op.offset = o.offset;
  op.variant = o.bank;
  op.carry_out = r.has(Modifier::S8) || r.has(Modifier::S16);
  op.run = ldc;
  return true;
}

bool emulate_ldgsts(const OperandReader& r, Op& op) {
  const Operand *to = r.memory(), *from = r.second_memory();
  if (to == nullptr || from == nullptr) return false;
  read_address(r, *from, op);
  op.kind = OpKind::Copy;
  op.c = r.index_source(*to);
  op.d = r.uniform_source(to->uniform);
  op.immediate = static_cast<u32>(to->offset);
  op.p[0] = r.predicate(0);
  op.carry_out = r.predicates() > 0;  // zeros instead of the source where the predicate is false
  op.run = copy_in;
  return op.bytes == 4 || op.bytes == 8 || op.bytes == 16;
}

bool emulate_load(const OperandReader& r, Op& op) {
  if (r.memory() == nullptr) return false;
  read_address(r, *r.memory(), op);
  op.run = load_handler(op, r.has(Modifier::S8) || r.has(Modifier::S16));
  return op.run != nullptr;
}

bool emulate_store(const OperandReader& r, Op& op) {
  if (r.memory() == nullptr) return false;
  read_address(r, *r.memory(), op);
  op.c = r.integer(0);
  op.run = store_handler(op);
  return op.run != nullptr;
}

bool emulate_ldsm(const OperandReader& r, Op& op) { return decode_matrix(r, op, false); }
bool emulate_stsm(const OperandReader& r, Op& op) { return decode_matrix(r, op, true); }

}  // namespace forewarp::emulation
