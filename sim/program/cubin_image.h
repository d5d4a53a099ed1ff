// The ELF side of a cubin: its kernels by name, and of each that is asked for the code with the device functions it
// calls, its attributes and constant banks. No disassembly here. What no kernel asks for is not looked at.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/operand_text.h"
#include "program/program.h"

namespace forewarp {

/// A kernel and the device functions it can call, one after another as if they were one section. Addresses that a
/// linker fills in are filled in.
struct LinkedKernel {
  struct Piece {
    std::string section;      ///< name of the entry or function
    std::uint32_t first = 0;  ///< its first instruction in `code`
    std::uint32_t count = 0;
  };

  Kernel kernel;  ///< everything but instructions and text
  std::vector<CodeWord> code;
  std::vector<Piece> pieces;                                                            ///< the entry's section first
  std::vector<std::pair<std::uint32_t, std::vector<std::uint32_t>>> indirect_branches;  ///< byte offsets
  /// Calls whose target a linker fills in: byte offsets of the call and of its target, kOutsideTarget if that is not in
  /// the cubin.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> calls;
  static constexpr std::uint32_t kOutsideTarget = ~0u;
};

class CubinImage {
 public:
  /// `path` is for messages. InputError if the bytes are no cubin, are cut short, or are for an architecture other than
  /// sm_80 and sm_90. The bytes must outlive the image.
  CubinImage(const std::string& path, std::span<const std::uint8_t> bytes);
  ~CubinImage();
  CubinImage(CubinImage&&) noexcept;

  int sm() const;
  bool linked() const;  ///< false: an object of separate compilation, whose callees may lie elsewhere
  /// Symbols of the kernels, in the order of their code.
  const std::vector<std::string_view>& kernels() const;
  /// Every section of code, by the name of its function, with its number of instructions.
  std::vector<std::pair<std::string, std::uint32_t>> code_sections() const;

  /// Appends the cubin's variables to Program::module_data and gives them their addresses. Before link().
  void place_data(Program&);
  /// Functions that are not in the cubin go to Program::outside.
  LinkedKernel link(std::size_t kernel, Program&) const;

 private:
  class Reader;
  std::unique_ptr<Reader> reader_;
};

}  // namespace forewarp
