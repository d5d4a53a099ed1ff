#include "program/analysis.h"

#include <algorithm>

#include "base/error.h"
#include "program/traits.h"

namespace forewarp {
namespace {

constexpr std::uint8_t kAllPredicates = 0x7f;
constexpr int kMatrixDescriptorRegisters = 4;  // two 64-bit descriptors, A and B (sass.md 2.6)
void add_predicate(std::uint8_t& set, int index) {
  if (index != kPredicateTrue) set = static_cast<std::uint8_t>(set | 1u << index);
}

/// P2R and R2P touch the predicates whose bits are set in their mask, an immediate.
std::uint8_t predicate_file_mask(const Instruction& instruction) {
  const Operand& last = instruction.operands[instruction.operand_count - 1];
  return last.kind == OperandKind::Immediate ? static_cast<std::uint8_t>(last.immediate & kAllPredicates)
                                             : kAllPredicates;
}

int tensor_dimensions(const Instruction& instruction) {
  constexpr Modifier kDimensions[] = {Modifier::Dim1, Modifier::Dim2, Modifier::Dim3, Modifier::Dim4, Modifier::Dim5};
  for (int i = 0; i < 5; ++i) {
    if (instruction.has(kDimensions[i])) return i + 1;
  }
  return 5;
}

/// Bulk copies name a register and mean several: [shared address, barrier, coordinates], [tensor map].
int uniform_address_width(const Instruction& instruction, int index) {
  const OpcodeTraits& t = traits(instruction.opcode);
  if (t.width == Width::TensorCopy) return index == 0 ? 2 + tensor_dimensions(instruction) : 2;
  if (t.width == Width::BulkCopy) return 2;
  const bool far = instruction.space == MemorySpace::Global || instruction.space == MemorySpace::Generic;
  const bool near_half = t.slice == Slice::CopyIn && index == 0;
  return far && !near_half ? 2 : 1;
}

void add_address(const Instruction& instruction, int index, Effects& result) {
  const Operand& operand = instruction.operands[index];
  result.address_reads.registers.add(operand.index, operand.wide ? 2 : 1, kRegisterZero);
  result.address_reads.uniforms.add(operand.uniform, uniform_address_width(instruction, index), kUniformRegisterZero);
  result.descriptor_reads.uniforms.add(operand.descriptor, 2, kUniformRegisterZero);
}

void add_read(const Instruction& instruction, int index, Effects& result) {
  const Operand& operand = instruction.operands[index];
  LocationSet& reads = result.value_reads;
  switch (operand.kind) {
    case OperandKind::Register:
      reads.registers.add(operand.index, operand_width(instruction, index), kRegisterZero);
      break;
    case OperandKind::UniformRegister:
      reads.uniforms.add(operand.index, operand_width(instruction, index), kUniformRegisterZero);
      break;
    case OperandKind::Predicate:
      add_predicate(reads.predicates, operand.index);
      break;
    case OperandKind::UniformPredicate:
      add_predicate(reads.uniform_predicates, operand.index);
      break;
    case OperandKind::PredicateFile:
      (operand.index == 0 ? reads.predicates : reads.uniform_predicates) |= predicate_file_mask(instruction);
      break;
    case OperandKind::Barrier:
      reads.barriers = static_cast<std::uint16_t>(reads.barriers | 1u << operand.index);
      break;
    case OperandKind::Descriptor:
      reads.uniforms.add(operand.index, multiplies_matrices(instruction.opcode) ? kMatrixDescriptorRegisters : 2,
                         kUniformRegisterZero);
      break;
    case OperandKind::Memory:
      add_address(instruction, index, result);
      break;
    case OperandKind::Constant:
      // The place of a constant is data to an ALU instruction, an address to LDC; it is needed exactly when the value
      // is.
      reads.registers.add(operand.index, 1, kRegisterZero);
      reads.uniforms.add(operand.uniform, 1, kUniformRegisterZero);
      reads.uniforms.add(operand.descriptor, 2, kUniformRegisterZero);
      break;
    default:
      break;
  }
}

void add_write(const Instruction& instruction, int index, LocationSet& writes) {
  const Operand& operand = instruction.operands[index];
  switch (operand.kind) {
    case OperandKind::Register:
      writes.registers.add(operand.index, operand_width(instruction, index), kRegisterZero);
      break;
    case OperandKind::UniformRegister:
      writes.uniforms.add(operand.index, operand_width(instruction, index), kUniformRegisterZero);
      break;
    case OperandKind::Predicate:
      add_predicate(writes.predicates, operand.index);
      break;
    case OperandKind::UniformPredicate:
      add_predicate(writes.uniform_predicates, operand.index);
      break;
    case OperandKind::PredicateFile:
      (operand.index == 0 ? writes.predicates : writes.uniform_predicates) |= predicate_file_mask(instruction);
      break;
    case OperandKind::Barrier:
      writes.barriers = static_cast<std::uint16_t>(writes.barriers | 1u << operand.index);
      break;
    default:
      break;
  }
}

/// Barriers that instructions change although they are no results of theirs.
void add_barrier_state(const Instruction& instruction, Effects& result) {
  const Flow flow = traits(instruction.opcode).flow;
  const bool clears = flow == Flow::BarrierMove && instruction.has(Modifier::CLEAR);
  if (flow == Flow::Converge || clears) {
    result.writes.barriers |= result.value_reads.barriers;
  }
}

}  // namespace

void SpanList::add(int first, int count, int zero_index) {
  if (first == zero_index) return;
  FW_CHECK(size < kCapacity, "an instruction with more than six register operands");
  // A pair at the top of the file would run into the zero register.
  items[size++] = {static_cast<std::uint8_t>(first), static_cast<std::uint8_t>(std::min(count, zero_index - first))};
}

bool SpanList::contains(int index) const {
  return std::any_of(begin(), end(),
                     [&](const RegisterSpan& s) { return index >= s.first && index < s.first + s.count; });
}

Effects effects(const Instruction& instruction) {
  Effects result;
  if (instruction.guard_uniform) {
    add_predicate(result.guard.uniform_predicates, instruction.guard);
  } else {
    add_predicate(result.guard.predicates, instruction.guard);
  }
  for (int i = 0; i < instruction.operand_count; ++i) {
    if (i < instruction.destination_count) {
      add_write(instruction, i, result.writes);
    } else {
      add_read(instruction, i, result);
    }
  }
  add_barrier_state(instruction, result);
  return result;
}

bool may_execute(const Instruction& instruction) {
  return instruction.guard != kPredicateTrue || !instruction.guard_negated;
}

bool always_executes(const Instruction& instruction) {
  return instruction.guard == kPredicateTrue && !instruction.guard_negated;
}

namespace {

bool is_register_zero(const Operand& operand, bool negated) {
  return operand.kind == OperandKind::Register && operand.index == kRegisterZero && operand.negate == negated;
}

}  // namespace

bool is_disguised_move(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  if (instruction.operand_count < 3 || !is_register_zero(operands[1], true)) return false;
  if (instruction.operation == OperationClass::Hadd)
    return instruction.has(Modifier::F32) && operands[2].half != HalfSelect::Packed;
  const bool constant = operands[3].kind == OperandKind::Immediate || operands[3].kind == OperandKind::Constant;
  return instruction.operation == OperationClass::Hfma && instruction.operand_count == 4 &&
         is_register_zero(operands[2], false) && constant;
}

namespace {

MatrixType matrix_type(const Instruction& instruction, Width width) {
  switch (width) {
    case Width::IntegerMatrix:
      return instruction.has(Modifier::U4) || instruction.has(Modifier::S4) ? MatrixType::Int4 : MatrixType::Int8;
    case Width::ByteMatrix:
      return MatrixType::Byte;
    case Width::BitMatrix:
      return MatrixType::Bit;
    case Width::DoubleMatrix:
      return MatrixType::Double;
    default:
      break;
  }
  if (instruction.has(Modifier::TF32)) return MatrixType::Tfloat;
  if (instruction.has(Modifier::BF16)) return MatrixType::Bfloat;
  return instruction.has(Modifier::F32) ? MatrixType::Half : MatrixType::HalfToHalf;
}

}  // namespace

std::optional<MatrixWork> matrix_work(const Instruction& instruction) {
  if (!multiplies_matrices(instruction.opcode)) return std::nullopt;
  const MatrixShape& shape = instruction.shape;
  MatrixWork work;
  work.type = matrix_type(instruction, traits(instruction.opcode).width);
  work.sparse = instruction.has(Modifier::SP);
  work.rows = shape.m;
  work.columns = shape.n;
  work.depth = shape.k;
  // What is in front of the descriptor is the result, and the first factor if it is in registers.
  const int first = instruction.destination_count;
  work.first_shared = shape.m > MatrixWork::kWarpRows && first < instruction.operand_count &&
                      instruction.operands[first].kind == OperandKind::Descriptor;
  return work;
}

std::string opcode_form(const Instruction& instruction) {
  std::string form = opcode_text(instruction.opcode);
  if (!multiplies_matrices(instruction.opcode)) {
    return instruction.has(Modifier::MMA) ? form + ".MMA" : form;
  }
  const MatrixShape& shape = instruction.shape;
  if (instruction.has(Modifier::SP)) form += ".SP";
  form += "." + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
  for (int i = 0; i < instruction.modifier_count; ++i) {
    const Modifier modifier = instruction.modifier_list[static_cast<std::size_t>(i)];
    if (modifier != Modifier::SP) form += std::string(".") + modifier_text(modifier);
  }
  return form;
}

bool reads_lane_attribute(const Instruction& instruction) {
  const auto& operands = instruction.operands;
  return std::any_of(operands.begin(), operands.begin() + instruction.operand_count, [](const Operand& operand) {
    if (operand.kind != OperandKind::Special) return false;
    switch (operand.special) {
      case SpecialRegister::TidX:
      case SpecialRegister::TidY:
      case SpecialRegister::TidZ:
      case SpecialRegister::CombinedTid:
      case SpecialRegister::LaneId:
        return true;
      default:
        return false;
    }
  });
}

}  // namespace forewarp
