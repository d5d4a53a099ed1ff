// The text side of a cubin: its functions as `nvdisasm -json` prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/operand_text.h"

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

/// Reads `cubin_path`.json, nothing if there is no such file. InputError if it is not nvdisasm output.
std::optional<Disassembly> read_disassembly(const std::string& cubin_path);

/// Keeps text under the hash of what it was made from.
class TextStore {
 public:
  virtual ~TextStore() = default;
  virtual std::optional<std::string> get(std::uint64_t high, std::uint64_t low) const = 0;
  virtual void put(std::uint64_t high, std::uint64_t low, const std::string& text) const = 0;
};

/// One sequence of instructions as nvdisasm prints them.
struct CodeText {
  std::uint32_t base = 0;  ///< printed addresses count from here
  std::vector<TextInstruction> instructions;
};

/// Asks the nvdisasm on the PATH for the text of each sequence, or `store` where it is not null and has it. `path` is
/// for messages: InputError if there is no nvdisasm or if it fails.
std::vector<CodeText> disassemble(const std::string& path, int sm,
                                  std::span<const std::vector<CodeWord>* const> sequences, const TextStore* store);

}  // namespace forewarp
