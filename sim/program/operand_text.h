// Parses operands as nvdisasm prints them. Structure comes from the text; immediates that are printed rounded (floats)
// come from the code word.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "program/instruction.h"

namespace forewarp {

struct CodeWord {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  /// Bits first .. first + count - 1 of the 128.
  std::uint64_t bits(int first, int count) const {
    const std::uint64_t value = first >= 64  ? high >> (first - 64)
                                : first == 0 ? low
                                             : (low >> first) | (high << (64 - first));
    return count >= 64 ? value : value & ((std::uint64_t{1} << count) - 1);
  }
};

/// The context that parsing an operand needs.
struct OperandContext {
  CodeWord code;
  std::uint32_t address = 0;               ///< byte offset of the instruction in its section
  std::uint32_t code_bytes = 0;            ///< length of the section: targets must lie within
  std::uint32_t base = 0;                  ///< printed addresses count from here
  std::optional<std::uint32_t> target;     ///< byte offset that a linker fills in, whatever is printed
  std::optional<std::uint32_t> immediate;  ///< the same of an immediate: 32@lo(symbol)
  std::function<std::optional<std::uint32_t>(std::string_view)> symbol;  ///< byte offset of a function's entry
};

/// The text is not a known operand list; `what()` says where parsing stopped.
class OperandError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Appends the operands in `text` to `instruction` (whose opcode and modifiers are set). Throws OperandError.
void parse_operands(std::string_view text, const OperandContext&, Instruction& instruction);

}  // namespace forewarp
