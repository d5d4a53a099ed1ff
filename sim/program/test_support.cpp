#include "program/test_support.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "program/analysis.h"

namespace forewarp::test {
namespace {

const char* name(Pipe pipe) {
  constexpr const char* kNames[] = {"alu", "fma", "fmaheavy", "fp16",    "fp64", "xu",  "tensor",
                                    "lsu", "adu", "cbu",      "uniform", "tex",  "tma", "none"};
  return kNames[static_cast<int>(pipe)];
}

const char* name(OperationClass operation) {
  constexpr const char* kNames[] = {
      "fadd", "fmul",    "ffma",   "dadd",    "dmul", "dfma",  "hadd", "hmul", "hfma", "integer",       "conversion",
      "bit",  "control", "memory", "uniform", "mma",  "other", "fp32", "fp16", "fp64", "communication", "misc"};
  return kNames[static_cast<int>(operation)];
}

const char* name(MemorySpace space) {
  constexpr const char* kNames[] = {"none", "global", "shared", "local", "constant", "generic"};
  return kNames[static_cast<int>(space)];
}

const char* name(MemoryKind kind) {
  constexpr const char* kNames[] = {"none", "load", "store", "atomic", "reduction", "async"};
  return kNames[static_cast<int>(kind)];
}

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

std::string number(const char* prefix, int index, int zero, const char* zero_name) {
  return index == zero ? zero_name : prefix + std::to_string(index);
}

std::string address(const Operand& operand) {
  std::string text = "[";
  text += number("R", operand.index, kRegisterZero, "RZ") + (operand.wide ? ".64" : "");
  if (operand.scale != 1) text += "*" + std::to_string(operand.scale);
  if (operand.uniform != kUniformRegisterZero) text += "+UR" + std::to_string(operand.uniform);
  return text + "+" + std::to_string(operand.offset) + "]";
}

std::string body(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::None:
      return "none";
    case OperandKind::Register:
      return number("R", operand.index, kRegisterZero, "RZ");
    case OperandKind::UniformRegister:
      return number("UR", operand.index, kUniformRegisterZero, "URZ");
    case OperandKind::Predicate:
      return number("P", operand.index, kPredicateTrue, "PT");
    case OperandKind::UniformPredicate:
      return number("UP", operand.index, kPredicateTrue, "UPT");
    case OperandKind::Immediate:
      return hex(operand.immediate);
    case OperandKind::Constant:
      return "c" + std::to_string(operand.bank) + address(operand);
    case OperandKind::Memory: {
      const std::string descriptor =
          operand.descriptor == kUniformRegisterZero ? "" : "d" + std::to_string(operand.descriptor);
      return descriptor + address(operand);
    }
    case OperandKind::Barrier:
      return "B" + std::to_string(operand.index);
    case OperandKind::Scoreboard:
      return "SB" + std::to_string(operand.index);
    case OperandKind::Special:
      return "SR" + std::to_string(static_cast<int>(operand.special));
    case OperandKind::Target:
      return "->" + std::to_string(operand.immediate);
    case OperandKind::Descriptor:
      return "desc" + std::to_string(operand.index);
    case OperandKind::PredicateFile:
      return operand.index == 0 ? "PR" : "UPR";
  }
  return "?";
}

std::string describe_operand(const Instruction& instruction, int index) {
  const Operand& operand = instruction.operands[index];
  std::string text = operand.negate ? "-" : "";
  if (operand.invert) text += "~";
  text += operand.absolute ? "|" + body(operand) + "|" : body(operand);
  const int width = operand_width(instruction, index);
  if (width != 1) text += ":" + std::to_string(width);
  if (operand.half != HalfSelect::Packed) text += operand.half == HalfSelect::H0 ? ".h0" : ".h1";
  if (operand.byte != 0) text += ".b" + std::to_string(operand.byte);
  if (operand.sign) text += ".sign";
  if (operand.reuse) text += "!";
  return text;
}

}  // namespace

std::string describe(const Instruction& instruction) {
  std::string text;
  if (instruction.guard != kPredicateTrue || instruction.guard_negated) {
    text += instruction.guard_negated ? "@!" : "@";
    text += instruction.guard_uniform ? "UP" : "P";
    text += std::to_string(instruction.guard) + " ";
  }
  text += opcode_text(instruction.opcode);
  for (int i = 0; i < instruction.modifier_count; ++i)
    text += std::string(".") + modifier_text(instruction.modifier_list[i]);
  const MatrixShape& shape = instruction.shape;
  if (shape.m != 0) {
    text += " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
  }
  if (instruction.native != instruction.opcode) text += std::string(" (") + opcode_text(instruction.native) + ")";
  text += " " + hex(instruction.encoding) + " " + name(instruction.pipe) + " " + name(instruction.operation);
  text += instruction.variable_latency ? " variable" : " fixed";
  if (instruction.memory != MemoryKind::None) {
    text += std::string(" ") + name(instruction.space) + " " + name(instruction.memory) + " " +
            std::to_string(instruction.access_bytes);
  }
  text += " :";
  for (int i = 0; i < instruction.operand_count; ++i) {
    if (i == instruction.destination_count) text += " <-";
    text += " " + describe_operand(instruction, i);
  }
  const Control& control = instruction.control;
  return text + " : stall " + std::to_string(control.stall) + (control.yield ? " yield" : "") + " w" +
         std::to_string(control.write_barrier) + " r" + std::to_string(control.read_barrier) + " wait " +
         hex(control.wait_mask) + " reuse " + hex(control.reuse);
}

Scratch::Scratch() {
  std::string pattern = (std::filesystem::temp_directory_path() / "forewarp-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::string Scratch::copy(const std::string& from, const std::string& name) const {
  std::filesystem::copy_file(from, path(name), std::filesystem::copy_options::overwrite_existing);
  return path(name);
}

std::string load_error(const std::string& cubin, UnknownOpcode policy) {
  try {
    const Program program = load_program(cubin, policy);
    for (const Kernel& kernel : program.kernels) program.kernel(kernel.name);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace forewarp::test
