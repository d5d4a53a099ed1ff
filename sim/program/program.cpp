#include "program/program.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "program/cubin_image.h"
#include "program/decode.h"
#include "program/disassembly.h"
#include "program/traits.h"

namespace forewarp {
namespace {

constexpr std::uint32_t kInstructionBytes = 16;
/// Text and code word may name an operation differently here and there (aliases); a foreign text does so all over.
constexpr std::size_t kAliasShare = 10;

std::string hex(std::uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

/// One line as people read it: blanks after commas, and the comma that the JSON leaves out in front of an address.
std::string readable(const TextInstruction& text) {
  std::string line = text.predicate.empty() ? "" : text.predicate + " ";
  line += text.opcode + " ";
  int depth = 0;
  std::size_t operand_start = 0;  // in text.operands
  for (std::size_t i = 0; i < text.operands.size(); ++i) {
    const char c = text.operands[i];
    const std::string_view rest = std::string_view(text.operands).substr(i);
    if (depth == 0 && i > operand_start && (rest.starts_with("desc[") || rest.starts_with("gdesc["))) {
      if (text.operands[i - 1] != 'g') line += ", ";
      operand_start = i;
    }
    if (c == '[' && depth == 0) {
      const char first = text.operands[operand_start];
      const bool new_operand = i > operand_start && (std::isupper(static_cast<unsigned char>(first)) || first == '[');
      if (new_operand) line += ", ";
    }
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    line += c;
    if (c == ',' && depth == 0) {
      line += ' ';
      operand_start = i + 1;
    }
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

/// Joins the code sections of a cubin with its disassembly.
class Assembler {
 public:
  Assembler(const std::string& path, CubinImage& image, const Disassembly& disassembly)
      : path_(path), image_(image), disassembly_(disassembly) {}

  /// `unknown`: by symbol of the kernel.
  std::vector<Kernel> run(std::map<std::string, UnknownForms>& unknown) {
    if (disassembly_.sm != 0 && disassembly_.sm != image_.sm) {
      fail_foreign("it is for sm_" + std::to_string(disassembly_.sm) + ", the cubin for sm_" +
                   std::to_string(image_.sm));
    }
    texts_.resize(image_.sections.size());
    for (std::size_t s = 0; s < texts_.size(); ++s) texts_[s].resize(image_.sections[s].code.size(), nullptr);
    place_functions();
    std::vector<Kernel> kernels;
    for (std::size_t s = 0; s < texts_.size(); ++s) {
      if (image_.sections[s].is_kernel) kernels.push_back(assemble(s, unknown[image_.sections[s].kernel.name]));
    }
    return kernels;
  }

 private:
  [[noreturn]] void fail_foreign(const std::string& why) const {
    throw InputError(SourcePosition{disassembly_.origin, 0, 0}, "this is not the disassembly of " + path_ + ": " + why,
                     "write it again with: nvdisasm -json " + path_ + " > " + path_ + ".json");
  }

  /// A function that starts at 0 opens its section; the ones after it lie in the same.
  void place_functions() {
    std::size_t section = image_.sections.size();
    for (const DisassembledFunction& function : disassembly_.functions) {
      if (function.start == 0) section = section_named(function.name);
      if (section == image_.sections.size()) fail_foreign("it begins inside a section");
      const std::uint32_t first = function.start / kInstructionBytes;
      if (function.start % kInstructionBytes != 0 || first + function.instructions.size() > texts_[section].size()) {
        fail_foreign("'" + function.name + "' is longer than its code");
      }
      for (std::size_t i = 0; i < function.instructions.size(); ++i) {
        if (texts_[section][first + i] != nullptr) fail_foreign("'" + function.name + "' overlaps another function");
        texts_[section][first + i] = &function.instructions[i];
      }
      image_.sections[section].kernel.functions.push_back(
          {function.name, first, static_cast<std::uint32_t>(function.instructions.size())});
    }
  }

  std::size_t section_named(const std::string& name) const {
    for (std::size_t s = 0; s < image_.sections.size(); ++s) {
      if (image_.sections[s].kernel.name == name) return s;
    }
    fail_foreign("the cubin has no function '" + name + "'");
  }

  Kernel assemble(std::size_t s, UnknownForms& unknown) const {
    const CodeSection& section = image_.sections[s];
    Kernel kernel = section.kernel;
    std::sort(kernel.functions.begin(), kernel.functions.end(),
              [](const Function& a, const Function& b) { return a.first < b.first; });
    DecodeContext context;
    context.sm = image_.sm;
    context.operand.code_bytes = static_cast<std::uint32_t>(section.code.size()) * kInstructionBytes;
    context.operand.symbol = [&](std::string_view name) { return symbol_offset(section, name); };
    std::size_t differing = 0;
    for (std::size_t i = 0; i < section.code.size(); ++i) {
      const auto offset = static_cast<std::uint32_t>(i) * kInstructionBytes;
      const TextInstruction* text = texts_[s][i];
      if (text == nullptr) {
        fail_foreign("it has no instruction at " + hex(offset) + " of '" + kernel.name + "', whose code has " +
                     std::to_string(section.code.size()));
      }
      context.place = kernel.name + "+" + hex(offset);
      context.operand.code = section.code[i];
      context.operand.address = offset;
      if (!guard_matches(*text, section.code[i])) {
        fail_foreign("the guard of '" + readable(*text) + "' at " + context.place + " is another one in the code");
      }
      kernel.instructions.push_back(decode(*text, context, unknown));
      kernel.text.push_back(readable(*text));
      const Instruction& instruction = kernel.instructions.back();
      if (instruction.opcode != Opcode::Unknown && instruction.native != instruction.opcode) ++differing;
    }
    if (differing * kAliasShare > section.code.size()) {
      fail_foreign(std::to_string(differing) + " of the " + std::to_string(section.code.size()) + " instructions of '" +
                   kernel.name + "' are other operations in the code");
    }
    for (const auto& [branch, targets] : section.indirect_branches) {
      IndirectBranch indirect{branch / kInstructionBytes, {}};
      for (const std::uint32_t target : targets) {
        if (target / kInstructionBytes < section.code.size()) indirect.targets.push_back(target / kInstructionBytes);
      }
      kernel.indirect_branches.push_back(std::move(indirect));
    }
    return kernel;
  }

  static std::optional<std::uint32_t> symbol_offset(const CodeSection& section, std::string_view name) {
    for (const CodeSymbol& symbol : section.symbols) {
      if (symbol.name == name) return symbol.offset;
    }
    return std::nullopt;
  }

  const std::string& path_;
  CubinImage& image_;
  const Disassembly& disassembly_;
  std::vector<std::vector<const TextInstruction*>> texts_;  ///< by section and instruction
};

/// Demangled text as people write it: without the return type that template instances carry.
std::string_view without_return_type(std::string_view demangled) {
  return demangled.starts_with("void ") ? demangled.substr(5) : demangled;
}

}  // namespace

Program load_program(const std::string& cubin_path, UnknownOpcode policy, std::vector<std::string>* warnings) {
  const std::vector<std::uint8_t> bytes = read_binary_file(cubin_path);
  CubinImage image = read_cubin_image(cubin_path, bytes);
  const Disassembly disassembly = read_disassembly(cubin_path);

  Program program;
  program.path = cubin_path;
  program.sm = image.sm;
  program.content_hash = XXH3_64bits(bytes.data(), bytes.size());
  program.module_data = std::move(image.module_data);
  program.outside = std::move(image.outside);
  std::map<std::string, UnknownForms> unknown;
  program.kernels = Assembler(cubin_path, image, disassembly).run(unknown);
  std::string assumed;
  for (const auto& [kernel, forms] : unknown) {
    if (forms.forms.empty()) continue;
    if (policy == UnknownOpcode::Reject)
      program.not_understood[kernel] = forms.list();
    else
      assumed += forms.list();
  }
  if (!assumed.empty() && warnings != nullptr)
    warnings->push_back(cubin_path + ": assumed to be ordinary ALU instructions:" + assumed);
  if (program.kernels.empty()) {
    throw InputError(SourcePosition{cubin_path, 0, 0}, "there is no kernel in this cubin", "declare one __global__");
  }
  return program;
}

const Kernel& Program::kernel(const std::string& name) const {
  const Kernel& found = named(name);
  const auto unknown = not_understood.find(found.name);
  if (unknown != not_understood.end())
    throw InputError(
        SourcePosition{path, 0, 0},
        "kernel " + found.demangled + " has instructions that are not understood:" + unknown->second,
        "report them; --assume-opcodes takes them as ordinary ALU instructions, at the price of wrong addresses "
        "or counts where they matter");
  return found;
}

const Kernel& Program::named(const std::string& name) const {
  std::vector<const Kernel*> exact, whole_name, prefix;
  for (const Kernel& candidate : kernels) {
    const std::string_view demangled = without_return_type(candidate.demangled);
    if (candidate.name == name || candidate.demangled == name || demangled == name) exact.push_back(&candidate);
    if (!name.empty() && demangled.substr(0, demangled.find('(')) == name) whole_name.push_back(&candidate);
    if (!name.empty() && (demangled.starts_with(name) || candidate.demangled.starts_with(name)))
      prefix.push_back(&candidate);
  }
  for (const auto* matches : {&exact, &whole_name, &prefix}) {
    if (matches->size() == 1) return *matches->front();
    if (matches->empty()) continue;
    std::string list;
    for (const Kernel* match : *matches) list += "\n    " + match->demangled;
    throw InputError(SourcePosition{path, 0, 0}, "more than one kernel begins with '" + name + "':" + list,
                     "write more of the name");
  }
  std::string list;
  for (const Kernel& candidate : kernels) list += "\n    " + candidate.demangled;
  throw InputError(SourcePosition{path, 0, 0}, "there is no kernel '" + name + "'; the cubin has:" + list,
                   "name one of them, or a prefix of one");
}

}  // namespace forewarp
