#include "program/traits.h"

namespace forewarp {
namespace {

constexpr std::size_t kOpcodes = static_cast<std::size_t>(Opcode::Count);

std::array<OpcodeTraits, kOpcodes> make_traits() {
  std::array<OpcodeTraits, kOpcodes> table{};
#define FW_TRAITS(opcode, pipe80, pipe90, operation, destinations, latency, space, memory)         \
  table[static_cast<std::size_t>(Opcode::opcode)] = {                                              \
      Pipe::pipe80,     Pipe::pipe90,       OperationClass::operation, Destinations::destinations, \
      Latency::latency, MemorySpace::space, MemoryKind::memory};
#include "program/traits.def"
#undef FW_TRAITS
  return table;
}

/// Some encodings carry two names: the RED of sm_80 is the REDG of sm_90.
struct EncodingNames {
  Opcode first = Opcode::Unknown;
  Opcode second = Opcode::Unknown;
};

std::array<EncodingNames, 512> make_encodings() {
  std::array<EncodingNames, 512> table{};
  const auto add = [&](int bits, Opcode opcode) {
    (table[bits].first == Opcode::Unknown ? table[bits].first : table[bits].second) = opcode;
  };
#define FW_ENCODING(bits, opcode) add(bits, Opcode::opcode);
#include "program/encodings.def"
#undef FW_ENCODING
  return table;
}

bool is_predicate(const Operand& operand) {
  return operand.kind == OperandKind::Predicate || operand.kind == OperandKind::UniformPredicate;
}

bool is_register(const Operand& operand) {
  return operand.kind == OperandKind::Register || operand.kind == OperandKind::UniformRegister;
}

int count_destinations(const Instruction& instruction, Destinations rule) {
  const auto& operands = instruction.operands;
  const int count = instruction.operand_count;
  int results = 0;
  switch (rule) {
    case Destinations::Zero:
      break;
    case Destinations::One:
      results = 1;
      break;
    case Destinations::Two:
      results = 2;
      break;
    case Destinations::Carry:
      results = 1;
      while (results < count && is_predicate(operands[results])) ++results;
      break;
    case Destinations::LeadingPredicate:
      while (results < count && is_predicate(operands[results])) ++results;
      if (results < count && is_register(operands[results])) ++results;
      break;
    case Destinations::AllButLast:
      results = count - 1;
      break;
  }
  return results < 0 ? 0 : (results > count ? count : results);
}

/// Bytes a lane moves. Types name the width of atomics, plain numbers that of loads and stores.
int access_bytes(const Instruction& instruction) {
  if (instruction.opcode == Opcode::LDSM || instruction.opcode == Opcode::STSM) {
    return instruction.has(Modifier::B4) ? 16 : instruction.has(Modifier::B2) ? 8 : 4;
  }
  if (instruction.opcode == Opcode::SYNCS) return 8;
  for (const Modifier quad : {Modifier::B128, Modifier::F32x4, Modifier::F16x8, Modifier::BF16x8}) {
    if (instruction.has(quad)) return 16;
  }
  if (instruction.has(Modifier::B96)) return 12;
  for (const Modifier wide : {Modifier::B64, Modifier::U64, Modifier::S64, Modifier::F64, Modifier::F32x2,
                              Modifier::F16x4, Modifier::BF16x4}) {
    if (instruction.has(wide)) return 8;
  }
  if (instruction.has(Modifier::U8) || instruction.has(Modifier::S8) || instruction.has(Modifier::B8)) return 1;
  for (const Modifier half : {Modifier::U16, Modifier::S16, Modifier::B16}) {
    if (instruction.has(half)) return 2;
  }
  return 4;
}

/// Whose size is not a lane's: tensor copies and barrier objects state it elsewhere.
bool has_access_bytes(Opcode opcode) {
  switch (opcode) {
    case Opcode::UTMALDG:
    case Opcode::UTMASTG:
    case Opcode::UTMAREDG:
    case Opcode::UBLKCP:
    case Opcode::UBLKRED:
      return false;
    default:
      return true;
  }
}

}  // namespace

const OpcodeTraits& traits(Opcode opcode) {
  static const auto table = make_traits();
  return table[static_cast<std::size_t>(opcode)];
}

Opcode native_opcode(std::uint16_t encoding, Opcode written) {
  static const auto table = make_encodings();
  const EncodingNames& names = table[encoding & 0x1ff];
  return names.first == Opcode::Unknown || names.second == written ? written : names.first;
}

void classify(Instruction& instruction, int sm) {
  instruction.native = native_opcode(instruction.encoding, instruction.opcode);
  const OpcodeTraits& native = traits(instruction.native);
  const bool hfma2_mma = (instruction.encoding & 0x1ff) == 0x035;
  // The counter of tensor instructions names HFMA2.MMA among them (sm__inst_executed_pipe_tensor_op_hmma_type_hfma2).
  instruction.pipe = hfma2_mma ? Pipe::Tensor : sm >= 90 ? native.pipe90 : native.pipe80;
  // A half made a float goes to the heavy half alone, one every 2 cycles (kernels/micro opcodes).
  const bool widens_half = instruction.native == Opcode::HADD2 && instruction.has(Modifier::F32);
  if (sm >= 90 && widens_half) instruction.pipe = Pipe::FmaHeavy;
  instruction.operation = native.operation;
  // A BAR that takes its barrier from a register releases a scoreboard when it has read it.
  const bool reads_barrier = instruction.native == Opcode::BAR && instruction.operands[0].kind == OperandKind::Register;
  instruction.variable_latency =
      native.latency == Latency::Variable || (native.latency == Latency::Variable80 && sm < 90) || reads_barrier;

  const OpcodeTraits& written = traits(instruction.opcode);
  instruction.space = written.space;
  instruction.memory = written.memory;
  const bool moves = written.memory != MemoryKind::None && has_access_bytes(instruction.opcode);
  instruction.access_bytes = static_cast<std::uint8_t>(moves ? access_bytes(instruction) : 0);
  instruction.destination_count = static_cast<std::uint8_t>(count_destinations(instruction, written.destinations));
}

}  // namespace forewarp
