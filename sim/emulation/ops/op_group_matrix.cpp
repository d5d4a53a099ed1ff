// Products of a warpgroup (wgmma): 64 rows over its four warps, the second factor in shared memory, the first there or
// in registers. Each warp makes its own 16 rows; WARPGROUP keeps the four together, so that what they read is still
// there. Sums of floats are formed in double and rounded once; the tensor core cuts bits off on the way, so that it may
// differ in the last places. Of a sparse first factor two of four neighbours are there, in rows of half the depth; its
// metadata are taken to lie as those of mma.sp.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"
#include "emulation/ops/sparse_factor.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum class Factor : std::uint8_t { Half, Brain, Tensor32, Signed8, Unsigned8, E4m3, E5m2 };

constexpr int kWarpRows = 16, kMostColumns = 256, kMostDepth = 64, kChunkBytes = 16;

u32 bytes_of(Factor f) { return f == Factor::Tensor32 ? 4 : f >= Factor::Signed8 ? 1 : 2; }

/// Four bits of exponent, three of fraction; all ones is no number, and there is no infinity.
double decode_e4m3(u32 raw) {
  const int exponent = static_cast<int>(raw >> 3 & 15), fraction = static_cast<int>(raw & 7);
  if ((raw & 0x7f) == 0x7f) return std::numeric_limits<double>::quiet_NaN();
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (raw & 0x80) != 0 ? -magnitude : magnitude;
}

double decode(Factor f, u32 raw) {
  switch (f) {
    case Factor::Half:
      return Half::decode(raw);
    case Factor::Brain:
      return Brain::decode(raw);
    case Factor::Tensor32:
      return as_float(raw & 0xffffe000u);
    case Factor::Signed8:
      return static_cast<std::int8_t>(raw);
    case Factor::Unsigned8:
      return raw;
    case Factor::E4m3:
      return decode_e4m3(raw);
    case Factor::E5m2:
      return Half::decode(raw << 8);
  }
  return 0;
}

/// Where a factor lies in shared memory, as its 64-bit descriptor says. Its unit is a chunk of 16 bytes. Along k, eight
/// rows of one chunk each lie one after another (or one swizzled row apart); across k, the roles of rows and k change.
class Descriptor {
 public:
  Descriptor(u64 bits, bool across)
      : start_(static_cast<u32>(bits & 0x3fff) << 4),
        leading_(static_cast<u32>(bits >> 16 & 0x3fff) << 4),
        stride_(static_cast<u32>(bits >> 32 & 0x3fff) << 4),
        swizzle_(static_cast<u32>(bits >> 62)),
        across_(across) {
    base_offset_ = static_cast<u32>(bits >> 49 & 7);
    // 0 none, 1 128 bytes, 2 64, 3 32.
    row_ = swizzle_ == 0 ? kChunkBytes : 256u >> swizzle_;
    mask_ = row_ / kChunkBytes - 1;
  }

  bool has_base_offset() const { return base_offset_ != 0; }

  /// Shared address of the element in row (or column) r at depth k.
  u32 address(u32 r, u32 k, u32 bytes) const {
    const u32 outer = across_ ? k : r, inner = (across_ ? r : k) * bytes;
    const u32 chunk = inner / kChunkBytes, chunks = row_ / kChunkBytes;
    u32 at = start_ + outer % 8 * row_ + inner % kChunkBytes;
    if (swizzle_ == 0)
      at += across_ ? chunk * stride_ + outer / 8 * leading_ : chunk * leading_ + outer / 8 * stride_;
    else
      at += chunk % chunks * kChunkBytes + chunk / chunks * leading_ + outer / 8 * stride_;
    return at ^ ((at >> 7 & mask_) << 4);
  }

 private:
  u32 start_, leading_, stride_, swizzle_;
  bool across_;
  u32 base_offset_ = 0, row_ = 16, mask_ = 0;
};

double read(const Exec& x, u32 address, Factor factor) {
  const BlockState& block = *x.block;
  const u32 offset = address - block.shared_base, bytes = bytes_of(factor);
  if (address < block.shared_base || offset + u64{bytes} > block.shared.size())
    throw InputError(place_text(block, *x.warp, std::countr_zero(x.enabled), x.pc) +
                         ": the descriptor of a factor reaches outside the block's shared memory",
                     "check dynamic_shared_bytes in the launch file");
  u32 raw = 0;
  std::memcpy(&raw, block.shared.data() + offset, bytes);
  return decode(factor, raw);
}

/// Elements of A in a lane's registers, laid out as for mma.sync.
double read_register(const u32* rows, Factor factor, u32 row, u32 k) {
  const u32 packed = 4 / bytes_of(factor), lane = row % 8 * 4 + k / packed % 4;
  const u32 index = k / packed / 4 * 2 + row / 8;
  const u32 word = rows[index * kWarpLanes + lane];
  const u32 bits = 32 / packed;
  return decode(factor, packed == 1 ? word : word >> k % packed * bits & ((1u << bits) - 1));
}

enum Form : std::uint8_t {
  kFromRegisters = 1,
  kAcrossA = 2,
  kAcrossB = 4,
  kNegateA = 8,
  kNegateB = 16,
  kHalfSums = 32,
  kIntegerSums = 64,
  kSaturates = 128
};

u32 encode_integer(double value, bool saturates) {
  constexpr double kLow = std::numeric_limits<std::int32_t>::min(), kHigh = std::numeric_limits<std::int32_t>::max();
  return static_cast<u32>(static_cast<std::int64_t>(saturates ? std::clamp(value, kLow, kHigh) : value));
}

/// op.a: the descriptors; op.b: A in registers; op.c: the sums so far, which op.p[0] takes in; op.d: the metadata of a
/// sparse A, with their selector in op.offset, which is negative if it is dense; columns in op.target, depth in
/// op.immediate, the form in op.variant, the factors' types in op.combine and op.bytes.
void multiply_group(Exec& x, const Op& op) {
  const auto factor_a = static_cast<Factor>(op.combine), factor_b = static_cast<Factor>(op.bytes);
  const u32 columns = op.target, depth = op.immediate, bytes = bytes_of(factor_a);
  const bool sparse = op.offset >= 0;
  const u32 kept = sparse ? depth / 2 : depth;
  const u32* words = x.row(op.a);
  const auto pair = [&](u32 i) { return words[i * kWarpLanes] | u64{words[(i + 1) * kWarpLanes]} << 32; };
  const Descriptor of_a(pair(0), (op.variant & kAcrossA) != 0), of_b(pair(2), (op.variant & kAcrossB) != 0);
  const bool in_registers = (op.variant & kFromRegisters) != 0;
  if (of_b.has_base_offset() || (!in_registers && of_a.has_base_offset()))
    throw InputError(place_text(*x.block, *x.warp, std::countr_zero(x.enabled), x.pc) +
                         ": descriptors with a base offset are not emulated",
                     "align the factors to 1024 bytes");
  const u32 first = static_cast<u32>(x.warp->index) % u32{kGroupWarps} * kWarpRows;
  std::array<std::array<double, kMostDepth>, kWarpRows> a{};
  std::array<std::array<double, kMostDepth>, kMostColumns> b{};
  const SparseFactor metadata(sparse ? x.row(op.d) : nullptr, static_cast<int>(bytes) * 8, static_cast<int>(kept),
                              static_cast<int>(op.offset));
  for (u32 r = 0; r < kWarpRows; ++r) {
    for (u32 k = 0; k < kept; ++k) {
      const double v = in_registers ? read_register(x.row(op.b), factor_a, r, k)
                                    : read(x, of_a.address(first + r, k, bytes), factor_a);
      const u32 at = sparse ? static_cast<u32>(metadata.depth_of(static_cast<int>(r), static_cast<int>(k))) : k;
      a[r][at] = (op.variant & kNegateA) != 0 ? -v : v;
    }
  }
  for (u32 n = 0; n < columns; ++n) {
    for (u32 k = 0; k < depth; ++k) {
      const double v = read(x, of_b.address(n, k, bytes), factor_b);
      b[n][k] = (op.variant & kNegateB) != 0 ? -v : v;
    }
  }
  const bool adds = x.predicate(op.p[0]) != 0, halves = (op.variant & kHalfSums) != 0;
  const u32 sums = columns / (halves ? 4 : 2);
  for (u32 i = 0; i < sums; ++i) {
    u32* out = x.register_row(op.dst + i * kRowBytes);
    const u32* in = x.row(Source{op.c.row + i * kRowBytes, ~0u, 0, 0});
    for (u32 lane = 0; lane < kWarpLanes; ++lane) {
      const auto sum = [&](u32 row, u32 column, double value) {
        for (u32 k = 0; k < depth; ++k) value += a[row][k] * b[column][k];
        return value;
      };
      const u32 column = lane % 4 * 2;
      if (halves) {
        const u32 row = lane / 4 + i % 2 * 8, n = i / 2 * 8 + column, old = adds ? in[lane] : 0;
        out[lane] = static_cast<u32>(Half::encode(sum(row, n, Half::decode(old & 0xffffu)))) |
                    static_cast<u32>(Half::encode(sum(row, n + 1, Half::decode(old >> 16)))) << 16;
      } else {
        const u32 row = lane / 4 + i / 2 % 2 * 8, n = i / 4 * 8 + column + i % 2;
        if ((op.variant & kIntegerSums) != 0) {
          const double old = adds ? static_cast<std::int32_t>(in[lane]) : 0;
          out[lane] = encode_integer(sum(row, n, old), (op.variant & kSaturates) != 0);
          continue;
        }
        const double old = adds ? static_cast<double>(as_float(in[lane])) : 0;
        out[lane] = as_bits(static_cast<float>(sum(row, n, old)));
      }
    }
  }
}

bool decode_group(const OperandReader& r, Op& op, Factor factor_a, Factor factor_b, bool integers) {
  const MatrixShape& shape = r.instruction().shape;
  const bool sparse = r.has(Modifier::SP);
  // A in registers, the sums, then the metadata, and of factors of 16 bits and more which lanes hold them.
  const std::size_t behind = !sparse ? 0 : bytes_of(factor_a) == 1 ? 1 : 2;
  if (r.descriptor() == nullptr || r.values() < 1 + behind || r.values() > 2 + behind) return false;
  if (shape.m != 64 || shape.n > kMostColumns || shape.n % 8 != 0 || shape.k > kMostDepth) return false;
  op.a = r.uniform_source(r.descriptor()->index);
  const bool in_registers = r.values() == 2 + behind;
  const Operand& sums = r.value(in_registers ? 1 : 0);
  if (in_registers) op.b = Source{r.register_row(r.value(0)), ~0u, 0, 0};
  op.c = Source{r.register_row(sums), ~0u, 0, 0};
  const bool no_sums = sums.index == kRegisterZero;
  op.offset = -1;
  if (sparse) {
    const std::size_t metadata = in_registers ? 2 : 1;
    op.d = r.integer(metadata);
    u32 selector = 0;
    if (behind == 2 && (!r.literal(metadata + 1, selector) || selector > 1)) return false;
    op.offset = selector;
  }
  op.p[0] = r.predicate(0);
  if (no_sums) op.p[0] = PredicateSource{kPredicateTrue, ~LaneMask{0}};
  op.target = shape.n;
  op.immediate = shape.k;
  op.combine = static_cast<std::uint8_t>(factor_a);
  op.bytes = static_cast<std::uint8_t>(factor_b);
  const bool negative_a = r.has(Modifier::negA) || (in_registers && r.value(0).negate);
  op.variant = static_cast<std::uint8_t>((in_registers ? kFromRegisters : 0) | (r.has(Modifier::tnspA) ? kAcrossA : 0) |
                                         (r.has(Modifier::tnspB) ? kAcrossB : 0) | (negative_a ? kNegateA : 0) |
                                         (r.has(Modifier::negB) ? kNegateB : 0) | (integers ? kIntegerSums : 0) |
                                         (r.has(Modifier::SAT) ? kSaturates : 0) |
                                         (r.has(Modifier::F32) || integers ? 0 : kHalfSums));
  op.run = multiply_group;
  return true;
}

/// The types of both factors, in the order of the modifiers.
struct NamedFactor {
  Modifier modifier;
  Factor factor;
};
template <std::size_t kNames>
bool factors_of(const Instruction& in, const std::array<NamedFactor, kNames>& names, std::array<Factor, 2>& factors) {
  std::size_t found = 0;
  for (int i = 0; i < in.modifier_count; ++i) {
    for (const NamedFactor& name : names) {
      if (in.modifier_list[static_cast<std::size_t>(i)] != name.modifier) continue;
      if (found == factors.size()) return false;
      factors[found++] = name.factor;
    }
  }
  return found == factors.size();
}

}  // namespace

bool emulate_hgmma(const OperandReader& r, Op& op) {
  const Factor factor = r.has(Modifier::TF32) ? Factor::Tensor32 : r.has(Modifier::BF16) ? Factor::Brain : Factor::Half;
  return decode_group(r, op, factor, factor, false);
}

bool emulate_igmma(const OperandReader& r, Op& op) {
  static constexpr std::array<NamedFactor, 2> kNames{
      {{Modifier::S8, Factor::Signed8}, {Modifier::U8, Factor::Unsigned8}}};
  std::array<Factor, 2> factors{};
  return factors_of(r.instruction(), kNames, factors) && decode_group(r, op, factors[0], factors[1], true);
}

bool emulate_qgmma(const OperandReader& r, Op& op) {
  static constexpr std::array<NamedFactor, 2> kNames{{{Modifier::E4M3, Factor::E4m3}, {Modifier::E5M2, Factor::E5m2}}};
  std::array<Factor, 2> factors{};
  return factors_of(r.instruction(), kNames, factors) && decode_group(r, op, factors[0], factors[1], false);
}

}  // namespace forewarp::emulation
