// The text side of a cubin: its functions as `nvdisasm -json` prints them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forewarp {

struct TextInstruction {
  std::string predicate;  ///< "@P0", "@!UP1" or empty
  std::string opcode;     ///< with its modifiers
  std::string operands;
};

struct DisassembledFunction {
  std::string name;
  std::uint32_t start = 0;   ///< bytes into the section; not zero for callees
  std::uint32_t length = 0;  ///< bytes; of an entry: with its callees
  std::vector<TextInstruction> instructions;
};

struct Disassembly {
  std::string origin;  ///< file, or the command, for messages
  int sm = 0;
  std::vector<DisassembledFunction> functions;
};

/// Reads `cubin_path`.json if it exists, else the output of `nvdisasm -json` on the PATH. InputError if there is
/// neither or if it is not nvdisasm output.
Disassembly read_disassembly(const std::string& cubin_path);

}  // namespace forewarp
