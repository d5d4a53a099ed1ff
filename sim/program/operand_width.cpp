// Widths of operands in registers. Sources: sass.md 2 and the fragments of 2.6; IMAD.HI's third source was read off the
// compiler's division by an invariant, which adds the reciprocal as the upper word of a pair.
#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp {
namespace {

constexpr int kRegisterBytes = 4;
constexpr int kWarpRegisterBits = kWarpLanes * 32;

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
  switch (instruction.opcode) {
    case Opcode::F2I:
      return result == !is_float ? 2 : 1;
    case Opcode::I2F:
      return result == is_float ? 2 : 1;
    default:
      return 2;  // FRND.F64, F2F between equal types
  }
}

int element_bits(const Instruction& instruction) {
  switch (instruction.opcode) {
    case Opcode::DMMA:
      return 64;
    case Opcode::IMMA:
    case Opcode::IGMMA:
      return instruction.has(Modifier::U4) || instruction.has(Modifier::S4) ? 4 : 8;
    case Opcode::QMMA:
    case Opcode::QGMMA:
      return 8;
    case Opcode::BMMA:
    case Opcode::BGMMA:
      return 1;
    default:
      return instruction.has(Modifier::TF32) ? 32 : 16;
  }
}

/// HMMA D, A, B, C: elements of a fragment over the lanes of a warp. A sparse A holds half of its elements.
int warp_matrix_width(const Instruction& instruction, int index) {
  const auto& shape = instruction.shape;
  const int bits = element_bits(instruction);
  const bool doubles = instruction.opcode == Opcode::DMMA;
  const bool narrow_sum = instruction.opcode == Opcode::HMMA && !instruction.has(Modifier::F32);
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
  switch (instruction.opcode) {
    case Opcode::DADD:
    case Opcode::DMUL:
    case Opcode::DFMA:
    case Opcode::DSETP:
      return 2;
    case Opcode::IMAD:
    case Opcode::UIMAD: {
      const bool third = !result && source_number(instruction, index) == 2;
      if (instruction.has(Modifier::WIDE)) return result || third ? 2 : 1;
      return instruction.has(Modifier::HI) && third ? 2 : 1;
    }
    case Opcode::F2F:
    case Opcode::F2I:
    case Opcode::I2F:
    case Opcode::FRND:
      return conversion_width(instruction, result);
    case Opcode::HMMA:
    case Opcode::IMMA:
    case Opcode::BMMA:
    case Opcode::DMMA:
    case Opcode::QMMA:
      return warp_matrix_width(instruction, index);
    case Opcode::HGMMA:
    case Opcode::IGMMA:
    case Opcode::QGMMA:
    case Opcode::BGMMA:
      return group_matrix_width(instruction, index);
    case Opcode::UIADD3:
    case Opcode::UMOV:
    case Opcode::USEL:
      return instruction.has(Modifier::B64) ? 2 : 1;
    case Opcode::CS2R:
      return first && !instruction.has(Modifier::B32) ? 2 : 1;
    case Opcode::MATCH:
      return !result && instruction.has(Modifier::U64) ? 2 : 1;
    case Opcode::RET:
    case Opcode::BRX:
    case Opcode::JMX:
    case Opcode::BRXU:
    case Opcode::JMXU:
    case Opcode::CALL:
    case Opcode::LEPC:
      return 2;
    case Opcode::UBLKCP:
    case Opcode::UBLKRED:
    case Opcode::UTMALDG:
      return 1;
    case Opcode::SYNCS:  // an arrival returns the barrier's state
      return instruction.has(Modifier::B64) || (instruction.has(Modifier::ARRIVE) && result) ? 2 : 1;
    case Opcode::TEX:
    case Opcode::TLD:
    case Opcode::TLD4:
    case Opcode::TXD:
    case Opcode::TXQ:
    case Opcode::TMML:
    case Opcode::SULD:
    case Opcode::SUST:
      return texture_width(index);
    default:
      return instruction.memory != MemoryKind::None ? memory_data_width(instruction) : 1;
  }
}

}  // namespace

int operand_width(const Instruction& instruction, int index) {
  const Operand& operand = instruction.operands[index];
  if (operand.kind != OperandKind::Register && operand.kind != OperandKind::UniformRegister) return 1;
  if (operand.wide) return 2;
  return register_width(instruction, index);
}

}  // namespace forewarp
