// The source line of each instruction, from the DWARF line table that nvcc -lineinfo writes into a cubin.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace forewarp {

/// From `address` on, until the next row of the same function, code comes from `place`.
struct LineRow {
  std::size_t section = 0;    ///< what `targets` says about the function's address
  std::uint64_t address = 0;  ///< bytes from the section's start
  std::string place;          ///< "file.cu:12"; empty where a function's code ends. Of code that is inlined
                              ///< from another file than the function's, the line that calls it there
};

/// Reads the contents of .debug_line, DWARF versions 2 to 4. `targets`: by the position in `table` of an address that
/// the linker fills in, the section it refers to. Damaged parts and other versions are skipped: a kernel can be
/// predicted without its lines.
std::vector<LineRow> read_line_table(std::span<const std::uint8_t> table,
                                     const std::map<std::uint64_t, std::size_t>& targets);

}  // namespace forewarp
