// Widths of operands in registers. Sources: sass.md 2 and the fragments of 2.6; IMAD.HI's third source was read off the
// compiler's division by an invariant, which adds the reciprocal as the upper word of a pair.
#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp {
namespace {

constexpr int kRegisterBytes = 4;
constexpr int kWarpRegisterBits = kWarpLanes * 32;
constexpr int kWarpMatrixRows = 16;  // at most; a warp group's matrices have 64

int words(int bytes) { return bytes <= kRegisterBytes ? 1 : bytes / kRegisterBytes; }

bool is_64_bit(Modifier modifier) {
  return modifier == Modifier::F64 || modifier == Modifier::S64 || modifier == Modifier::U64;
}

bool is_type(Modifier modifier) {
  switch (modifier) {
    case Modifier::U8:
    case Modifier::S8:
    case Modifier::U16:
    case Modifier::S16:
    case Modifier::U32:
    case Modifier::S32:
    case Modifier::U64:
    case Modifier::S64:
    case Modifier::F16:
    case Modifier::BF16:
    case Modifier::F32:
    case Modifier::F64:
      return true;
    default:
      return false;
  }
}

/// F2F.D.S, F2I.D.S, I2F.D.S, FRND.D: a type that is left out is 32 bits wide. When one is written, a conversion to
/// integers has it as its result if it is an integer, one from integers as its result if it is a float.
int conversion_width(const Instruction& instruction, bool result) {
  std::array<Modifier, 2> types{};
  int count = 0;
  for (int i = 0; i < instruction.modifier_count && count < 2; ++i) {
    if (is_type(instruction.modifier_list[i])) types[count++] = instruction.modifier_list[i];
  }
  if (count == 2) return is_64_bit(types[result ? 0 : 1]) ? 2 : 1;
  if (count == 0 || !is_64_bit(types[0])) return 1;
  const bool is_float = types[0] == Modifier::F64;
  if (instruction.opcode == Opcode::F2I) return result == !is_float ? 2 : 1;
  if (instruction.opcode == Opcode::I2F) return result == is_float ? 2 : 1;
  return 2;  // FRND.F64, F2F between equal types
}

int element_bits(const Instruction& instruction, Width width) {
  switch (width) {
    case Width::DoubleMatrix:
      return 64;
    case Width::IntegerMatrix:
      return instruction.has(Modifier::U4) || instruction.has(Modifier::S4) ? 4 : 8;
    case Width::ByteMatrix:
      return 8;
    case Width::BitMatrix:
      return 1;
    default:
      return instruction.has(Modifier::TF32) ? 32 : 16;
  }
}

/// HMMA D, A, B, C: elements of a fragment over the lanes of a warp. A sparse A holds half of its elements.
int warp_matrix_width(const Instruction& instruction, Width width, int index) {
  const auto& shape = instruction.shape;
  const int bits = element_bits(instruction, width);
  const bool doubles = width == Width::DoubleMatrix;
  const bool narrow_sum = width == Width::HalfMatrix && !instruction.has(Modifier::F32);
  const int sum_bits = doubles ? 64 : narrow_sum ? 16 : 32;
  int total = 0;
  switch (index) {
    case 0:
    case 3:
      total = shape.m * shape.n * sum_bits;
      break;
    case 1:
      total = shape.m * shape.k * bits / (instruction.has(Modifier::SP) ? 2 : 1);
      break;
    case 2:
      total = shape.k * shape.n * bits;
      break;
    default:
      return 1;  // metadata and selector of sparse forms
  }
  return total <= kWarpRegisterBits ? 1 : total / kWarpRegisterBits;
}

/// HGMMA D, desc, C or D, A, desc, C, then metadata: the sums of 64 rows over the 128 lanes of a warp group. One step
/// in depth of a register A is 32 bytes a row, 4 registers a lane.
int group_matrix_width(const Instruction& instruction, int index) {
  int descriptor = 1;
  while (descriptor < instruction.operand_count && instruction.operands[descriptor].kind != OperandKind::Descriptor)
    ++descriptor;
  if (index > 0 && index < descriptor) return 4;
  if (index > descriptor + 1) return 1;
  const bool narrow_sum = instruction.has(Modifier::F16) && !instruction.has(Modifier::F32);
  return narrow_sum ? instruction.shape.n / 4 : instruction.shape.n / 2;
}

int memory_data_width(const Instruction& instruction) { return words(instruction.access_bytes); }

int texture_width(int index) { return index == 0 ? 4 : 2; }

/// Operand number among the sources.
int source_number(const Instruction& instruction, int index) { return index - instruction.destination_count; }

int register_width(const Instruction& instruction, int index) {
  const bool result = index < instruction.destination_count;
  const bool first = index == 0;
  const OpcodeTraits& t = traits(instruction.opcode);
  switch (t.width) {
    case Width::Word:
    case Width::TensorCopy:
    case Width::BulkCopy:
      return 1;
    case Width::Pair:
      return 2;
    case Width::Stated:
      return instruction.has(Modifier::B64) ? 2 : 1;
    case Width::Data:
    case Width::MatrixRows:
      return memory_data_width(instruction);
    case Width::Product: {
      const bool third = !result && source_number(instruction, index) == 2;
      if (instruction.has(Modifier::WIDE)) return result || third ? 2 : 1;
      return instruction.has(Modifier::HI) && third ? 2 : 1;
    }
    case Width::Conversion:
      return conversion_width(instruction, result);
    case Width::Clock:
      return first && !instruction.has(Modifier::B32) ? 2 : 1;
    case Width::Match:
      return !result && instruction.has(Modifier::U64) ? 2 : 1;
    case Width::HalfMatrix:
    case Width::IntegerMatrix:
    case Width::ByteMatrix:
    case Width::BitMatrix:
    case Width::DoubleMatrix: {
      const bool of_warp = instruction.shape.m <= kWarpMatrixRows;
      return of_warp ? warp_matrix_width(instruction, t.width, index) : group_matrix_width(instruction, index);
    }
    case Width::BarrierObject:  // an arrival returns the barrier's state
      return instruction.has(Modifier::B64) || (instruction.has(Modifier::ARRIVE) && result) ? 2 : 1;
    case Width::Texture:
      return texture_width(index);
  }
  return 1;
}

}  // namespace

int operand_width(const Instruction& instruction, int index) {
  const Operand& operand = instruction.operands[index];
  if (operand.kind != OperandKind::Register && operand.kind != OperandKind::UniformRegister) return 1;
  if (operand.wide) return 2;
  return register_width(instruction, index);
}

}  // namespace forewarp
