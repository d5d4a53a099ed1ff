#include <algorithm>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "emulation/emulation.h"
#include "emulation/machine/exec.h"
#include "emulation/ops/handlers.h"
#include "emulation/ops/op.h"
#include "program/analysis.h"
#include "program/slice.h"
#include "program/traits.h"

namespace forewarp::emulation {
namespace {

// Vectors of registers reach past the index an operand names: LDS.128 R4 writes R4..R7, at least so far.
constexpr std::uint32_t kVectorReach = 4;
// Uniform registers too: descriptors of matrices take four, a copy's place, barrier and coordinates seven.
constexpr int kUniformReach = 7;
// Rows kept for RZ as a source and as a destination, for as many registers as one instruction reads or writes.
constexpr std::uint32_t kSpareRows = 16;

struct Extent {
  std::uint32_t registers = 0, uniforms = 0;
  void see(std::uint8_t index, std::uint8_t none, std::uint32_t& most, int width = 0) const {
    if (index != none) most = std::max(most, index + std::max(kVectorReach, static_cast<std::uint32_t>(width)));
  }
};

Extent registers_used(const Kernel& kernel) {
  Extent e;
  for (const Instruction& in : kernel.instructions) {
    for (int i = 0; i < in.operand_count; ++i) {
      const Operand& o = in.operands[static_cast<std::size_t>(i)];
      const bool address = o.kind == OperandKind::Memory || o.kind == OperandKind::Constant;
      if (o.kind == OperandKind::Register || address) e.see(o.index, kRegisterZero, e.registers, operand_width(in, i));
      if (o.kind == OperandKind::UniformRegister) e.see(o.index, kUniformRegisterZero, e.uniforms);
      if (o.kind == OperandKind::Descriptor) e.see(o.index, kUniformRegisterZero, e.uniforms, kUniformReach);
      if (address) e.see(o.uniform, kUniformRegisterZero, e.uniforms, kUniformReach);
    }
  }
  return e;
}

void read_guard(const Instruction& in, Op& op) {
  op.guard = static_cast<std::uint8_t>(in.guard + (in.guard_uniform ? kUniformPredicates : 0));
  op.guard_flip = in.guard_negated ? ~LaneMask{0} : 0;
}

using Emulate = bool (*)(const OperandReader&, Op&);
constexpr Emulate kEmulate[] = {
#define FW_OPCODE(name, codes, where, operation, results, memory, flow, slice, symbolic, width, counted, emulated, \
                  timed)                                                                                           \
  emulate_##emulated,
#include "program/opcodes.def"
#undef FW_OPCODE
};

bool is_refused(Opcode opcode) { return kEmulate[static_cast<std::size_t>(opcode)] == emulate_refused; }

bool decode_one(const OperandReader& r, Op& op) {
  const Opcode opcode = r.instruction().opcode;
  op.uniform = traits(opcode).operation == OperationClass::Uniform;
  return kEmulate[static_cast<std::size_t>(opcode)](r, op);
}

struct Missing {
  int count = 0;
  std::size_t first = 0;
};

std::string list_missing(const Kernel& kernel, const std::map<std::string, Missing>& missing) {
  std::string list;
  for (const auto& [name, m] : missing) {
    char place[64];
    std::snprintf(place, sizeof place, ": %d, first at 0x%zx", m.count, m.first * 16);
    list += "\n  " + name + place;
    if (m.first < kernel.text.size()) list += " `" + kernel.text[m.first] + "`";
  }
  return list;
}

}  // namespace

std::uint32_t ConstantBanks::word(int bank, std::uint32_t offset) const {
  const std::vector<std::uint8_t>* bytes = find(bank);
  std::uint32_t value = 0;
  for (std::uint32_t i = 0; bytes != nullptr && i < 4 && offset + i < bytes->size(); ++i) {
    value |= static_cast<std::uint32_t>((*bytes)[offset + i]) << (8 * i);
  }
  return value;
}

const std::vector<std::uint8_t>* ConstantBanks::find(int bank) const {
  for (const ConstantBank& b : banks) {
    if (b.bank == bank) return &b.bytes;
  }
  return nullptr;
}

OperandReader::OperandReader(const Instruction& in, const ConstantBanks& constants, std::vector<Row>& literals,
                             const Layout& layout)
    : in_(in), constants_(constants), literals_(literals), layout_(layout) {
  for (int i = 0; i < in.operand_count; ++i) {
    sort_operand(in.operands[static_cast<std::size_t>(i)], i < in.destination_count);
  }
}

void OperandReader::sort_operand(const Operand& o, bool destination) {
  switch (o.kind) {
    case OperandKind::Predicate:
    case OperandKind::UniformPredicate:
      (destination ? destination_predicates_ : predicates_).push_back(&o);
      break;
    case OperandKind::Register:
    case OperandKind::UniformRegister:
      if (destination && destination_ == nullptr) {
        destination_ = &o;
      } else {
        values_.push_back(&o);
      }
      break;
    case OperandKind::Immediate:
    case OperandKind::Constant:
      values_.push_back(&o);
      break;
    case OperandKind::Memory:
      (memory_ == nullptr ? memory_ : second_memory_) = &o;
      break;
    case OperandKind::Barrier:
      barrier_ = &o;
      break;
    case OperandKind::Special:
      special_ = &o;
      break;
    case OperandKind::Target:
      target_ = &o;
      break;
    case OperandKind::Descriptor:
      descriptor_ = &o;
      break;
    default:
      break;
  }
}

Source OperandReader::literal_source(std::uint32_t low, std::uint32_t high) const {
  // Rows are shared: a pair is looked for as a pair, since 64-bit operands read on into the next row.
  for (std::size_t i = 0; i + 1 < literals_.size(); i += 2) {
    if (literals_[i].lane[0] == low && literals_[i + 1].lane[0] == high) {
      return Source{kLiteralBit | static_cast<std::uint32_t>(i * kRowBytes), ~0u, 0, 0};
    }
  }
  const auto at = static_cast<std::uint32_t>(literals_.size() * kRowBytes);
  Row row;
  row.lane.fill(low);
  literals_.push_back(row);
  row.lane.fill(high);
  literals_.push_back(row);
  return Source{kLiteralBit | at, ~0u, 0, 0};
}

std::uint32_t OperandReader::register_row(const Operand& o) const {
  if (o.kind == OperandKind::UniformRegister) {
    return o.index == kUniformRegisterZero ? layout_.zero_row : layout_.uniform_row + o.index * kRowBytes;
  }
  return o.index == kRegisterZero ? layout_.zero_row : o.index * kRowBytes;
}

const Operand& OperandReader::value(std::size_t i) const {
  static const Operand zero{.kind = OperandKind::Register, .index = kRegisterZero};
  return i < values_.size() ? *values_[i] : zero;
}

bool OperandReader::literal(std::size_t i, std::uint32_t& bits) const {
  if (i >= values_.size()) return false;
  const Operand& o = *values_[i];
  if (o.kind == OperandKind::Immediate) {
    bits = o.immediate;
    return true;
  }
  if (o.kind == OperandKind::Constant && o.index == kRegisterZero && o.uniform == kUniformRegisterZero) {
    bits = constants_.word(o.bank, static_cast<std::uint32_t>(o.offset));
    return true;
  }
  const bool zero = (o.kind == OperandKind::Register && o.index == kRegisterZero) ||
                    (o.kind == OperandKind::UniformRegister && o.index == kUniformRegisterZero);
  if (zero) bits = 0;
  if (zero) return true;
  return false;
}

std::uint32_t OperandReader::immediate(std::size_t i) const {
  std::uint32_t bits = 0;
  return literal(i, bits) ? bits : 0;
}

Source OperandReader::raw_source(const Operand& o, Kind kind) const {
  if (o.kind == OperandKind::Constant) {
    const auto offset = static_cast<std::uint32_t>(o.offset);
    return literal_source(constants_.word(o.bank, offset), constants_.word(o.bank, offset + 4));
  }
  if (o.kind == OperandKind::Immediate) {
    if (kind == Kind::Double) return literal_source(0, o.immediate);
    // A 64-bit integer operand extends its sign, which matters for IMAD.WIDE with an immediate summand.
    const bool extend = kind == Kind::Integer64 && (o.immediate >> 31) != 0;
    return literal_source(o.immediate, extend ? ~0u : 0u);
  }
  return Source{register_row(o), ~0u, 0, 0};
}

Source OperandReader::source(std::size_t i, Kind kind) const {
  if (i >= values_.size()) return Source{layout_.zero_row, ~0u, 0, 0};
  const Operand& o = *values_[i];
  Source s = raw_source(o, kind);
  switch (kind) {
    case Kind::Integer:
    case Kind::Integer64:
      if (o.negate) s.flip = ~0u, s.add = 1;
      if (o.invert) s.flip = ~0u, s.add = 0;
      break;
    case Kind::Float:
    case Kind::Double:
      if (o.absolute) s.keep = 0x7fffffffu;
      if (o.negate) s.flip = 0x80000000u;
      break;
    case Kind::Packed:
      if (o.absolute) s.keep = 0x7fff7fffu;
      if (o.negate) s.flip = 0x80008000u;
      if (o.half == HalfSelect::Turned) s.flip ^= 0x80000000u;
      break;
  }
  return s;
}

PredicateSource OperandReader::predicate(std::size_t i) const {
  if (i >= predicates_.size()) return PredicateSource{};
  const Operand& o = *predicates_[i];
  const int base = o.kind == OperandKind::UniformPredicate ? kUniformPredicates : 0;
  return PredicateSource{static_cast<std::uint8_t>(o.index + base), o.invert ? ~LaneMask{0} : 0};
}

std::uint32_t OperandReader::destination_row() const {
  if (destination_ == nullptr) return layout_.discard_row;
  const bool uniform = destination_->kind == OperandKind::UniformRegister;
  const bool none = destination_->index == (uniform ? kUniformRegisterZero : kRegisterZero);
  return none ? layout_.discard_row : register_row(*destination_);
}

std::uint8_t OperandReader::destination_predicate(std::size_t i) const {
  if (i >= destination_predicates_.size()) return kDiscardedPredicate;
  const Operand& o = *destination_predicates_[i];
  if (o.index == kPredicateTrue) return kDiscardedPredicate;
  return static_cast<std::uint8_t>(o.index + (o.kind == OperandKind::UniformPredicate ? kUniformPredicates : 0));
}

Source OperandReader::index_source(const Operand& memory) const {
  return Source{memory.index == kRegisterZero ? layout_.zero_row : memory.index * kRowBytes, ~0u, 0, 0};
}

Source OperandReader::uniform_source(std::uint8_t uniform) const {
  return Source{uniform == kUniformRegisterZero ? layout_.zero_row : layout_.uniform_row + uniform * kRowBytes, ~0u, 0,
                0};
}

bool emulate_counted(const OperandReader&, Op&) { return false; }
bool emulate_refused(const OperandReader&, Op&) { return false; }

std::uint8_t comparison_bits(const Instruction& in) {
  struct Name {
    Modifier modifier;
    int bits;
  };
  static constexpr Name kNames[] = {{Modifier::F, 0},
                                    {Modifier::LT, kLess},
                                    {Modifier::EQ, kEqual},
                                    {Modifier::LE, kLess | kEqual},
                                    {Modifier::GT, kGreater},
                                    {Modifier::NE, kLess | kGreater},
                                    {Modifier::GE, kGreater | kEqual},
                                    {Modifier::NUM, kLess | kEqual | kGreater},
                                    {Modifier::Nan, kUnordered},
                                    {Modifier::LTU, kLess | kUnordered},
                                    {Modifier::EQU, kEqual | kUnordered},
                                    {Modifier::LEU, kLess | kEqual | kUnordered},
                                    {Modifier::GTU, kGreater | kUnordered},
                                    {Modifier::NEU, kLess | kGreater | kUnordered},
                                    {Modifier::GEU, kGreater | kEqual | kUnordered},
                                    {Modifier::T, kLess | kEqual | kGreater | kUnordered}};
  for (const Name& n : kNames) {
    if (in.has(n.modifier)) return static_cast<std::uint8_t>(n.bits);
  }
  return 0;
}

std::uint8_t combination(const Instruction& in) { return in.has(Modifier::OR) ? 1 : in.has(Modifier::XOR) ? 2 : 0; }

DecodedKernel decode_kernel(const Kernel& kernel, const ConstantBanks& constants, UnknownInstruction unknown,
                            const std::vector<std::uint8_t>* needed) {
  DecodedKernel decoded;
  decoded.kernel = &kernel;
  const Extent extent = registers_used(kernel);
  decoded.zero_row = extent.registers * kRowBytes;
  decoded.discard_row = decoded.zero_row + kSpareRows * kRowBytes;
  decoded.uniform_row = decoded.discard_row + kSpareRows * kRowBytes;
  decoded.rows = extent.registers + 2 * kSpareRows + extent.uniforms;
  const OperandReader::Layout layout{decoded.zero_row, decoded.discard_row, decoded.uniform_row};

  std::map<std::string, Missing> ignored;
  decoded.ops.reserve(kernel.instructions.size());
  for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
    const Instruction& in = kernel.instructions[i];
    Op op;
    read_guard(in, op);
    const OperandReader reader(in, constants, decoded.literals, layout);
    op.dst = reader.destination_row();
    op.pdst = {reader.destination_predicate(0), reader.destination_predicate(1)};
    op.kind = OpKind::Plain;
    const bool unclear = !in.understood && unknown == UnknownInstruction::Reject;
    if (unclear || !decode_one(reader, op)) {
      op = Op{};
      read_guard(in, op);
      const bool value_alone = in.memory == MemoryKind::None && !is_refused(in.opcode);
      const bool unneeded = needed != nullptr && (*needed)[i] == 0 && value_alone && !unclear;
      if (!unneeded) {
        if (unknown == UnknownInstruction::Reject) op.kind = OpKind::Refused;
        if (unknown == UnknownInstruction::Ignore) {
          Missing& m = ignored[mnemonic(in)];
          if (m.count++ == 0) m.first = i;
        }
      }
    }
    decoded.ops.push_back(op);
  }
  if (decoded.literals.empty()) decoded.literals.resize(2);
  if (!ignored.empty())
    decoded.warnings.push_back("kernel " + kernel.demangled +
                               " uses instructions that are not emulated (--assume-opcodes): they are counted and do "
                               "nothing; addresses and ways that depend on them may be wrong:" +
                               list_missing(kernel, ignored));
  return decoded;
}

}  // namespace forewarp::emulation

namespace forewarp {

Emulated emulated(Opcode opcode) {
  using namespace emulation;
  const Emulate emulate = kEmulate[static_cast<std::size_t>(opcode)];
  if (emulate == emulate_refused) return Emulated::Refused;
  if (emulate == emulate_counted) return Emulated::Counted;
  return emulate == emulate_nothing ? Emulated::NoEffect : Emulated::Values;
}

bool not_computed(const Instruction& in) {
  const Emulated how = emulated(in.opcode);
  return how == Emulated::Counted || how == Emulated::Refused;
}

std::vector<std::uint32_t> stopping_instructions(const Kernel& kernel) {
  using namespace emulation;
  const ProgramSlice slice = control_slice(kernel, {.hard = not_computed, .stores = Stores::Left});
  const DecodedKernel decoded =
      decode_kernel(kernel, ConstantBanks{kernel.constants}, UnknownInstruction::Reject, &slice.needed);
  std::vector<std::uint32_t> stops;
  for (std::uint32_t i = 0; i < decoded.ops.size(); ++i)
    if (decoded.ops[i].kind == OpKind::Refused) stops.push_back(i);
  return stops;
}

std::string mnemonic(const Instruction& in) {
  std::string text = opcode_text(in.opcode);
  for (int m = 0; m < in.modifier_count; ++m)
    text += std::string(".") + modifier_text(in.modifier_list[static_cast<std::size_t>(m)]);
  return text;
}

}  // namespace forewarp
