// What a block must have in common with the emulated one to execute the same trace: half-spaces and residues of its
// index, collected while the representative runs.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace forewarp::emulation {

inline constexpr std::uint8_t kAllDims = 7;  ///< bit 0: x, bit 1: y, bit 2: z
/// Beside them: what is in memory, which other blocks find different without its being a matter of their index.
inline constexpr std::uint8_t kDataDim = 8;

inline bool is_zero(const BlockSlope& s) { return (s.x | s.y | s.z) == 0; }
inline BlockSlope add(const BlockSlope& a, const BlockSlope& b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline BlockSlope scale(const BlockSlope& a, std::int64_t f) { return {a.x * f, a.y * f, a.z * f}; }
inline std::uint8_t dims_of(const BlockSlope& s) {
  return static_cast<std::uint8_t>((s.x != 0 ? 1 : 0) | (s.y != 0 ? 2 : 0) | (s.z != 0 ? 4 : 0));
}

/// Smallest and largest value.
struct Span {
  std::int64_t low = 0, high = 0;
};

class BlockConditions {
 public:
  explicit BlockConditions(const Dim3& grid) : grid_(grid) {}
  /// Forgets everything; conditions from now on are relative to `representative`.
  void start(const Dim3& representative);

  /// What c . d can be anywhere in the grid.
  Span reach(const BlockSlope& c) const;
  /// low <= c . d <= high. Zero lies within.
  void interval(const BlockSlope& c, std::int64_t low, std::int64_t high);
  /// c . d is a multiple of `modulus`.
  void residue(const BlockSlope& c, std::int64_t modulus);
  /// The block index must equal the representative's along these dims.
  void fix(std::uint8_t dims);
  std::uint8_t fixed() const { return fixed_; }
  /// Something was decided by data: blocks that satisfy the conditions may still go another way.
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
  BlockSlope without_fixed(BlockSlope c) const;
  std::uint8_t extended_dims() const;

  Dim3 grid_;
  Dim3 representative_{0, 0, 0};
  std::uint8_t fixed_ = 0;
  bool data_dependent_ = false;
  std::vector<Interval> intervals_;
  std::vector<Residue> residues_;
};

}  // namespace forewarp::emulation
