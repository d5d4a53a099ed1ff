// What is known of an opcode apart from its operands: pipe, class, latency kind, memory, how many results it names.
#pragma once

#include "program/instruction.h"

namespace forewarp {

/// Which of the written operands are results.
enum class Destinations : std::uint8_t {
  Zero,
  One,
  Two,
  Carry,             ///< a register and the predicates right after it (IADD3 R0, P0, P1, ...)
  LeadingPredicate,  ///< any predicates in front and one register (LOP3.LUT P0, R0, ... or LOP3.LUT R0, ...)
  AllButLast,        ///< VOTE.ANY R0, PT, P1
};

enum class Latency : std::uint8_t { Fixed, Variable, Variable80 /* through a scoreboard on sm_80 alone */ };

struct OpcodeTraits {
  Pipe pipe80 = Pipe::Alu;
  Pipe pipe90 = Pipe::Alu;
  OperationClass operation = OperationClass::Other;
  Destinations destinations = Destinations::One;
  Latency latency = Latency::Fixed;
  MemorySpace space = MemorySpace::None;
  MemoryKind memory = MemoryKind::None;
};

const OpcodeTraits& traits(Opcode);

/// The opcode that bits 0..11 of a code word stand for; `written` if they allow it or are not known.
Opcode native_opcode(std::uint16_t encoding, Opcode written);

/// Fills native, pipe, operation, space, memory, access_bytes, variable_latency and destination_count from opcode,
/// modifiers, encoding and operands.
void classify(Instruction&, int sm);

}  // namespace forewarp
