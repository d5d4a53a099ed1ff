// Products of a warpgroup (wgmma): 64 rows over its four warps, the second factor in shared memory, the first there or
// in registers. Each warp makes its own 16 rows; WARPGROUP keeps the four together, so that what they read is still
// there. Sums are formed in double and rounded once; the tensor core cuts bits off on the way, so that it may differ in
// the last places.
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/machine/machine.h"
#include "emulation/ops/handlers.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

enum class Factor : std::uint8_t { Half, Brain, Tensor32 };

constexpr int kWarpRows = 16, kMostColumns = 256, kMostDepth = 16, kChunkBytes = 16;
constexpr u32 kGroupWarps = 4;

u32 bytes_of(Factor f) { return f == Factor::Tensor32 ? 4 : 2; }

double decode(Factor f, u32 raw) {
  switch (f) {
    case Factor::Half:
      return Half::decode(raw);
    case Factor::Brain:
      return Brain::decode(raw);
    case Factor::Tensor32:
      return as_float(raw & 0xffffe000u);
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
  return decode(factor, packed == 1 ? word : word >> k % packed * 16 & 0xffffu);
}

enum Form : std::uint8_t {
  kFromRegisters = 1,
  kAcrossA = 2,
  kAcrossB = 4,
  kNegateA = 8,
  kNegateB = 16,
  kHalfSums = 32
};

/// op.a: the descriptors; op.b: A in registers; op.c: the sums so far, which op.p[0] takes in; columns in op.target,
/// depth in op.immediate, the form in op.variant, the factors' type in op.combine.
void multiply_group(Exec& x, const Op& op) {
  const auto factor = static_cast<Factor>(op.combine);
  const u32 columns = op.target, depth = op.immediate, bytes = bytes_of(factor);
  const u32* words = x.row(op.a);
  const auto pair = [&](u32 i) { return words[i * kWarpLanes] | u64{words[(i + 1) * kWarpLanes]} << 32; };
  const Descriptor of_a(pair(0), (op.variant & kAcrossA) != 0), of_b(pair(2), (op.variant & kAcrossB) != 0);
  const bool in_registers = (op.variant & kFromRegisters) != 0;
  if (of_b.has_base_offset() || (!in_registers && of_a.has_base_offset()))
    throw InputError(place_text(*x.block, *x.warp, std::countr_zero(x.enabled), x.pc) +
                         ": descriptors with a base offset are not emulated",
                     "align the factors to 1024 bytes");
  const u32 first = static_cast<u32>(x.warp->index) % kGroupWarps * kWarpRows;
  std::array<std::array<double, kMostDepth>, kWarpRows> a{};
  std::array<std::array<double, kMostDepth>, kMostColumns> b{};
  for (u32 r = 0; r < kWarpRows; ++r) {
    for (u32 k = 0; k < depth; ++k) {
      const double v =
          in_registers ? read_register(x.row(op.b), factor, r, k) : read(x, of_a.address(first + r, k, bytes), factor);
      a[r][k] = (op.variant & kNegateA) != 0 ? -v : v;
    }
  }
  for (u32 n = 0; n < columns; ++n) {
    for (u32 k = 0; k < depth; ++k) {
      const double v = read(x, of_b.address(n, k, bytes), factor);
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
        const double old = adds ? static_cast<double>(as_float(in[lane])) : 0;
        out[lane] = as_bits(static_cast<float>(sum(row, n, old)));
      }
    }
  }
}

}  // namespace

bool emulate_hgmma(const OperandReader& r, Op& op) {
  const MatrixShape& shape = r.instruction().shape;
  if (r.descriptor() == nullptr || r.values() == 0 || r.values() > 2 || r.has(Modifier::SP)) return false;
  if (shape.m != 64 || shape.n > kMostColumns || shape.n % 8 != 0 || shape.k > kMostDepth) return false;
  op.a = r.uniform_source(r.descriptor()->index);
  const bool in_registers = r.values() == 2;
  if (in_registers) op.b = Source{r.register_row(r.value(0)), ~0u, 0, 0};
  op.c = Source{r.register_row(r.value(r.values() - 1)), ~0u, 0, 0};
  const bool no_sums = r.value(r.values() - 1).index == kRegisterZero;
  op.p[0] = r.predicate(0);
  if (no_sums) op.p[0] = PredicateSource{kPredicateTrue, ~LaneMask{0}};
  op.target = shape.n;
  op.immediate = shape.k;
  op.combine = static_cast<std::uint8_t>(r.has(Modifier::TF32)   ? Factor::Tensor32
                                         : r.has(Modifier::BF16) ? Factor::Brain
                                                                 : Factor::Half);
  const bool negative_a = r.has(Modifier::negA) || (in_registers && r.value(0).negate);
  op.variant =
      static_cast<std::uint8_t>((in_registers ? kFromRegisters : 0) | (r.has(Modifier::tnspA) ? kAcrossA : 0) |
                                (r.has(Modifier::tnspB) ? kAcrossB : 0) | (negative_a ? kNegateA : 0) |
                                (r.has(Modifier::negB) ? kNegateB : 0) | (r.has(Modifier::F32) ? 0 : kHalfSums));
  op.run = multiply_group;
  return true;
}

}  // namespace forewarp::emulation
