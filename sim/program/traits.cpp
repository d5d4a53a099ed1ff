#include "program/traits.h"

namespace forewarp {
namespace {

/// Space and kind of access, as the rows name them.
struct Addressed {
  MemorySpace space;
  MemoryKind kind;
};

namespace addressed {
constexpr Addressed None{MemorySpace::None, MemoryKind::None};
#define FW_ADDRESSED(space)                                                                 \
  constexpr Addressed space##Load{MemorySpace::space, MemoryKind::Load};                    \
  [[maybe_unused]] constexpr Addressed space##Store{MemorySpace::space, MemoryKind::Store}, \
      space##Atomic{MemorySpace::space, MemoryKind::Atomic},                                \
      space##Reduction{MemorySpace::space, MemoryKind::Reduction},                          \
      space##AsyncCopy{MemorySpace::space, MemoryKind::AsyncCopy};
FW_ADDRESSED(Global)
FW_ADDRESSED(Shared)
FW_ADDRESSED(Local)
FW_ADDRESSED(Generic)
FW_ADDRESSED(Constant)
#undef FW_ADDRESSED
}  // namespace addressed

namespace unit {
#define FW_UNIT(name, pipe80, pipe90, latency, timing, at_barrier) \
  constexpr UnitTraits name{Pipe::pipe80, Pipe::pipe90, Latency::latency, Timing::timing, AtBarrier::at_barrier};
#include "program/units.def"
#undef FW_UNIT
}  // namespace unit

template <class... Code>
constexpr std::array<std::uint16_t, 4> pack_codes(Code... codes) {
  static_assert(sizeof...(codes) <= 4);
  return {static_cast<std::uint16_t>(codes)...};
}
template <class... Code>
constexpr std::uint8_t count_codes(Code...) {
  return sizeof...(Code);
}

constexpr OpcodeTraits kTraits[] = {
#define FW_OPCODE(name, codes, where, operation, results, memory, flow, slice, symbolic, width, counted, emulated, \
                  timed)                                                                                           \
  {pack_codes codes,                                                                                               \
   count_codes codes,                                                                                              \
   unit::where,                                                                                                    \
   OperationClass::operation,                                                                                      \
   Destinations::results,                                                                                          \
   addressed::memory.space,                                                                                        \
   addressed::memory.kind,                                                                                         \
   Flow::flow,                                                                                                     \
   Slice::slice,                                                                                                   \
   Symbolic::symbolic,                                                                                             \
   Width::width,                                                                                                   \
   Counted::counted,                                                                                               \
   Timed::timed},
#include "program/opcodes.def"
#undef FW_OPCODE
};

/// Some encodings carry two names: the RED of sm_80 is the REDG of sm_90.
struct EncodingNames {
  Opcode first = Opcode::Unknown;
  Opcode second = Opcode::Unknown;
};

constexpr std::array<EncodingNames, 512> make_encodings() {
  std::array<EncodingNames, 512> table{};
  for (std::size_t i = 0; i < std::size(kTraits); ++i) {
    for (std::size_t c = 0; c < kTraits[i].code_count; ++c) {
      EncodingNames& names = table[kTraits[i].codes[c]];
      (names.first == Opcode::Unknown ? names.first : names.second) = static_cast<Opcode>(i);
    }
  }
  return table;
}
constexpr std::array<EncodingNames, 512> kEncodings = make_encodings();

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
  const Width width = traits(instruction.opcode).width;
  if (width == Width::MatrixRows) return instruction.has(Modifier::B4) ? 16 : instruction.has(Modifier::B2) ? 8 : 4;
  if (width == Width::BarrierObject) return 8;
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

/// Tensor and bulk copies state their size elsewhere.
bool has_access_bytes(Width width) { return width != Width::TensorCopy && width != Width::BulkCopy; }

}  // namespace

const OpcodeTraits& traits(Opcode opcode) { return kTraits[static_cast<std::size_t>(opcode)]; }

bool multiplies_matrices(Opcode opcode) {
  const Timing timing = traits(opcode).unit.timing;
  return timing == Timing::Matrix || timing == Timing::Product;
}

bool leaves_line(Flow flow) {
  switch (flow) {
    case Flow::Jump:
    case Flow::Indirect:
    case Flow::Call:
    case Flow::Return:
    case Flow::End:
    case Flow::Converge:
    case Flow::WarpSync:
      return true;
    case Flow::Next:
    case Flow::Region:
    case Flow::BarrierMove:
    case Flow::State:
      return false;
  }
  return false;
}

bool is_control(Opcode opcode) { return traits(opcode).flow != Flow::Next; }

bool takes_target(const Instruction& instruction) {
  switch (traits(instruction.opcode).flow) {
    case Flow::Jump:
    case Flow::Indirect:
    case Flow::Call:
    case Flow::Return:
    case Flow::Region:
      return true;
    case Flow::WarpSync:
      return instruction.has(Modifier::COLLECTIVE);
    case Flow::Next:
    case Flow::End:
    case Flow::Converge:
    case Flow::BarrierMove:
    case Flow::State:
      return false;
  }
  return false;
}

bool copies_outward(const Instruction& instruction) {
  const Slice slice = traits(instruction.opcode).slice;
  return slice == Slice::CopyOut || (slice == Slice::CopyStated && instruction.modifier_list[0] == Modifier::G);
}

bool waits_for_phase(const Instruction& instruction) {
  return traits(instruction.opcode).unit.timing == Timing::Phase && instruction.has(Modifier::TRYWAIT);
}

bool is_branch(Opcode opcode) {
  const Flow flow = traits(opcode).flow;
  return flow == Flow::Jump || flow == Flow::Indirect;
}

Opcode native_opcode(std::uint16_t encoding, Opcode written) {
  const EncodingNames& names = kEncodings[encoding & 0x1ff];
  return names.first == Opcode::Unknown || names.second == written ? written : names.first;
}

void classify(Instruction& instruction, int sm) {
  instruction.native = native_opcode(instruction.encoding, instruction.opcode);
  const OpcodeTraits& native = traits(instruction.native);
  const bool hfma2_mma = (instruction.encoding & 0x1ff) == 0x035;
  // The counter of tensor instructions names HFMA2.MMA among them (sm__inst_executed_pipe_tensor_op_hmma_type_hfma2).
  instruction.pipe = hfma2_mma ? Pipe::Tensor : sm >= 90 ? native.unit.pipe90 : native.unit.pipe80;
  // A half made a float goes to the heavy half alone, one every 2 cycles (kernels/micro opcodes).
  const bool widens_half = instruction.native == Opcode::HADD2 && instruction.has(Modifier::F32);
  if (sm >= 90 && widens_half) instruction.pipe = Pipe::FmaHeavy;
  instruction.operation = native.operation;
  // A BAR that takes its barrier from a register releases a scoreboard when it has read it.
  const bool reads_barrier =
      native.unit.timing == Timing::Barrier && instruction.operands[0].kind == OperandKind::Register;
  instruction.variable_latency = native.unit.latency == Latency::Variable ||
                                 (native.unit.latency == Latency::Variable80 && sm < 90) || reads_barrier;

  const OpcodeTraits& written = traits(instruction.opcode);
  instruction.space = written.space;
  instruction.memory = written.memory;
  const bool moves = written.memory != MemoryKind::None && has_access_bytes(written.width);
  instruction.access_bytes = static_cast<std::uint8_t>(moves ? access_bytes(instruction) : 0);
  instruction.destination_count = static_cast<std::uint8_t>(count_destinations(instruction, written.destinations));
}

}  // namespace forewarp
