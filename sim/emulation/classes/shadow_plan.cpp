// Chooses how tags pass through each instruction, and which rows it reads and writes.
#include "emulation/classes/shadow.h"
#include "emulation/ops/handlers.h"
#include "program/analysis.h"
#include "program/traits.h"

namespace forewarp::emulation {
namespace {

bool is_unsigned(const Instruction& in) { return in.has(Modifier::U32) || in.has(Modifier::U64); }

Rule shift_rule(const Op& op) {
  if (op.carry_out) return (op.variant & kShiftLeft) != 0 ? Rule::ShiftLeft : Rule::ShiftRight;
  const bool fixed_amount = (op.b.row & kLiteralBit) != 0;
  const bool left_high = (op.variant & kShiftLeft) != 0 && (op.variant & kShiftHigh) != 0;
  return left_high && fixed_amount ? Rule::ShiftLeftHigh : Rule::Generic;
}

Rule special_register_rule(const Instruction& in, ShadowPlan& plan) {
  for (int i = 0; i < in.operand_count; ++i) {
    switch (in.operands[static_cast<std::size_t>(i)].special) {
      case SpecialRegister::CtaIdX:
        plan.dimension = 0;
        return Rule::BlockIndex;
      case SpecialRegister::CtaIdY:
        plan.dimension = 1;
        return Rule::BlockIndex;
      case SpecialRegister::CtaIdZ:
        plan.dimension = 2;
        return Rule::BlockIndex;
      default:
        break;
    }
  }
  return Rule::Clear;
}

Rule multiply_rule(const Instruction& in) {
  if (in.has(Modifier::WIDE)) return in.has(Modifier::X) ? Rule::Generic : Rule::MultiplyWide;
  if (in.has(Modifier::HI)) return in.has(Modifier::X) ? Rule::Generic : Rule::MultiplyHigh;
  return Rule::Multiply;
}

Rule choose_rule(const Instruction& in, const Op& op, ShadowPlan& plan) {
  if (op.run == move_rows1 || op.run == move_rows2 || op.run == move_rows4) return Rule::Copy;
  switch (traits(in.opcode).symbolic) {
    case Symbolic::Opaque:
      if (in.opcode == Opcode::I2FP && in.has(Modifier::U32)) return Rule::ToFloat;
      if (in.opcode == Opcode::FMUL && !in.has(Modifier::SAT)) return Rule::FloatProduct;
      if (in.opcode == Opcode::F2I && in.has(Modifier::U32) && in.has(Modifier::TRUNC)) return Rule::FloatToInteger;
      return Rule::Generic;
    case Symbolic::Sum:
      return in.has(Modifier::B16x2) || in.has(Modifier::B64) ? Rule::Generic : Rule::Sum;
    case Symbolic::Product:
      return multiply_rule(in);
    case Symbolic::Lea:
      if (in.has(Modifier::HI)) return Rule::LeaHigh;
      return in.has(Modifier::X) ? Rule::Generic : Rule::LeaLow;
    case Symbolic::Shift:
      return shift_rule(op);
    case Symbolic::Logic:
      return Rule::Logic;
    case Symbolic::Permute:
      return Rule::Permute;
    case Symbolic::Select:
      return Rule::Select;
    case Symbolic::Compare:
      return in.has(Modifier::EX) ? Rule::CompareExtended : Rule::Compare;
    case Symbolic::MinMax:
      return Rule::MinMax;
    case Symbolic::AddMinMax:
      return in.has(Modifier::RELU) ? Rule::Generic : Rule::AddMinMax;
    case Symbolic::Absolute:
      return Rule::Absolute;
    case Symbolic::Shuffle:
      return Rule::Shuffle;
    case Symbolic::ToUniform:
      return Rule::ToUniform;
    case Symbolic::SpecialRegister:
      return special_register_rule(in, plan);
  }
  return Rule::Generic;
}

void add_rows(const SpanList& spans, std::uint32_t base, std::vector<std::uint32_t>& rows) {
  for (const RegisterSpan& span : spans) {
    for (std::uint32_t i = 0; i < span.count; ++i) rows.push_back(base + span.first + i);
  }
}

void add_slots(std::uint8_t mask, int base, std::vector<std::uint8_t>& slots) {
  for (int p = 0; p < kPredicateTrue; ++p) {
    if ((mask >> p & 1) != 0) slots.push_back(static_cast<std::uint8_t>(base + p));
  }
}

/// All predicates that an instruction reads, but for the one that a comparison is joined with: that may not matter.
std::uint32_t asked_slots(const Op& op, const ShadowPlan& plan) {
  const bool joins = plan.rule == Rule::Compare || plan.rule == Rule::CompareExtended;
  std::uint32_t slots = 0;
  for (const std::uint8_t slot : plan.predicate_reads) slots |= 1u << slot;
  for (const PredicateSource& p : op.p) slots |= 1u << p.slot;
  if (joins) slots &= ~(1u << op.p[0].slot);
  if (joins) slots |= 1u << op.p[1].slot;
  return slots | 1u << op.guard;
}

}  // namespace

std::vector<ShadowPlan> plan_shadow(const DecodedKernel& kernel) {
  std::vector<ShadowPlan> plans;
  plans.reserve(kernel.ops.size());
  const std::uint32_t uniforms = kernel.uniform_row / kRowBytes;
  for (std::size_t i = 0; i < kernel.ops.size(); ++i) {
    const Instruction& in = kernel.kernel->instructions[i];
    ShadowPlan plan;
    plan.rule = choose_rule(in, kernel.ops[i], plan);
    plan.is_unsigned = is_unsigned(in);
    plan.carry_in = in.has(Modifier::X);
    plan.is_lazy = plan.rule == Rule::ShiftRight || plan.rule == Rule::LeaHigh || plan.rule == Rule::Sum;
    plan.read_only = in.has(Modifier::CONSTANT);
    const Effects effect = effects(in);
    for (const LocationSet* set : {&effect.value_reads, &effect.address_reads}) {
      add_rows(set->registers, 0, plan.reads);
      add_rows(set->uniforms, uniforms, plan.reads);
      add_slots(set->predicates, 0, plan.predicate_reads);
      add_slots(set->uniform_predicates, kUniformPredicates, plan.predicate_reads);
    }
    add_rows(effect.writes.registers, 0, plan.writes);
    add_rows(effect.writes.uniforms, uniforms, plan.writes);
    add_slots(effect.writes.predicates, 0, plan.predicate_writes);
    add_slots(effect.writes.uniform_predicates, kUniformPredicates, plan.predicate_writes);
    plan.asks = asked_slots(kernel.ops[i], plan);
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace forewarp::emulation
