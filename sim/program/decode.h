// Decodes one instruction from its text and its code word.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "program/disassembly.h"
#include "program/instruction.h"
#include "program/operand_text.h"

namespace forewarp {

/// Opcodes, modifiers and operand forms missing from the tables, with count and first place.
struct UnknownForms {
  struct Sighting {
    int count = 0;
    std::string first_place;
  };
  std::map<std::string, Sighting> forms;

  void note(const std::string& form, const std::string& place) {
    Sighting& sighting = forms[form];
    if (sighting.count++ == 0) sighting.first_place = place;
  }
  /// One line a form.
  std::string list() const;
};

struct DecodeContext {
  int sm = 0;
  std::string place;  ///< kernel and offset, for messages
  OperandContext operand;
};

/// Decodes one instruction. Unknown parts go to `unknown`, and the rest is decoded as far as possible: an unknown
/// opcode, or one with operands that cannot be parsed, becomes Opcode::Unknown on the ALU pipe, an unknown modifier is
/// dropped; the instruction is then not `understood`.
Instruction decode(const TextInstruction&, const DecodeContext&, UnknownForms& unknown);

/// Opcode, modifiers and shape from a mnemonic; false if a part is in no table.
bool read_mnemonic(std::string_view mnemonic, Instruction&);

/// Whether text and code word agree on the guard. If not, the text belongs to another program.
bool guard_matches(const TextInstruction&, const CodeWord&);

}  // namespace forewarp
