// Atomics and reductions on global and shared memory. Lanes take their turn in ascending order.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum Operation : std::uint8_t {
  kAdd,
  kMin,
  kMax,
  kIncrement,
  kDecrement,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kCompareSwap,
  kCastSpin,
  kCount
};
enum class Type : std::uint8_t { U32, S32, U64, S64, F32, F64, F16x2, Bf16x2 };

template <class T>
T integer_result(std::uint8_t operation, T old, T v) {
  using U = std::make_unsigned_t<T>;
  switch (operation) {
    case kAdd:
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(v));
    case kMin:
      return std::min(old, v);
    case kMax:
      return std::max(old, v);
    case kIncrement:
      return old >= v ? T{0} : static_cast<T>(old + 1);
    case kDecrement:
      return old == 0 || old > v ? v : static_cast<T>(old - 1);
    case kAnd:
      return old & v;
    case kOr:
      return old | v;
    case kXor:
      return old ^ v;
    case kCount:
      return static_cast<T>(static_cast<U>(old) + 1);
    default:
      return v;
  }
}

template <class F>
F float_result(std::uint8_t operation, F old, F v) {
  switch (operation) {
    case kAdd:
      return old + v;
    case kMin:
      return v < old ? v : old;
    case kMax:
      return v > old ? v : old;
    default:
      return v;
  }
}

/// Of two halves; the least and the greatest are the number where one is none.
template <class Format>
u32 half_result(std::uint8_t operation, u32 old, u32 v) {
  if (operation == kExchange) return v;
  const auto a = Format::decode(old), b = Format::decode(v);
  if (operation == kAdd) return Format::encode(odd_sum(a, b));
  return a == a && float_result(operation, a, b) == a ? old : v;
}

template <class Format>
u32 packed_result(std::uint8_t operation, u32 old, u32 v) {
  u32 out = 0;
  for (int s = 0; s < 32; s += 16) out |= half_result<Format>(operation, old >> s & 0xffffu, v >> s & 0xffffu) << s;
  return out;
}

u64 combine(const Op& op, u64 old, u64 v) {
  switch (static_cast<Type>(op.combine)) {
    case Type::U32:
      return integer_result<u32>(op.variant, static_cast<u32>(old), static_cast<u32>(v));
    case Type::S32:
      return static_cast<u32>(
          integer_result<std::int32_t>(op.variant, static_cast<std::int32_t>(old), static_cast<std::int32_t>(v)));
    case Type::U64:
      return integer_result<u64>(op.variant, old, v);
    case Type::S64:
      return static_cast<u64>(
          integer_result<std::int64_t>(op.variant, static_cast<std::int64_t>(old), static_cast<std::int64_t>(v)));
    case Type::F32: {
      const u32 flushed_old = op.carry_out ? flush_bits(static_cast<u32>(old)) : static_cast<u32>(old);
      const u32 flushed = op.carry_out ? flush_bits(static_cast<u32>(v)) : static_cast<u32>(v);
      const u32 r = canonical(float_result(op.variant, as_float(flushed_old), as_float(flushed)));
      return op.carry_out ? flush_bits(r) : r;
    }
    case Type::F64:
      return std::bit_cast<u64>(float_result(op.variant, std::bit_cast<double>(old), std::bit_cast<double>(v)));
    case Type::F16x2:
      return packed_result<Half>(op.variant, static_cast<u32>(old), static_cast<u32>(v));
    default:
      return packed_result<Brain>(op.variant, static_cast<u32>(old), static_cast<u32>(v));
  }
}

u64 lane_value(const Exec& x, const Source& s, int i, bool wide) {
  const IntegerModifier m(s);
  const u32 low = x.row(s)[i];
  return wide ? low | static_cast<u64>(x.high(s)[i]) << 32 : m(low);
}

void atomic(Exec& x, const Op& op) {
  const bool wide = op.bytes == 8;
  u32 *d = x.register_row(op.dst), *h = x.register_row(op.dst + kRowBytes);
  for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    std::uint8_t* at = x.lane_data(i);
    u64 old = 0;
    std::memcpy(&old, at, op.bytes);
    const u64 v = lane_value(x, op.c, i, wide);
    u64 next, result = old;
    if (op.variant == kCompareSwap || op.variant == kCastSpin) {
      const bool same = old == v;
      next = same ? lane_value(x, op.d, i, wide) : old;
      if (op.variant == kCastSpin) result = same ? 1 : 0;
    } else {
      next = combine(op, old, v);
    }
    std::memcpy(at, &next, op.bytes);
    d[i] = static_cast<u32>(result);
    if (wide) h[i] = static_cast<u32>(result >> 32);
  }
  // ATOM's predicate says that the address was one the instruction can serve: it always is here.
  x.set_predicate(op.pdst[0], ~0u);
}

/// Up to 16 bytes a lane: an operation on each word, or one exchange of all of them.
void atomic_on_words(Exec& x, const Op& op) {
  const auto words = static_cast<std::size_t>(op.bytes / 4);
  const auto row = [&](std::uint32_t first, std::size_t w) {
    return first + static_cast<std::uint32_t>(w) * kRowBytes;
  };
  for (LaneMask m = x.enabled; m != 0; m &= m - 1) {
    const int i = std::countr_zero(m);
    std::uint8_t* at = x.lane_data(i);
    std::array<u32, 4> old{}, next{};
    std::memcpy(old.data(), at, op.bytes);
    bool same = true;
    for (std::size_t w = 0; w < words; ++w) {
      const u32 v = x.row(row(op.c.row, w))[i];
      same &= old[w] == v;
      next[w] = op.variant == kCompareSwap ? x.row(row(op.d.row, w))[i] : static_cast<u32>(combine(op, old[w], v));
    }
    if (op.variant != kCompareSwap || same) std::memcpy(at, next.data(), op.bytes);
    for (std::size_t w = 0; w < words; ++w) x.register_row(row(op.dst, w))[i] = old[w];
  }
  x.set_predicate(op.pdst[0], ~0u);
}

// --- decoding --------------------------------------------------------------------------------------------------------

struct Named {
  Modifier modifier;
  std::uint8_t value;
};

bool find_operation(const OperandReader& r, Op& op) {
  static constexpr Named kNames[] = {
      {Modifier::CAST, kCastSpin}, {Modifier::CAS, kCompareSwap}, {Modifier::EXCH, kExchange}, {Modifier::POPC, kCount},
      {Modifier::ADD, kAdd},       {Modifier::SAFEADD, kAdd},     {Modifier::MIN, kMin},       {Modifier::MAX, kMax},
      {Modifier::INC, kIncrement}, {Modifier::DEC, kDecrement},   {Modifier::AND, kAnd},       {Modifier::OR, kOr},
      {Modifier::XOR, kXor}};
  for (const Named& n : kNames) {
    if (!r.has(n.modifier)) continue;
    op.variant = n.value;
    return true;
  }
  return false;
}

struct Form {
  Modifier modifier;
  Type type;
  std::uint8_t bytes;
};

void find_type(const OperandReader& r, Op& op) {
  static constexpr Form kForms[] = {
      {Modifier::F32, Type::F32, 4},       {Modifier::F32x2, Type::F32, 8},      {Modifier::F32x4, Type::F32, 16},
      {Modifier::F64, Type::F64, 8},       {Modifier::F16x2, Type::F16x2, 4},    {Modifier::F16x4, Type::F16x2, 8},
      {Modifier::F16x8, Type::F16x2, 16},  {Modifier::BF16x2, Type::Bf16x2, 4},  {Modifier::BF16_V2, Type::Bf16x2, 4},
      {Modifier::BF16x4, Type::Bf16x2, 8}, {Modifier::BF16x8, Type::Bf16x2, 16}, {Modifier::S32, Type::S32, 4},
      {Modifier::U64, Type::U64, 8},       {Modifier::B64, Type::U64, 8},        {Modifier::S64, Type::S64, 8},
      {Modifier::B128, Type::U32, 16}};
  op.combine = static_cast<std::uint8_t>(Type::U32);
  op.bytes = 4;
  for (const Form& form : kForms) {
    if (!r.has(form.modifier)) continue;
    op.combine = static_cast<std::uint8_t>(form.type);
    op.bytes = form.bytes;
  }
  op.carry_out = r.has(Modifier::FTZ);
}

/// What is as wide as its type goes by the one handler, what is wider word by word.
bool has_words(const Op& op) {
  const auto type = static_cast<Type>(op.combine);
  const bool wide_type = type == Type::U64 || type == Type::S64 || type == Type::F64;
  return op.bytes > (wide_type ? 8 : 4);
}

/// Halves are added, compared and exchanged; 128 bits exchanged and swapped.
bool has_operation(const Op& op) {
  const auto type = static_cast<Type>(op.combine);
  if (type == Type::F16x2 || type == Type::Bf16x2)
    return op.variant == kAdd || op.variant == kMin || op.variant == kMax || op.variant == kExchange;
  if (type == Type::U32 && has_words(op)) return op.variant == kExchange || op.variant == kCompareSwap;
  return !has_words(op) || op.variant == kAdd || op.variant == kExchange;
}

}  // namespace

bool emulate_atomic(const OperandReader& r, Op& op) {
  if (r.memory() == nullptr || !find_operation(r, op)) return false;
  read_address(r, *r.memory(), op);
  find_type(r, op);
  op.c = r.integer(0);
  op.d = r.integer(1);
  op.run = has_words(op) ? atomic_on_words : atomic;
  return has_operation(op);
}

}  // namespace forewarp::emulation
