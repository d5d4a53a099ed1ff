// One instruction: its text and its code word, put together.
#pragma once

#include <map>
#include <string>

#include "program/disassembly.h"
#include "program/instruction.h"
#include "program/operand_text.h"

namespace forewarp {

/// Opcodes, modifiers and operand forms that no table lists, with how often and where first.
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

/// Decodes one instruction. What is not known goes to `unknown`, and the rest is decoded as far as possible: an
/// unknown opcode becomes Opcode::Unknown on the ALU pipe, an unknown modifier is left out.
Instruction decode(const TextInstruction&, const DecodeContext&, UnknownForms& unknown);

/// Whether text and code word agree on the guard. They do unless the text is of another program.
bool guard_matches(const TextInstruction&, const CodeWord&);

}  // namespace forewarp
