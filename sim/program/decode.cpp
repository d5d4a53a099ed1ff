#include "program/decode.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <string_view>

#include "program/traits.h"

namespace forewarp {
namespace {

// Places of fields in the code word, sass.md 1.1.
constexpr int kGuardBit = 12, kGuardNegatedBit = 15;
constexpr int kStallBit = 105, kYieldBit = 109, kWriteBarrierBit = 110, kReadBarrierBit = 113, kWaitMaskBit = 116,
              kReuseBit = 122;

Control decode_control(const CodeWord& code) {
  Control control;
  control.stall = static_cast<std::uint8_t>(code.bits(kStallBit, 4));
  control.yield = code.bits(kYieldBit, 1) != 0;
  control.write_barrier = static_cast<std::uint8_t>(code.bits(kWriteBarrierBit, 3));
  control.read_barrier = static_cast<std::uint8_t>(code.bits(kReadBarrierBit, 3));
  control.wait_mask = static_cast<std::uint8_t>(code.bits(kWaitMaskBit, 6));
  control.reuse = static_cast<std::uint8_t>(code.bits(kReuseBit, 4));
  return control;
}

bool all_digits(std::string_view text) {
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
  }
  return !text.empty();
}

int number(std::string_view text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "16816" is 16 x 8 x 16, "884" 8 x 8 x 4, "64x128x16" as it says.
std::optional<MatrixShape> matrix_shape(std::string_view text) {
  const auto extent = [](int value) { return static_cast<std::uint16_t>(value); };
  const std::size_t first = text.find('x');
  if (first != std::string_view::npos) {
    const std::size_t second = text.find('x', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    const std::string_view m = text.substr(0, first), n = text.substr(first + 1, second - first - 1),
                           k = text.substr(second + 1);
    if (!all_digits(m) || !all_digits(n) || !all_digits(k)) return std::nullopt;
    return MatrixShape{extent(number(m)), extent(number(n)), extent(number(k))};
  }
  if (!all_digits(text) || text.size() < 3) return std::nullopt;
  const bool tall = text.starts_with("168");
  const std::string_view depth = text.substr(tall ? 3 : 2);
  if (depth.empty() || (!tall && !text.starts_with("88"))) return std::nullopt;
  return MatrixShape{extent(tall ? 16 : 8), 8, extent(number(depth))};
}

void decode_mnemonic(std::string_view mnemonic, const std::string& place, Instruction& instruction,
                     UnknownForms& unknown) {
  const std::size_t dot = mnemonic.find('.');
  instruction.opcode = find_opcode(mnemonic.substr(0, dot));
  if (instruction.opcode == Opcode::Unknown) {
    instruction.understood = false;
    unknown.note("opcode " + std::string(mnemonic), place);
    return;
  }
  std::string_view rest = dot == std::string_view::npos ? std::string_view{} : mnemonic.substr(dot + 1);
  while (!rest.empty()) {
    const std::size_t next = rest.find('.');
    const std::string_view part = rest.substr(0, next);
    rest = next == std::string_view::npos ? std::string_view{} : rest.substr(next + 1);
    if (multiplies_matrices(instruction.opcode)) {
      if (const auto shape = matrix_shape(part)) {
        instruction.shape = *shape;
        continue;
      }
    }
    const auto modifier = find_modifier(part);
    if (!modifier || instruction.modifier_count == Instruction::kMaxModifiers) {
      instruction.understood = false;
      unknown.note("modifier ." + std::string(part) + " of " + std::string(mnemonic.substr(0, dot)), place);
      continue;
    }
    instruction.modifiers.set(static_cast<std::size_t>(*modifier));
    instruction.modifier_list[instruction.modifier_count++] = *modifier;
  }
}

/// Of sparse products the code word's four bits mean something else: what the text says.
std::uint8_t written_reuse(const Instruction& instruction) {
  unsigned reuse = 0;
  for (int i = instruction.destination_count; i < instruction.operand_count; ++i)
    reuse |= static_cast<unsigned>(instruction.operands[i].reuse) << (i - instruction.destination_count);
  return static_cast<std::uint8_t>(reuse);
}

}  // namespace

std::string UnknownForms::list() const {
  std::string text;
  for (const auto& [form, sighting] : forms) {
    text += "\n    " + form + ": " + std::to_string(sighting.count) + " times, first in " + sighting.first_place;
  }
  return text;
}

bool guard_matches(const TextInstruction& text, const CodeWord& code) {
  if (text.predicate.empty()) return code.bits(kGuardBit, 4) == kPredicateTrue;
  if (text.predicate[0] != '@') return false;
  std::string_view guard = std::string_view(text.predicate).substr(1);
  const bool negated = guard.starts_with('!');
  if (negated) guard.remove_prefix(1);
  if (guard.starts_with('U')) guard.remove_prefix(1);
  if (guard.size() < 2 || guard[0] != 'P') return false;
  const std::uint64_t index = guard[1] == 'T' ? 7 : static_cast<std::uint64_t>(guard[1] - '0');
  return code.bits(kGuardBit, 3) == index && (code.bits(kGuardNegatedBit, 1) != 0) == negated;
}

bool read_mnemonic(std::string_view mnemonic, Instruction& instruction) {
  UnknownForms unknown;
  decode_mnemonic(mnemonic, "", instruction, unknown);
  return unknown.forms.empty();
}

Instruction decode(const TextInstruction& text, const DecodeContext& context, UnknownForms& unknown) {
  const CodeWord& code = context.operand.code;
  Instruction instruction;
  instruction.encoding = static_cast<std::uint16_t>(code.bits(0, 12));
  instruction.guard = static_cast<std::uint8_t>(code.bits(kGuardBit, 3));
  instruction.guard_negated = code.bits(kGuardNegatedBit, 1) != 0;
  instruction.guard_uniform = text.predicate.starts_with("@U") || text.predicate.starts_with("@!U");
  instruction.control = decode_control(code);
  decode_mnemonic(text.opcode, context.place, instruction, unknown);
  if (instruction.opcode == Opcode::Unknown) {
    instruction.pipe = Pipe::Alu;
    return instruction;
  }
  try {
    parse_operands(text.operands, context.operand, instruction);
  } catch (const OperandError& error) {
    unknown.note("operands '" + text.operands + "' of " + text.opcode + " (" + error.what() + ")", context.place);
    // Without them nothing holds that is known of the opcode: an access would have no address.
    Instruction other;
    other.encoding = instruction.encoding;
    other.guard = instruction.guard;
    other.guard_negated = instruction.guard_negated;
    other.guard_uniform = instruction.guard_uniform;
    other.control = instruction.control;
    other.understood = false;
    other.pipe = Pipe::Alu;
    return other;
  }
  classify(instruction, context.sm);
  if (instruction.has(Modifier::SP)) instruction.control.reuse = written_reuse(instruction);
  return instruction;
}

}  // namespace forewarp
