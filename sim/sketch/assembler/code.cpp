#include "sketch/assembler/code.h"

#include <bit>

#include "base/error.h"
#include "program/decode.h"
#include "program/traits.h"

namespace forewarp::sketch {
namespace {

Operand of_kind(OperandKind kind) {
  Operand o;
  o.kind = kind;
  return o;
}

OperandKind kind_of(File file) {
  switch (file) {
    case File::Vector:
      return OperandKind::Register;
    case File::Uniform:
      return OperandKind::UniformRegister;
    case File::Predicate:
      return OperandKind::Predicate;
  }
  return OperandKind::None;
}

std::uint8_t none_of(File file) {
  switch (file) {
    case File::Vector:
      return kRegisterZero;
    case File::Uniform:
      return kUniformRegisterZero;
    case File::Predicate:
      return kPredicateTrue;
  }
  return 0;
}

// Where more predicates live at once than there are, fewer are begun before others end, and at last they are made
// closer to their readers.
constexpr int kFewUniforms = 6;  ///< of up to four registers
constexpr int kFarPredicate = 13, kNearPredicate = 5;
constexpr ScheduleLimits kScheduleLimits[] = {{kFarPredicate},
                                              {kFarPredicate, 6},
                                              {kFarPredicate, 5},
                                              {kFarPredicate, 4},
                                              {kFarPredicate, 3},
                                              {kNearPredicate, 3},
                                              {1, 3},
                                              {1, 2}};

Arg bare(OperandKind kind) {
  Arg a{kRZ};
  a.operand = of_kind(kind);
  return a;
}

}  // namespace

Arg::Arg(Value v) : operand(of_kind(kind_of(v.file))), value(v) {
  operand.index = v.id < 0 ? none_of(v.file) : std::uint8_t{0};
}
Arg::Arg(Label to) : operand(of_kind(OperandKind::Target)), label(to) {}

Arg imm(std::uint32_t bits) {
  Arg a = bare(OperandKind::Immediate);
  a.operand.immediate = bits;
  return a;
}
Arg imm(int number) { return imm(static_cast<std::uint32_t>(number)); }
Arg imm(float number) { return imm(std::bit_cast<std::uint32_t>(number)); }

Arg operator-(const Value& v) {
  Arg a{v};
  a.operand.negate = true;
  return a;
}
Arg operator!(const Value& predicate) {
  Arg a{predicate};
  a.operand.invert = true;
  return a;
}
Arg absolute(const Value& v) {
  Arg a{v};
  a.operand.absolute = true;
  return a;
}

Arg constant(int offset) {
  Arg a = bare(OperandKind::Constant);
  a.operand.index = kRegisterZero;
  a.operand.offset = offset;
  return a;
}
Arg special(SpecialRegister r) {
  Arg a = bare(OperandKind::Special);
  a.operand.special = r;
  return a;
}
Arg scoreboard(int index) {
  Arg a = bare(OperandKind::Scoreboard);
  a.operand.index = static_cast<std::uint8_t>(index);
  return a;
}
Arg convergence(int index) {
  Arg a = bare(OperandKind::Barrier);
  a.operand.index = static_cast<std::uint8_t>(index);
  return a;
}
Arg shared(Value base, int offset, Value uniform) {
  Arg a = bare(OperandKind::Memory);
  a.operand.index = base.id < 0 ? kRegisterZero : 0;
  a.value = base;
  a.uniform = uniform;
  a.operand.offset = offset;
  return a;
}
Arg global(Value base, int offset, Value descriptor) {
  Arg a = shared(base, offset);
  a.operand.wide = true;
  a.descriptor = descriptor;
  return a;
}
Arg factor_description(Value four) {
  Arg a{four};
  a.operand.kind = OperandKind::Descriptor;
  return a;
}
Arg uniform_true() {
  Arg a = bare(OperandKind::UniformPredicate);
  a.operand.index = kPredicateTrue;
  return a;
}
Arg half(Value v, int which) {
  Arg a{v};
  a.operand.half = which == 0 ? HalfSelect::H0 : HalfSelect::H1;
  return a;
}

Line& Line::when(Value predicate, bool negated) {
  guard = predicate;
  instruction.guard_negated = negated;
  return *this;
}

Value Code::add(ValueSpec spec) {
  values_.push_back(spec);
  return {static_cast<int>(values_.size()) - 1, 0, spec.file};
}

Line& Code::emit(std::string_view mnemonic, std::initializer_list<Arg> operands) {
  Line line;
  Instruction& in = line.instruction;
  FW_CHECK(read_mnemonic(mnemonic, in), std::string(mnemonic));
  FW_CHECK(operands.size() <= Instruction::kMaxOperands, std::string(mnemonic));
  for (const Arg& a : operands) {
    line.names[in.operand_count] = {a.value, a.uniform, a.descriptor};
    in.operands[in.operand_count++] = a.operand;
    if (a.label.id >= 0) line.target = a.label;
  }
  const OpcodeTraits& t = traits(in.opcode);
  in.encoding = t.code_count > 0 ? t.codes[0] : 0;
  classify(in, sm_);
  blocks_.back().lines.push_back(line);
  return blocks_.back().lines.back();
}

void Code::place(Label label) {
  if (!blocks_.empty() && blocks_.back().lines.empty() && blocks_.back().label.id < 0) {
    blocks_.back().label = label;
    return;
  }
  blocks_.push_back({label, {}});
}

void Code::branch(Label to, Value guard, bool negated) {
  emit("BRA", {to}).when(guard, negated);
  blocks_.push_back({});
}

void Code::exit(Value guard, bool negated) {
  emit("EXIT").when(guard, negated);
  blocks_.push_back({});
}

void Code::diverge(Label meet, int barrier) { emit("BSSY", {convergence(barrier), meet}); }

void Code::converge(Label meet, int barrier) {
  place(meet);
  emit("BSYNC", {convergence(barrier)});
  blocks_.push_back({});
}

Placement assemble(Code& code, const GpuModel& model, Kernel& kernel) {
  Placement places;
  const std::vector<Code::Block> written = code.blocks();
  const auto arrange = [&](const ScheduleLimits& limits) {
    code.blocks() = written;
    schedule(code, model, limits);
    places = place_values(code, model, static_cast<int>(kernel.max_threads));
  };
  for (ScheduleLimits limits : kScheduleLimits) {
    arrange(limits);
    if (places.uniforms > kUniformRegisterZero) {
      limits.most_uniforms = kFewUniforms;
      arrange(limits);
    }
    if (places.predicates <= kPredicateTrue) break;
  }
  if (places.registers > kRegisterZero || places.predicates > kPredicateTrue || places.uniforms > kUniformRegisterZero)
    return places;
  kernel.instructions = finish(code, places, model);
  kernel.registers = places.registers;
  kernel.functions = {{kernel.name, 0, static_cast<std::uint32_t>(kernel.instructions.size())}};
  kernel.text.clear();
  for (const Instruction& in : kernel.instructions) kernel.text.push_back(text_of(in));
  return places;
}

}  // namespace forewarp::sketch
