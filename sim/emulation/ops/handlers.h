// Reads the operands of an instruction and chooses its handler: one function for each name in the table of opcodes, in
// the file that holds the handlers.
#pragma once

#include <array>
#include <vector>

#include "emulation/ops/op.h"

namespace forewarp::emulation {

/// What decoding an instruction needs: its operands, sorted, and ways to turn them into sources.
class OperandReader {
 public:
  struct Layout {
    std::uint32_t zero_row, discard_row, uniform_row;
  };

  OperandReader(const Instruction& in, const ConstantBanks& constants, std::vector<Row>& literals,
                const Layout& layout);

  const Instruction& instruction() const { return in_; }
  bool has(Modifier m) const { return in_.has(m); }

  std::size_t values() const { return values_.size(); }
  std::size_t predicates() const { return predicates_.size(); }
  /// A register of zeros where it is missing.
  const Operand& value(std::size_t i) const;
  const Operand* memory() const { return memory_; }
  const Operand* second_memory() const { return second_memory_; }
  const Operand* barrier() const { return barrier_; }
  const Operand* special() const { return special_; }
  const Operand* target() const { return target_; }
  const Operand* descriptor() const { return descriptor_; }
  const Operand* destination() const { return destination_; }

  /// Operand kinds of a source. Missing operands read as zero.
  Source integer(std::size_t i) const { return source(i, Kind::Integer); }
  Source integer64(std::size_t i) const { return source(i, Kind::Integer64); }
  Source single(std::size_t i) const { return source(i, Kind::Float); }
  Source half(std::size_t i) const { return source(i, Kind::Packed); }
  Source dual(std::size_t i) const { return source(i, Kind::Double); }
  /// The raw bits of an immediate or constant operand; false for a register.
  bool literal(std::size_t i, std::uint32_t& bits) const;
  std::uint32_t immediate(std::size_t i) const;
  PredicateSource predicate(std::size_t i) const;

  std::uint32_t destination_row() const;
  std::uint8_t destination_predicate(std::size_t i) const;
  std::size_t destination_predicates() const { return destination_predicates_.size(); }

  std::uint32_t register_row(const Operand& o) const;
  Source index_source(const Operand& memory) const;
  Source uniform_source(std::uint8_t uniform) const;
  Source literal_source(std::uint32_t low, std::uint32_t high = 0) const;
  std::uint32_t constant_word(int bank, std::uint32_t offset) const { return constants_.word(bank, offset); }

 private:
  enum class Kind { Integer, Integer64, Float, Packed, Double };
  Source source(std::size_t i, Kind kind) const;
  Source raw_source(const Operand& o, Kind kind) const;
  void sort_operand(const Operand& o, bool destination);

  const Instruction& in_;
  const ConstantBanks& constants_;
  std::vector<Row>& literals_;
  Layout layout_;
  std::vector<const Operand*> values_, predicates_, destination_predicates_;
  const Operand* destination_ = nullptr;
  const Operand* memory_ = nullptr;
  const Operand* second_memory_ = nullptr;
  const Operand* barrier_ = nullptr;
  const Operand* special_ = nullptr;
  const Operand* target_ = nullptr;
  const Operand* descriptor_ = nullptr;
};

// emulate_<name> for every name in the table of opcodes. They return false for forms that they do not know.
#define FW_OPCODE(name, codes, where, operation, results, memory, flow, slice, symbolic, width, counted, emulated, \
                  timed)                                                                                           \
  bool emulate_##emulated(const OperandReader& r, Op& op);
#include "program/opcodes.def"
#undef FW_OPCODE

/// The comparison a modifier names, as Compare bits; integer comparisons never see unordered operands.
std::uint8_t comparison_bits(const Instruction& in);
/// 0 and, 1 or, 2 xor.
std::uint8_t combination(const Instruction& in);

/// Op::variant of shifts. Op::carry_out marks those that shift the one word in op.a by op.immediate < 32.
enum ShiftBits : std::uint8_t { kShiftLeft = 1, kShiftHigh = 2, kShiftWrap = 4, kShiftSigned = 8, kShiftWide = 16 };

/// Fills the address fields from a memory operand.
void read_address(const OperandReader& r, const Operand& memory, Op& op);
/// The shared side of an asynchronous copy whose global side is Op::run.
Handler copy_target_handler();

/// Copies one, two or four rows.
void move_rows1(Exec& x, const Op& op);
void move_rows2(Exec& x, const Op& op);
void move_rows4(Exec& x, const Op& op);

}  // namespace forewarp::emulation
