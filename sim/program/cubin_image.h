// The ELF side of a cubin: code sections, kernel attributes, constant banks. No disassembly here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/operand_text.h"
#include "program/program.h"

namespace forewarp {

struct CodeSymbol {
  std::string name;
  std::uint32_t offset = 0;  ///< bytes into the section
};

/// One .text section: a kernel and the functions that the compiler placed behind it.
struct CodeSection {
  Kernel kernel;           ///< everything but instructions, functions and text
  bool is_kernel = false;  ///< has an entry point; otherwise a separate device function
  std::vector<CodeWord> code;
  std::vector<CodeSymbol> symbols;  ///< functions in this section, by offset
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> indirect_branches;  ///< byte offsets
};

struct CubinImage {
  int sm = 0;
  std::vector<CodeSection> sections;
  std::vector<std::uint8_t> module_data;  ///< Program::module_data
  std::vector<std::string> outside;       ///< Program::outside
};

/// Reads the cubin in `bytes`; `path` is for messages. InputError if it is not a cubin, is truncated, or is for an
/// architecture other than sm_80 and sm_90.
CubinImage read_cubin_image(const std::string& path, const std::vector<std::uint8_t>& bytes);

}  // namespace forewarp
