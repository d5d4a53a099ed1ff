// Finds the class of a block, for callers that ask about every block of a grid.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace forewarp {

/// Finds classes by their conditions, quickly for who asks for one block after another.
class ClassFinder {
 public:
  explicit ClassFinder(const KernelTrace& trace) : trace_(trace) {}

  void add(std::uint32_t index);
  void clear();
  std::size_t size() const { return known_.size(); }
  static constexpr std::uint32_t kNone = ~0u;
  /// The first of a few classes, or any of many, that holds the block; a block that two hold is the same in both.
  std::uint32_t find(const BlockPlace& place);
  /// The first class.
  std::uint32_t find_first(const BlockPlace& place) const;
  std::uint64_t tests() const { return tests_; }  ///< classes looked at by find()

 private:
  static constexpr std::size_t kFew = 16;
  static constexpr std::uint32_t kUnknown = ~0u;
  using Wide = BlockSlope::Wide;
  /// A condition on where a block lies, not on how far from the representative.
  struct Bound {
    std::uint32_t form;  ///< of forms_: classes share a few
    Wide low, high;
    Wide origin;  ///< of residues
    std::int64_t modulus;
  };
  struct Known {
    std::uint32_t index;
    std::uint32_t first, count;                                                 ///< of bounds_
    std::array<std::uint32_t, 4> next{kUnknown, kUnknown, kUnknown, kUnknown};  ///< places of those that came after it
  };
  bool holds(std::size_t i, const BlockPlace& place);

  const KernelTrace& trace_;
  std::vector<Known> known_;
  std::vector<Bound> bounds_;
  std::vector<BlockSlope> forms_;
  std::vector<std::pair<std::uint64_t, Wide>> values_;  ///< of each form at a block, and which find() that was
  std::uint64_t asked_ = 0;
  std::uint32_t latest_ = 0;
  std::uint64_t tests_ = 0;
};

/// Refers to the trace it was made from; single-block classes are found by hash, the few others by their conditions.
class ClassIndex {
 public:
  explicit ClassIndex(const KernelTrace& trace);
  std::uint32_t class_of(std::uint64_t linear_block) const;

 private:
  std::uint32_t search(std::uint64_t linear_block, const BlockPlace& place) const;

  const KernelTrace& trace_;
  std::unordered_map<std::uint64_t, std::uint32_t> singles_;  ///< linear block to class
  ClassFinder shared_;                                        ///< classes of several blocks
  /// Stretches of linear indices that what is left of a sampled grid is divided into: the first of each, ascending.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> stretches_;
  std::vector<std::uint32_t> of_block_;  ///< where there are many classes, and not too many blocks
};

}  // namespace forewarp
