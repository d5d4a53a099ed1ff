// The conditions under which a block executes the same trace as the emulated one: half-spaces and residues of its
// index, collected while the representative runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "trace/trace.h"

namespace forewarp::emulation {

/// Coordinates of a block that something depends on. Bit 0: x, bit 1: y, bit 2: z, from bit 4 on the launch's
/// quotients.
using Dims = std::uint16_t;
inline constexpr Dims kAllDims = 7;
/// Beside them: what is in memory, which other blocks find different without its being a matter of their index.
inline constexpr Dims kDataDim = 8;
inline constexpr int kFirstQuotientDim = 4;
static_assert(kFirstQuotientDim + kMostQuotients <= 16);

inline bool is_zero(const BlockSlope& s) { return s == BlockSlope{}; }
/// Calls `visit` with each coefficient, x first.
template <class Slope, class Visit>
void for_each_part(Slope& s, const Visit& visit) {
  visit(s.x);
  visit(s.y);
  visit(s.z);
  for (auto& q : s.quotients) visit(q);
}
inline BlockSlope add(BlockSlope a, const BlockSlope& b) {
  a.x += b.x;
  a.y += b.y;
  a.z += b.z;
  for (std::size_t i = 0; i < a.quotients.size(); ++i) a.quotients[i] += b.quotients[i];
  return a;
}
inline BlockSlope scale(BlockSlope a, std::int64_t f) {
  for_each_part(a, [f](std::int64_t& part) { part *= f; });
  return a;
}
inline BlockSlope quotient_slope(int i) {
  BlockSlope s;
  s.quotients[static_cast<std::size_t>(i)] = 1;
  return s;
}
inline std::int64_t largest_part(const BlockSlope& s) {
  std::int64_t largest = 0;
  for_each_part(s, [&](const std::int64_t& part) { largest = std::max(largest, std::abs(part)); });
  return largest;
}
inline Dims dims_of(const BlockSlope& s) {
  unsigned dims = (s.x != 0 ? 1u : 0u) | (s.y != 0 ? 2u : 0u) | (s.z != 0 ? 4u : 0u);
  for (int i = 0; i < kMostQuotients; ++i)
    if (s.quotients[static_cast<std::size_t>(i)] != 0) dims |= 1u << (kFirstQuotientDim + i);
  return static_cast<Dims>(dims);
}

/// Smallest and largest value.
struct Span {
  std::int64_t low = 0, high = 0;
};

class BlockConditions {
 public:
  /// `quotients`, the launch's, grow as quotient() asks for them.
  BlockConditions(const Dim3& grid, std::vector<BlockQuotient>& quotients) : grid_(grid), quotients_(&quotients) {}
  /// Starts over; conditions are relative to `representative` from now on.
  void start(const Dim3& representative);

  /// The range of c . d over the grid.
  Span reach(const BlockSlope& c) const;
  /// low <= c . d <= high. Zero lies within.
  void interval(const BlockSlope& c, std::int64_t low, std::int64_t high);
  /// c . d is a multiple of `modulus`.
  void residue(const BlockSlope& c, std::int64_t modulus);
  /// The quotient of `numerator`, which is `now` at the representative, by `divisor`: an index, or -1 if the launch has
  /// too many.
  int quotient(const BlockSlope& numerator, BlockSlope::Wide now, std::int64_t divisor);
  /// The block index must equal the representative's along these dims.
  void fix(Dims dims);
  Dims fixed() const { return fixed_; }
  /// Along which the grid has more than one block.
  Dims extended_dims() const;
  /// Data decided something: blocks that satisfy the conditions may still take another path.
  bool data_dependent() const { return data_dependent_; }

  bool single() const;  ///< no other block of the grid can satisfy them, as far as fix() tells
  std::vector<BlockCondition> list() const;

 private:
  struct Interval {
    BlockSlope coefficient;
    std::int64_t low, high;
  };
  struct Residue {
    BlockSlope coefficient;
    std::int64_t modulus;
  };
  /// A form once its fixed parts are gone and parallel ones are one, with how far that can move. What loops ask for
  /// over and over.
  struct Normal {
    BlockSlope from, coefficient;
    std::int64_t factor;
    Span reach;
  };
  const Normal& normal(const BlockSlope& c);
  void forget_forms() {
    forms_.clear();
    known_residues_.clear();
  }
  BlockSlope without_fixed(BlockSlope c) const;
  Span quotient_reach(std::size_t i) const;
  Span real_reach(const BlockSlope& c) const;

  Dim3 grid_;
  std::vector<BlockQuotient>* quotients_;
  Dim3 representative_{0, 0, 0};
  BlockPlace place_;  ///< of the representative
  Dims fixed_ = 0;
  bool data_dependent_ = false;
  std::vector<Normal> forms_;  ///< the latest last
  std::vector<Residue> known_residues_;
  std::vector<Interval> intervals_;
  std::vector<Residue> residues_;
};

}  // namespace forewarp::emulation
