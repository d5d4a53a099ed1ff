// Which values a line reads and writes, word by word.
#pragma once

#include "program/analysis.h"
#include "sketch/assembler/code.h"

namespace forewarp::sketch {

inline constexpr int kFactorWords = 4;  ///< uniform registers that describe two factors

/// Uniform registers of a copy of boxes: addresses in shared memory (of a load its barrier's, too) and coordinates; of
/// the second operand the map's address.
inline int box_words(const Instruction& in, int operand) {
  if (operand > 0) return 2;
  const int dimensions = in.has(Modifier::Dim3) ? 3 : 2;
  return dimensions + (in.opcode == Opcode::UTMALDG ? 2 : 1);
}

/// Calls visit(value, words, written, as_guard) for every named value of the line.
template <class Visit>
void for_each_value(const Line& line, Visit&& visit) {
  const Instruction& in = line.instruction;
  for (int i = 0; i < in.operand_count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const Operand& o = in.operands[place];
    const Line::Names& n = line.names[place];
    const bool memory = o.kind == OperandKind::Memory;
    const int words = memory                              ? (o.wide ? 2 : 1)
                      : o.kind == OperandKind::Descriptor ? kFactorWords
                                                          : operand_width(in, i);
    if (n.value.id >= 0) visit(n.value, words, !memory && i < in.destination_count, false);
    const bool boxes = in.opcode == Opcode::UTMALDG || in.opcode == Opcode::UTMASTG;
    const int uniforms = boxes ? box_words(in, i) : memory && o.wide ? 2 : 1;
    if (n.uniform.id >= 0) visit(n.uniform, uniforms, false, false);
    if (n.descriptor.id >= 0) visit(n.descriptor, 2, false, false);
  }
  if (line.guard.id >= 0) visit(line.guard, 1, false, true);
}

/// A dense number for every word of every value.
class Words {
 public:
  explicit Words(const std::vector<ValueSpec>& values) : first_(values.size() + 1, 0) {
    for (std::size_t v = 0; v < values.size(); ++v) first_[v + 1] = first_[v] + values[v].words;
  }
  int of(const Value& v) const { return first_[static_cast<std::size_t>(v.id)] + v.word; }
  int first(std::size_t value) const { return first_[value]; }
  int count() const { return first_.back(); }

 private:
  std::vector<int> first_;
};

/// wgmma.
inline bool multiplies_by_group(const Instruction& in) {
  return in.opcode == Opcode::HGMMA || in.opcode == Opcode::IGMMA || in.opcode == Opcode::QGMMA;
}

inline bool ends_block(const Instruction& in) {
  return in.opcode == Opcode::BRA || in.opcode == Opcode::BSYNC || in.opcode == Opcode::EXIT;
}

}  // namespace forewarp::sketch
