#include "trace/kernel_codec.h"

#include <algorithm>

#include "base/error.h"
#include "trace/events.h"

namespace forewarp {
namespace {

constexpr std::size_t kLeastInstructionBytes = 150;

using wire::Decoder;
using wire::Encoder;
using wire::Malformed;

// Opcodes and modifiers are stored by name: their numbers change whenever one is added to the .def files. The other
// enumerations are stored by number; who reorders one raises kTraceFormatVersion.

void enumeration(Encoder& a, const Opcode& v) { a.text(opcode_text(v)); }
void enumeration(Decoder& a, Opcode& v) {
  const std::string text = a.text();
  v = find_opcode(text);
  if (v == Opcode::Unknown && text != opcode_text(Opcode::Unknown))
    throw Malformed("it names the opcode " + text + ", which this version does not know");
}
void enumeration(Encoder& a, const Modifier& v) { a.text(modifier_text(v)); }
void enumeration(Decoder& a, Modifier& v) {
  const std::string text = a.text();
  const auto found = find_modifier(text);
  if (!found) throw Malformed("it names the modifier " + text + ", which this version does not know");
  v = *found;
}

template <class E>
void numbered(Encoder& a, const E& v, E last) {
  FW_CHECK(v <= last, "an enumeration grew: give the codec its new last value");
  a.varint(static_cast<std::uint64_t>(v));
}
template <class E>
void numbered(Decoder& a, E& v, E last) {
  const std::uint64_t n = a.varint();
  if (n > static_cast<std::uint64_t>(last)) throw Malformed("an enumeration is out of its range");
  v = static_cast<E>(n);
}

void modifier_set(Encoder& a, const ModifierSet& set) {
  a.varint(set.count());
  for (std::size_t i = 0; i < set.size(); ++i)
    if (set.test(i)) enumeration(a, static_cast<Modifier>(i));
}
void modifier_set(Decoder& a, ModifierSet& set) {
  for (std::size_t n = a.count(); n > 0; --n) {
    Modifier m{};
    enumeration(a, m);
    set.set(static_cast<std::size_t>(m));
  }
}

// The bindings below stop compiling when a field is added to one of these types: it has to be stored too.

template <class A, class T>
void operand_fields(A& a, T& operand) {
  auto& [kind, index, uniform, descriptor, bank, scale, special, half, negate, absolute, invert, wide, byte, sign,
         reuse, offset, immediate] = operand;
  numbered(a, kind, OperandKind::PredicateFile);
  a(index, uniform, descriptor, bank, scale);
  numbered(a, special, SpecialRegister::LwinLo);
  numbered(a, half, HalfSelect::Turned);
  a(negate, absolute, invert, wide, byte, sign, reuse, offset, immediate);
}

/// Registers and the like are numbered as far as there are some.
bool in_range(const Operand& operand) {
  if (operand.uniform > kUniformRegisterZero || operand.descriptor > kUniformRegisterZero || operand.byte > 3)
    return false;
  switch (operand.kind) {
    case OperandKind::UniformRegister:
      return operand.index <= kUniformRegisterZero;
    case OperandKind::Predicate:
    case OperandKind::UniformPredicate:
      return operand.index <= kPredicateTrue;
    case OperandKind::Barrier:
      return operand.index < 16;
    case OperandKind::Scoreboard:
      return operand.index < kScoreboards;
    default:
      return true;
  }
}

bool in_range(const Control& control) {
  const auto scoreboard = [](std::uint8_t s) { return s < kScoreboards || s == kNoScoreboard; };
  return control.stall < 16 && scoreboard(control.write_barrier) && scoreboard(control.read_barrier) &&
         control.wait_mask < 1 << kScoreboards;
}

template <class A, class T>
void control_fields(A& a, T& control) {
  auto& [stall, yield, write_barrier, read_barrier, wait_mask, reuse] = control;
  a(stall, yield, write_barrier, read_barrier, wait_mask, reuse);
}

template <class A, class T>
void instruction_fields(A& a, T& instruction) {
  auto& [opcode, native, modifiers, modifier_count, modifier_list, shape, pipe, operation, space, memory, access_bytes,
         encoding, guard, guard_negated, guard_uniform, understood, variable_latency, operand_count, destination_count,
         operands, control] = instruction;
  enumeration(a, opcode);
  enumeration(a, native);
  modifier_set(a, modifiers);
  a(modifier_count);
  for (auto& modifier : modifier_list) enumeration(a, modifier);
  a(shape.m, shape.n, shape.k);
  numbered(a, pipe, Pipe::None);
  numbered(a, operation, OperationClass::Misc);
  numbered(a, space, MemorySpace::Generic);
  numbered(a, memory, MemoryKind::AsyncCopy);
  a(access_bytes, encoding, guard, guard_negated, guard_uniform, understood, variable_latency, operand_count,
    destination_count);
  if (operand_count > Instruction::kMaxOperands || modifier_count > Instruction::kMaxModifiers)
    throw Malformed("an instruction has too many parts");
  if (destination_count > operand_count) throw Malformed("an instruction writes more operands than it has");
  for (auto& operand : operands) operand_fields(a, operand);
  control_fields(a, control);
  if (guard > kPredicateTrue || !in_range(control) ||
      !std::all_of(operands.begin(), operands.end(), [](const Operand& o) { return in_range(o); }))
    throw Malformed("an instruction names a register, predicate or scoreboard that there is not");
}

/// A vector, element by element, each of at least so many bytes.
template <class A, class V, class F>
void elements(A& a, V& vector, F each, std::size_t least_bytes = 1) {
  const std::size_t n = a.count(vector.size(), least_bytes);
  if constexpr (A::kDecodes) vector.resize(n);
  for (auto& element : vector) each(element);
}

template <class A, class T>
void kernel_fields(A& a, T& kernel) {
  auto& [name, demangled, registers, static_shared_bytes, shared_base, local_bytes, parameter_base, barrier_count,
         parameter_bytes, max_threads, required_block, cluster, parameters, constants, instructions, functions,
         indirect_branches, text, source] = kernel;
  a(name, demangled, registers, static_shared_bytes, shared_base, local_bytes, parameter_base, barrier_count,
    parameter_bytes, max_threads, required_block.x, required_block.y, required_block.z, cluster.x, cluster.y,
    cluster.z);
  elements(a, parameters, [&](auto& p) {
    auto& [offset, size] = p;
    a(offset, size);
  });
  elements(a, constants, [&](auto& c) {
    auto& [bank, bytes] = c;
    a(bank, bytes);
  });
  elements(
      a, instructions, [&](auto& i) { instruction_fields(a, i); }, kLeastInstructionBytes);
  elements(a, functions, [&](auto& f) {
    auto& [function_name, first, count] = f;
    a(function_name, first, count);
  });
  elements(a, indirect_branches, [&](auto& b) {
    auto& [instruction, targets] = b;
    a(instruction);
    elements(a, targets, [&](auto& t) { a(t); });
  });
  elements(a, text, [&](auto& line) { a(line); });
  elements(a, source, [&](auto& place) { a(place); });
}

}  // namespace

void encode_kernel(Encoder& out, const Kernel& kernel) { kernel_fields(out, kernel); }

Kernel decode_kernel(Decoder& in) {
  Kernel kernel;
  kernel_fields(in, kernel);
  const std::size_t size = kernel.instructions.size();
  if ((!kernel.text.empty() && kernel.text.size() != size) || (!kernel.source.empty() && kernel.source.size() != size))
    throw Malformed("its text has more or fewer lines than instructions");
  for (const Function& f : kernel.functions)
    if (f.count > size || f.first > size - f.count) throw Malformed("a function leaves the kernel");
  for (const IndirectBranch& b : kernel.indirect_branches)
    if (b.instruction >= size || std::any_of(b.targets.begin(), b.targets.end(), [&](auto t) { return t >= size; }))
      throw Malformed("a branch leaves the kernel");
  return kernel;
}

}  // namespace forewarp
