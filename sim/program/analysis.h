// What instructions read and write, and the control-flow graph, from the decoded instructions alone. Zero registers and
// always-true predicates never appear.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/program.h"

namespace forewarp {

/// Registers first .. first + count - 1.
struct RegisterSpan {
  std::uint8_t first = 0;
  std::uint8_t count = 0;
  bool operator==(const RegisterSpan&) const = default;
};

/// A few spans without allocation.
struct SpanList {
  static constexpr int kCapacity = 6;
  std::array<RegisterSpan, kCapacity> items{};
  std::uint8_t size = 0;

  void add(int first, int count, int zero_index);
  const RegisterSpan* begin() const { return items.data(); }
  const RegisterSpan* end() const { return items.data() + size; }
  bool contains(int index) const;
};

/// Locations that an instruction reads or writes.
struct LocationSet {
  SpanList registers;
  SpanList uniforms;
  std::uint8_t predicates = 0;          ///< bit i: Pi
  std::uint8_t uniform_predicates = 0;  ///< bit i: UPi
  std::uint16_t barriers = 0;           ///< bit i: convergence barrier Bi
};

struct Effects {
  LocationSet value_reads;
  LocationSet address_reads;
  LocationSet descriptor_reads;
  LocationSet guard;   ///< the guard predicate
  LocationSet writes;  ///< also if the guard may be false; the old values then stay live
};

Effects effects(const Instruction&);

/// Consecutive registers that operand `index` covers: IMAD.WIDE results are pairs, LDG.128 results quads, ...
/// 1 for operands that are not registers.
int operand_width(const Instruction&, int index);

/// Whether an S2R reads what differs between the lanes of a warp: the load/store unit delivers that, the ADU the rest.
bool reads_lane_attribute(const Instruction&);

/// HFMA2 d, -RZ, RZ, constant and HADD2.F32 d, -RZ, h: arithmetic by name, but a constant or a widened half.
bool is_disguised_move(const Instruction&);

/// Elements of a matrix instruction's factors; of its sums where that makes a counter of its own.
enum class MatrixType : std::uint8_t { HalfToHalf, Half, Bfloat, Tfloat, Byte, Int8, Int4, Bit, Double, Count };

/// Of an element of a factor.
constexpr int factor_bits(MatrixType type) {
  constexpr int kBits[]{16, 16, 16, 32, 8, 8, 4, 1, 64};
  return kBits[static_cast<std::size_t>(type)];
}

/// What a matrix instruction computes, a multiplication and an addition for each element of the inner dimension. The
/// zeros that a sparse factor leaves out count, as in Nsight Compute's sm__ops_path_tensor_*.
struct MatrixWork {
  static constexpr int kWarpRows =
      16;  ///< the most that one warp computes; a warp group's products have four times that

  MatrixType type = MatrixType::Half;
  bool sparse = false;
  bool first_shared = false;  ///< a warp group's first factor is in shared memory, as the second always is
  int rows = 0, columns = 0, depth = 0;

  bool of_group() const { return rows > kWarpRows; }
  int warp_rows() const { return rows < kWarpRows ? rows : kWarpRows; }
  /// Of a warp group's factors, what its product reads of shared memory.
  int shared_bytes() const {
    const int first = first_shared ? rows * depth / (sparse ? 2 : 1) : 0;
    return of_group() ? (first + columns * depth) * factor_bits(type) / 8 : 0;
  }
  /// Of one warp.
  std::uint64_t operations() const {
    return std::uint64_t{2} * static_cast<std::uint64_t>(warp_rows() * columns * depth);
  }
};
std::optional<MatrixWork> matrix_work(const Instruction&);

/// The opcode, for matrix instructions with shape and types: what has a timing, and a validation, of its own.
std::string opcode_form(const Instruction&);

/// Edges between instructions, in both directions, as compressed lists.
class ControlFlow {
 public:
  explicit ControlFlow(const Kernel&);

  std::span<const std::uint32_t> successors(std::uint32_t instruction) const { return list(successors_, instruction); }
  std::span<const std::uint32_t> predecessors(std::uint32_t instruction) const {
    return list(predecessors_, instruction);
  }
  std::uint32_t size() const { return static_cast<std::uint32_t>(successors_.offsets.size() - 1); }

 private:
  struct Lists {
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint32_t> targets;
  };
  static std::span<const std::uint32_t> list(const Lists& lists, std::uint32_t i) {
    return {lists.targets.data() + lists.offsets[i], lists.targets.data() + lists.offsets[i + 1]};
  }

  Lists successors_;
  Lists predecessors_;
};

/// Whether the guard can be true (@!PT never is) and whether it can be false.
bool may_execute(const Instruction&);
bool always_executes(const Instruction&);

}  // namespace forewarp
