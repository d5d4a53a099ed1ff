// What is fuzzed: a target turns the parts of an input into files and loads them as the commands do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace forewarp::fuzz {

using Bytes = std::vector<std::uint8_t>;
/// Parts are damaged one by one: a cubin and its disassembly, the sections of a trace before they are packed.
using Input = std::vector<Bytes>;

struct Target {
  const char* name;
  bool text;              ///< the last part is text
  bool parts_may_change;  ///< parts may be left out, doubled and swapped
  std::vector<Input> (*seeds)();
  /// Throws InputError for what is refused, as it should; anything else thrown is a defect. `folder` is for files.
  void (*run)(const Input&, const std::string& folder);
};

std::span<const Target> targets();

}  // namespace forewarp::fuzz
