// Matrix instructions of a warp, with the fragments that the PTX manual defines for mma.sync: a register of a factor
// holds 32 bits of neighbouring elements of one row, lanes 4 g .. 4 g + 3 share row g. Products of halves, bf16 and
// tf32 are summed in double and rounded once; the tensor core cuts bits off on the way, so that it may differ in the
// last places.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "emulation/machine/exec.h"
#include "emulation/machine/float_bits.h"
#include "emulation/ops/handlers.h"
#include "emulation/ops/sparse_factor.h"

namespace forewarp::emulation {
namespace {

using u32 = std::uint32_t;

/// Elements of factors and sums.
enum class Element : std::uint8_t {
  Half,
  Brain,
  Tensor32,
  Single,
  Signed8,
  Unsigned8,
  Signed4,
  Unsigned4,
  Signed32,
  Double
};

constexpr int kColumns = 8, kMostRows = 16, kMostDepth = 64;
/// Half a row of the second factor or of sums.
using Columns = double __attribute__((vector_size(kColumns / 2 * sizeof(double))));

constexpr int kMostFactor = 16, kMostSum = 8;  // registers of a lane

constexpr bool is_float(Element e) { return e <= Element::Single || e == Element::Double; }

constexpr int bits_of(Element e) {
  switch (e) {
    case Element::Half:
    case Element::Brain:
      return 16;
    case Element::Signed8:
    case Element::Unsigned8:
      return 8;
    case Element::Signed4:
    case Element::Unsigned4:
      return 4;
    case Element::Tensor32:
    case Element::Single:
    case Element::Signed32:
      return 32;
    case Element::Double:
      return 64;
  }
  return 32;
}

double decode_element(Element e, std::uint64_t raw) {
  const auto word = static_cast<u32>(raw);
  switch (e) {
    case Element::Half:
      return Half::decode(word & 0xffffu);
    case Element::Brain:
      return Brain::decode(word & 0xffffu);
    case Element::Tensor32:
      return as_float(word & 0xffffe000u);
    case Element::Single:
      return as_float(word);
    case Element::Signed8:
      return static_cast<std::int8_t>(word);
    case Element::Unsigned8:
      return static_cast<std::uint8_t>(word);
    case Element::Signed4:
      return static_cast<std::int8_t>(word << 4) >> 4;
    case Element::Unsigned4:
      return word & 0xfu;
    case Element::Signed32:
      return static_cast<std::int32_t>(word);
    case Element::Double: {
      double value = 0;
      std::memcpy(&value, &raw, sizeof value);
      return value;
    }
  }
  return 0;
}

std::uint64_t encode_element(Element e, double value, bool saturate) {
  switch (e) {
    case Element::Half:
      return Half::encode(value);
    case Element::Single:
      return value != value ? 0x7fffffffu : as_bits(static_cast<float>(value));
    case Element::Signed32: {
      constexpr double kLow = std::numeric_limits<std::int32_t>::min(),
                       kHigh = std::numeric_limits<std::int32_t>::max();
      if (saturate) value = value < kLow ? kLow : value > kHigh ? kHigh : value;
      return static_cast<u32>(static_cast<std::int64_t>(value));  // sums of integers stay far below 2^53
    }
    default: {
      std::uint64_t raw = 0;
      std::memcpy(&raw, &value, sizeof raw);
      return raw;
    }
  }
}

/// Where the i-th element of a lane's sums is.
constexpr int row_of_sum(int lane, int i) { return lane / 4 + i / 2 * 8; }
constexpr int column_of_sum(int lane, int i) { return lane % 4 * 2 + i % 2; }

/// How many elements of 32 bits or less share a register.
constexpr int packed_of(Element e) { return bits_of(e) == 64 ? 1 : 32 / bits_of(e); }

/// Decodes a fragment in `registers` rows from `rows`: take(r, lane, s, value) for the s-th element of a lane's r-th
/// register, or pair of registers.
template <Element kElement, class Take>
void decode_rows(const u32* rows, int registers, Take&& take) {
  constexpr int kBits = bits_of(kElement), kWords = kBits == 64 ? 2 : 1;
  double values[kWarpLanes];
  for (int r = 0; r < registers / kWords; ++r, rows += kWords * kWarpLanes) {
    for (int s = 0; s < packed_of(kElement); ++s) {
      if constexpr (kBits == 64) {
        FW_LANES values[i] = decode_element(kElement, rows[i] | std::uint64_t{rows[kWarpLanes + i]} << 32);
      } else {
        FW_LANES values[i] = decode_element(kElement, rows[i] >> s * kBits);
      }
      for (int lane = 0; lane < kWarpLanes; ++lane) take(r, lane, s, values[lane]);
    }
  }
}

template <class Take>
void decode_fragment(Element e, const u32* rows, int registers, Take&& take) {
  switch (e) {
    case Element::Half:
      return decode_rows<Element::Half>(rows, registers, take);
    case Element::Brain:
      return decode_rows<Element::Brain>(rows, registers, take);
    case Element::Tensor32:
      return decode_rows<Element::Tensor32>(rows, registers, take);
    case Element::Single:
      return decode_rows<Element::Single>(rows, registers, take);
    case Element::Signed8:
      return decode_rows<Element::Signed8>(rows, registers, take);
    case Element::Unsigned8:
      return decode_rows<Element::Unsigned8>(rows, registers, take);
    case Element::Signed4:
      return decode_rows<Element::Signed4>(rows, registers, take);
    case Element::Unsigned4:
      return decode_rows<Element::Unsigned4>(rows, registers, take);
    case Element::Signed32:
      return decode_rows<Element::Signed32>(rows, registers, take);
    case Element::Double:
      return decode_rows<Element::Double>(rows, registers, take);
  }
}

/// Sums of integers are exact. Those of floating point are formed in double and rounded once, doubles after each step.
struct Product {
  Element a, b, sum;
  int rows, depth, kept;  ///< kept: elements of a row of `a`; half of the depth where it is sparse
};

/// Rows of sums that are added to side by side.
constexpr int kTile = 4;

/// Adds a b to kTile rows of sums, in the order of depth. Products of elements below 64 bits are exact.
void add_products(const double (*a)[kMostDepth], const double (*b)[kColumns], int depth, double (*sums)[kColumns]) {
  Columns sum[kTile][2];
  std::memcpy(sum, sums, sizeof sum);
  for (int k = 0; k < depth; ++k) {
    Columns of_b[2];
    std::memcpy(of_b, b[k], sizeof of_b);
    for (int row = 0; row < kTile; ++row) {
      for (int half = 0; half < 2; ++half) sum[row][half] += a[row][k] * of_b[half];
    }
  }
  std::memcpy(sums, sum, sizeof sum);
}

/// d = a b + c; the form is that of the operands. Rows in op.target, depth in op.immediate, elements in op.variant,
/// op.combine and op.bytes; of a sparse factor the metadata in op.d and the selector in op.offset, -1 if it is dense.
void multiply_matrices(Exec& x, const Op& op) {
  const bool sparse = op.offset >= 0;
  const int depth = static_cast<int>(op.immediate);
  const Product p{static_cast<Element>(op.variant),
                  static_cast<Element>(op.combine),
                  static_cast<Element>(op.bytes),
                  static_cast<int>(op.target),
                  depth,
                  sparse ? depth / 2 : depth};
  const int halves = p.rows / 8, pa = packed_of(p.a), pb = packed_of(p.b);
  const auto registers = [](int elements, Element e) { return elements * bits_of(e) / 32 / kWarpLanes; };
  double a[kMostRows][kMostDepth];
  alignas(64) double b[kMostDepth][kColumns], sums[kMostRows][kColumns];
  if (sparse) std::fill_n(&a[0][0], kMostRows * kMostDepth, 0.0);
  const SparseFactor metadata(sparse ? x.row(op.d) : nullptr, bits_of(p.a), p.kept, static_cast<int>(op.offset));
  const auto sign = [&](int operand) { return (op.scale >> operand & 1) != 0 ? -1.0 : 1.0; };
  const double sign_a = sign(0), sign_b = sign(1), sign_c = sign(2);
  decode_fragment(p.a, x.row(op.a), registers(p.rows * p.kept, p.a), [&](int r, int lane, int s, double value) {
    const int row = lane / 4 + r % halves * 8, k = (r / halves * 4 + lane % 4) * pa + s;
    a[row][sparse ? metadata.depth_of(row, k) : k] = sign_a * value;
  });
  decode_fragment(p.b, x.row(op.b), registers(p.depth * kColumns, p.b), [&](int r, int lane, int s, double value) {
    b[(r * 4 + lane % 4) * pb + s][lane / 4] = sign_b * value;
  });
  const int bits = bits_of(p.sum), per_lane = p.rows * kColumns / kWarpLanes;
  const u32* c = x.row(op.c);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < per_lane; ++i) {
      const u32* word = c + i * bits / 32 * kWarpLanes + lane;
      const std::uint64_t raw = bits == 64 ? word[0] | std::uint64_t{word[kWarpLanes]} << 32 : word[0] >> i * bits % 32;
      sums[row_of_sum(lane, i)][column_of_sum(lane, i)] = sign_c * decode_element(p.sum, raw);
    }
  }
  if (bits == 64) {
    for (int row = 0; row < p.rows; ++row) {
      for (int k = 0; k < p.depth; ++k) {
        for (int column = 0; column < kColumns; ++column)
          sums[row][column] = std::fma(a[row][k], b[k][column], sums[row][column]);
      }
    }
  } else {
    for (int row = 0; row < p.rows; row += kTile) add_products(a + row, b, p.depth, sums + row);
  }
  for (Row& row : x.scratch) row.lane.fill(0);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < per_lane; ++i) {
      const std::uint64_t raw = encode_element(p.sum, sums[row_of_sum(lane, i)][column_of_sum(lane, i)], op.carry_out);
      const int bit = i * bits;
      const auto l = static_cast<std::size_t>(lane), r = static_cast<std::size_t>(bit / 32);
      x.scratch[r].lane[l] |= static_cast<u32>(raw) << bit % 32;
      if (bits == 64) x.scratch[r + 1].lane[l] = static_cast<u32>(raw >> 32);
    }
  }
  merge_rows(x, op.dst, per_lane * bits / 32);
}

/// Matrices of bits: how many of a row and a column are both ones (op.variant 0) or differ (1).
void multiply_bits(Exec& x, const Op& op) {
  const int rows = static_cast<int>(op.target), words = static_cast<int>(op.immediate) / 128;  // of a lane and row
  const int halves = rows / 8, sums = rows * kColumns / kWarpLanes;
  const u32 *a = x.row(op.a), *b = x.row(op.b), *c = x.row(op.c);
  for (int lane = 0; lane < kWarpLanes; ++lane) {
    for (int i = 0; i < sums; ++i) {
      const int row = row_of_sum(lane, i), column = column_of_sum(lane, i);
      u32 value = c[i * kWarpLanes + lane];
      for (int w = 0; w < words; ++w) {
        for (int t = 0; t < 4; ++t) {
          const u32 of_a = a[(w * halves + row / 8) * kWarpLanes + row % 8 * 4 + t],
                    of_b = b[w * kWarpLanes + column * 4 + t];
          value += static_cast<u32>(std::popcount(op.variant == 0 ? of_a & of_b : of_a ^ of_b));
        }
      }
      x.scratch[static_cast<std::size_t>(i)].lane[static_cast<std::size_t>(lane)] = value;
    }
  }
  merge_rows(x, op.dst, sums);
}

bool known_shape(const MatrixShape& shape) {
  return (shape.m == 8 || shape.m == 16) && shape.n == kColumns && shape.k > 0;
}

/// Forms of mma.sync; of sparse factors those whose metadata are known.
bool decode_matrices(const OperandReader& r, Op& op, Element a, Element b, Element sum) {
  const MatrixShape& shape = r.instruction().shape;
  const bool sparse = r.has(Modifier::SP);
  const int kept = sparse ? shape.k / 2 : shape.k;
  const auto registers = [](int elements, Element e) { return elements * bits_of(e) / 32 / kWarpLanes; };
  const bool known = known_shape(shape) && shape.k <= kMostDepth && registers(shape.m * kept, a) >= 1 &&
                     registers(shape.m * kept, a) <= kMostFactor && registers(shape.m * kColumns, sum) <= kMostSum &&
                     (!sparse || bits_of(a) >= 8);
  if (!known || r.values() < (sparse ? 5u : 3u)) return false;
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.scale = 0;
  const bool signs_alone = is_float(a) && is_float(b) && is_float(sum);
  for (std::size_t i = 0; i < 3; ++i) {
    const Operand& o = r.value(i);
    if (o.absolute || o.invert || (o.negate && !signs_alone)) return false;
    if (o.negate) op.scale = static_cast<std::uint8_t>(op.scale | 1u << i);
  }
  op.offset = -1;
  if (sparse) {
    u32 selector = 0;
    if (!r.literal(4, selector) || selector > 3) return false;
    op.d = r.integer(3);
    op.offset = selector;
  }
  op.target = shape.m;
  op.immediate = shape.k;
  op.variant = static_cast<std::uint8_t>(a);
  op.combine = static_cast<std::uint8_t>(b);
  op.bytes = static_cast<std::uint8_t>(sum);
  op.carry_out = r.has(Modifier::SAT);
  op.run = multiply_matrices;
  return true;
}

/// Transposes 8 x 8 halves, of which each lane has two neighbours of a row.
void transpose_halves(Exec& x, const Op& op) {
  const u32* a = x.row(op.a);
  for (int i = 0; i < kWarpLanes; ++i) {
    const int r = i / 4, c = i % 4 * 2;
    const auto element = [&](int row, int column) { return a[row * 4 + column / 2] >> column % 2 * 16 & 0xffffu; };
    x.scratch[0].lane[static_cast<std::size_t>(i)] = element(c, r) | element(c + 1, r) << 16;
  }
  merge_rows(x, op.dst, 1);
}

}  // namespace

bool emulate_hmma(const OperandReader& r, Op& op) {
  const Element sum = r.has(Modifier::F32) ? Element::Single : Element::Half;
  const Element factor = r.has(Modifier::TF32)   ? Element::Tensor32
                         : r.has(Modifier::BF16) ? Element::Brain
                                                 : Element::Half;
  return decode_matrices(r, op, factor, factor, sum);
}

/// IMMA.16832.S8.U8: the elements of A, then those of B.
bool emulate_imma(const OperandReader& r, Op& op) {
  const Instruction& in = r.instruction();
  std::array<Element, 2> factors{Element::Signed8, Element::Signed8};
  std::size_t found = 0;
  for (int i = 0; i < in.modifier_count && found < 2; ++i) {
    switch (in.modifier_list[static_cast<std::size_t>(i)]) {
      case Modifier::S8:
        factors[found++] = Element::Signed8;
        break;
      case Modifier::U8:
        factors[found++] = Element::Unsigned8;
        break;
      case Modifier::S4:
        factors[found++] = Element::Signed4;
        break;
      case Modifier::U4:
        factors[found++] = Element::Unsigned4;
        break;
      default:
        break;
    }
  }
  return found == 2 && bits_of(factors[0]) == bits_of(factors[1]) &&
         decode_matrices(r, op, factors[0], factors[1], Element::Signed32);
}

bool emulate_dmma(const OperandReader& r, Op& op) {
  return decode_matrices(r, op, Element::Double, Element::Double, Element::Double);
}

bool emulate_bmma(const OperandReader& r, Op& op) {
  const MatrixShape& shape = r.instruction().shape;
  if (!known_shape(shape) || shape.k % 128 != 0 || shape.k > 256 || r.values() < 3 || !r.has(Modifier::POPC))
    return false;
  op.a = r.integer(0);
  op.b = r.integer(1);
  op.c = r.integer(2);
  op.target = shape.m;
  op.immediate = shape.k;
  op.variant = r.has(Modifier::XOR) ? 1 : 0;
  op.run = multiply_bits;
  return op.a.flip == 0 && op.b.flip == 0 && op.c.flip == 0;
}

bool emulate_movm(const OperandReader& r, Op& op) {
  op.a = r.integer(0);
  op.run = transpose_halves;
  return r.has(Modifier::MT88) && r.has(Modifier::B16) && op.a.flip == 0;
}

}  // namespace forewarp::emulation
