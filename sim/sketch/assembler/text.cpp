#include <cstdio>

#include "sketch/assembler/names.h"

namespace forewarp::sketch {
namespace {

std::string hex(std::uint32_t v) {
  char t[16];
  std::snprintf(t, sizeof t, "0x%x", v);
  return t;
}

std::string named(const char* prefix, int index, int none, const char* zero) {
  return index == none ? zero : prefix + std::to_string(index);
}

std::string signed_offset(int offset) {
  return offset < 0 ? "-" + hex(static_cast<std::uint32_t>(-offset)) : hex(static_cast<std::uint32_t>(offset));
}

const char* special_text(SpecialRegister s) {
  switch (s) {
    case SpecialRegister::TidX:
      return "SR_TID.X";
    case SpecialRegister::TidY:
      return "SR_TID.Y";
    case SpecialRegister::CtaIdX:
      return "SR_CTAID.X";
    case SpecialRegister::CtaIdY:
      return "SR_CTAID.Y";
    case SpecialRegister::CtaIdZ:
      return "SR_CTAID.Z";
    case SpecialRegister::LaneId:
      return "SR_LANEID";
    case SpecialRegister::CgaCtaId:
      return "SR_CgaCtaId";
    case SpecialRegister::Zero:
      return "SRZ";
    default:
      return "SR";
  }
}

std::string address(const Operand& o) {
  std::string inside;
  const auto join = [&](const std::string& part) { inside += (inside.empty() ? "" : "+") + part; };
  if (o.index != kRegisterZero) join("R" + std::to_string(o.index) + (o.wide ? ".64" : ""));
  if (o.uniform != kUniformRegisterZero) join("UR" + std::to_string(o.uniform));
  if (o.offset != 0 || inside.empty()) join(signed_offset(o.offset));
  return "[" + inside + "]";
}

std::string text_of(const Operand& o) {
  std::string t;
  switch (o.kind) {
    case OperandKind::Register:
      t = named("R", o.index, kRegisterZero, "RZ");
      break;
    case OperandKind::UniformRegister:
      t = named("UR", o.index, kUniformRegisterZero, "URZ");
      break;
    case OperandKind::Predicate:
      t = named("P", o.index, kPredicateTrue, "PT");
      break;
    case OperandKind::UniformPredicate:
      t = named("UP", o.index, kPredicateTrue, "UPT");
      break;
    case OperandKind::Immediate:
      t = hex(o.immediate);
      break;
    case OperandKind::Constant:
      t = "c[" + hex(o.bank) + "]" + address(o);
      break;
    case OperandKind::Memory:
      t = (o.descriptor != kUniformRegisterZero ? "desc[UR" + std::to_string(o.descriptor) + "]" : "") + address(o);
      break;
    case OperandKind::Barrier:
      t = "B" + std::to_string(o.index);
      break;
    case OperandKind::Descriptor:
      t = "gdesc[UR" + std::to_string(o.index) + "]";
      break;
    case OperandKind::Scoreboard:
      t = "SB" + std::to_string(o.index);
      break;
    case OperandKind::Special:
      t = special_text(o.special);
      break;
    case OperandKind::Target:
      t = hex(o.immediate * 16);
      break;
    default:
      break;
  }
  if (o.half == HalfSelect::H0) t += ".H0_H0";
  if (o.half == HalfSelect::H1) t += ".H1_H1";
  if (o.reuse) t += ".reuse";
  if (o.absolute) t = "|" + t + "|";
  if (o.invert) t = (o.kind == OperandKind::Predicate ? "!" : "~") + t;
  if (o.negate) t = "-" + t;
  return t;
}

}  // namespace

std::string text_of(const Instruction& in) {
  std::string t;
  const auto suffixes = [&](const Operand& o) {
    std::string s;
    for (const Modifier m : {Modifier::tnspA, Modifier::tnspB})
      if (o.kind == OperandKind::Descriptor && in.has(m)) s += std::string(".") + modifier_text(m);
    return s;
  };
  const bool never = in.guard == kPredicateTrue && in.guard_negated;
  if (never) t = "@!PT ";
  if (in.guard != kPredicateTrue) t = std::string(in.guard_negated ? "@!P" : "@P") + std::to_string(in.guard) + " ";
  t += opcode_text(in.opcode);
  if (in.has(Modifier::SP)) t += ".SP";
  const std::string by = multiplies_by_group(in) ? "x" : "";
  if (in.shape.m > 0)
    t += "." + std::to_string(in.shape.m) + by + std::to_string(in.shape.n) + by + std::to_string(in.shape.k);
  for (int i = 0; i < in.modifier_count; ++i)
    if (const Modifier m = in.modifier_list[static_cast<std::size_t>(i)]; m != Modifier::SP)
      t += std::string(".") + modifier_text(m);
  for (int i = 0; i < in.operand_count; ++i)
    t += (i == 0 ? " " : ", ") + text_of(in.operands[static_cast<std::size_t>(i)]) +
         suffixes(in.operands[static_cast<std::size_t>(i)]);
  return t;
}

}  // namespace forewarp::sketch
