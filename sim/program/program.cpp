#include "program/program.h"

#include <xxhash.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/kernel_name.h"
#include "program/cubin_image.h"
#include "program/decode.h"
#include "program/disassembly.h"
#include "program/fatbin.h"
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

/// Joins the code of a kernel with its disassembly.
class Assembler {
 public:
  Assembler(const std::string& path, int sm, UnknownForms& unknown) : path_(path), sm_(sm), unknown_(unknown) {}

  /// `text`: one entry for each of the kernel's instructions. Printed addresses count from `base`, or, without one,
  /// from the first instruction of each section.
  Kernel assemble(LinkedKernel&& linked, const std::vector<const TextInstruction*>& text,
                  std::optional<std::uint32_t> base, const std::string& origin) const {
    Kernel kernel = std::move(linked.kernel);
    DecodeContext context;
    context.sm = sm_;
    context.operand.code_bytes = static_cast<std::uint32_t>(linked.code.size()) * kInstructionBytes;
    context.operand.symbol = [&](std::string_view name) { return function_offset(kernel, name); };
    std::size_t differing = 0;
    auto call = linked.calls.begin();
    auto piece = linked.pieces.begin();
    kernel.instructions.reserve(linked.code.size());
    kernel.text.reserve(linked.code.size());
    for (std::size_t i = 0; i < linked.code.size(); ++i) {
      const auto offset = static_cast<std::uint32_t>(i) * kInstructionBytes;
      context.place = kernel.name + "+" + hex(offset);
      context.operand.code = linked.code[i];
      context.operand.address = offset;
      if (piece + 1 != linked.pieces.end() && i >= (piece + 1)->first) ++piece;
      context.operand.base = base ? *base : 0 - piece->first * kInstructionBytes;
      context.operand.immediate = static_cast<std::uint32_t>(linked.code[i].bits(32, 32));
      while (call != linked.calls.end() && call->first < offset) ++call;
      context.operand.target.reset();
      if (call != linked.calls.end() && call->first == offset) context.operand.target = call->second;
      if (!guard_matches(*text[i], linked.code[i])) {
        fail_foreign(origin,
                     "the guard of '" + readable(*text[i]) + "' at " + context.place + " is another one in the code");
      }
      kernel.instructions.push_back(decode(*text[i], context, unknown_));
      kernel.text.push_back(readable(*text[i]));
      const Instruction& instruction = kernel.instructions.back();
      if (instruction.opcode != Opcode::Unknown && instruction.native != instruction.opcode) ++differing;
    }
    if (differing * kAliasShare > linked.code.size()) {
      fail_foreign(origin, std::to_string(differing) + " of the " + std::to_string(linked.code.size()) +
                               " instructions of '" + kernel.name + "' are other operations in the code");
    }
    for (const auto& [branch, targets] : linked.indirect_branches) {
      IndirectBranch indirect{branch / kInstructionBytes, {}};
      for (const std::uint32_t target : targets) {
        if (target / kInstructionBytes < linked.code.size()) indirect.targets.push_back(target / kInstructionBytes);
      }
      kernel.indirect_branches.push_back(std::move(indirect));
    }
    return kernel;
  }

  [[noreturn]] void fail_foreign(const std::string& origin, const std::string& why) const {
    throw InputError(SourcePosition{origin, 0, 0}, "this is not the disassembly of " + path_ + ": " + why,
                     "write it again with: nvdisasm -json " + path_ + " > " + path_ + ".json");
  }

 private:
  static std::optional<std::uint32_t> function_offset(const Kernel& kernel, std::string_view name) {
    for (const Function& function : kernel.functions) {
      if (function.name == name) return function.first * kInstructionBytes;
    }
    return std::nullopt;
  }

  const std::string& path_;
  int sm_;
  UnknownForms& unknown_;
};

/// The disassembly of a whole cubin, by section.
class WrittenText {
 public:
  WrittenText(const std::string& path, const CubinImage& image, Disassembly&& disassembly)
      : path_(path), disassembly_(std::move(disassembly)) {
    if (disassembly_.sm != 0 && disassembly_.sm != image.sm())
      fail("it is for sm_" + std::to_string(disassembly_.sm) + ", the cubin for sm_" + std::to_string(image.sm()));
    for (const auto& [name, count] : image.code_sections()) sections_[name].resize(count, nullptr);
    place_functions();
  }

  const std::string& origin() const { return disassembly_.origin; }

  std::vector<const TextInstruction*> of(const LinkedKernel& kernel) const {
    std::vector<const TextInstruction*> text;
    for (const LinkedKernel::Piece& piece : kernel.pieces) {
      const auto& lines = sections_.at(piece.section);
      for (std::size_t i = 0; i < lines.size(); ++i) {
        if (lines[i] == nullptr)
          fail("it has no instruction at " + hex(static_cast<std::uint32_t>(i) * kInstructionBytes) + " of '" +
               piece.section + "', whose code has " + std::to_string(lines.size()));
      }
      text.insert(text.end(), lines.begin(), lines.end());
    }
    return text;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    UnknownForms none;
    Assembler(path_, 0, none).fail_foreign(disassembly_.origin, why);
  }

  /// A function that starts at 0 opens its section; the ones after it lie in the same.
  void place_functions() {
    std::vector<const TextInstruction*>* section = nullptr;
    for (const DisassembledFunction& function : disassembly_.functions) {
      if (function.start == 0) {
        const auto found = sections_.find(function.name);
        if (found == sections_.end()) fail("the cubin has no function '" + function.name + "'");
        section = &found->second;
      }
      if (section == nullptr) fail("it begins inside a section");
      const std::uint32_t first = function.start / kInstructionBytes;
      if (function.start % kInstructionBytes != 0 || first + function.instructions.size() > section->size())
        fail("'" + function.name + "' is longer than its code");
      for (std::size_t i = 0; i < function.instructions.size(); ++i) {
        if ((*section)[first + i] != nullptr) fail("'" + function.name + "' overlaps another function");
        (*section)[first + i] = &function.instructions[i];
      }
    }
  }

  const std::string& path_;
  Disassembly disassembly_;
  std::map<std::string, std::vector<const TextInstruction*>> sections_;
};

/// The identifier in front of a name's template or function arguments. A kernel's symbol contains it.
std::string_view last_identifier(std::string_view name) {
  name = without_return_type(name);
  name = name.substr(0, name.find_first_of("<("));
  std::size_t begin = name.size();
  while (begin > 0 && (std::isalnum(static_cast<unsigned char>(name[begin - 1])) || name[begin - 1] == '_')) --begin;
  return name.substr(begin);
}

/// Kernels that a name can mean, of those shown to it: the best fits.
class NameSearch {
 public:
  explicit NameSearch(std::string name) : name_(std::move(name)), identifier_(last_identifier(name_)) {}

  void show(std::size_t cubin, std::size_t kernel, std::string_view symbol) {
    if (symbol == name_) symbol_found_ = true;
    if (symbol != name_ && (symbol_found_ || symbol.find(identifier_) == std::string_view::npos)) return;
    const NameFit how = symbol == name_ ? NameFit::Exact : name_fit(name_, symbol, demangle(std::string(symbol)));
    if (how == NameFit::None || how < best_) return;
    if (how > best_) found_.clear();
    best_ = how;
    if (found_.size() < kMostCandidates) found_.emplace(cubin, kernel);
  }

  bool symbol_found() const { return symbol_found_; }
  const std::set<std::pair<std::size_t, std::size_t>>& found() const { return found_; }

 private:
  static constexpr std::size_t kMostCandidates = 16;  // more than one is an error that shows them
  std::string name_;
  std::string identifier_;
  NameFit best_ = NameFit::None;
  bool symbol_found_ = false;
  std::set<std::pair<std::size_t, std::size_t>> found_;  ///< cubin and kernel
};

class ImageLoader {
 public:
  ImageLoader(const std::string& path, const ImageOptions& options) : path_(path), options_(options), file_(path) {
    choose_cubins();
    program_.path = path;
  }

  Program run(const std::function<void(const ImagePart&, Kernel&&)>& use) {
    std::set<std::pair<std::size_t, std::size_t>> wanted;
    if (options_.kernels) wanted = search();
    for (std::size_t c = 0; c < cubins_.size(); ++c) {
      const auto begin = wanted.lower_bound({c, 0}), end = wanted.lower_bound({c + 1, 0});
      if (options_.kernels && begin == end && !alone()) continue;
      std::vector<std::size_t> kernels;
      for (auto k = begin; k != end; ++k) kernels.push_back(k->second);
      load(c, options_.kernels ? &kernels : nullptr, use);
    }
    report_unknown();
    return std::move(program_);
  }

 private:
  /// Code that is handed to nvdisasm at once.
  static constexpr std::size_t kBatchBytes = std::size_t{256} << 10;

  bool alone() const { return cubins_.size() == 1; }
  std::string cubin_path(std::size_t c) const {
    return alone() ? path_ : path_ + ", cubin " + std::to_string(c + 1) + " of " + std::to_string(cubins_.size());
  }

  /// Those of the architecture that is asked for, or of the newest that is understood. What has been written for sm_90a
  /// comes first: the driver takes it where both are there.
  void choose_cubins() {
    std::vector<EmbeddedCubin> all = find_cubins(file_.bytes());
    std::set<int> architectures;
    for (const EmbeddedCubin& cubin : all) architectures.insert(cubin.sm);
    if (all.empty())
      throw InputError(SourcePosition{path_, 0, 0},
                       file_.bytes().size() > 4 && file_.bytes()[0] == 0x7f && file_.bytes()[1] == 'E'
                           ? "this ELF file holds no 64-bit CUDA code"
                           : "this is not a cubin: it is neither an ELF file nor a fat binary",
                       "make a cubin with nvcc -cubin -arch=sm_80 (or sm_90)");
    int sm = options_.sm;
    if (architectures == std::set<int>{0}) {
      sm = 0;  // a cubin by itself
    } else if (sm == 0) {
      for (const int each : {80, 90})
        if (architectures.contains(each)) sm = each;
    }
    std::stable_partition(all.begin(), all.end(), [](const EmbeddedCubin& cubin) { return cubin.accelerated; });
    for (const EmbeddedCubin& cubin : all)
      if (cubin.sm == sm) cubins_.push_back(cubin);
    program_.sm = sm;
    if (!cubins_.empty()) return;
    std::string list;
    for (const int each : architectures) list += (list.empty() ? "sm_" : ", sm_") + std::to_string(each);
    throw InputError(SourcePosition{path_, 0, 0},
                     "it holds code for " + list +
                         (sm == 0 ? "; sm_80 and sm_90 are understood" : ", none for sm_" + std::to_string(sm)),
                     "compile with nvcc -gencode arch=compute_90,code=sm_90 (or 80)");
  }

  /// The bytes of a cubin; those of a packed one stay until the next call.
  std::span<const std::uint8_t> bytes_of(std::size_t c) {
    const std::span<const std::uint8_t> bytes = unpack(cubins_[c], buffer_);
    if (cubins_[c].packing != Packing::None) file_.release(cubins_[c].stored);
    if (bytes.empty()) throw InputError(SourcePosition{cubin_path(c), 0, 0}, "its packed bytes are damaged");
    return bytes;
  }

  std::set<std::pair<std::size_t, std::size_t>> search() {
    std::vector<NameSearch> searches;
    for (const std::string& name : *options_.kernels) searches.emplace_back(name);
    std::set<std::string> shown;
    for (std::size_t c = 0; c < cubins_.size(); ++c) {
      const CubinImage image(cubin_path(c), bytes_of(c));
      for (std::size_t k = 0; k < image.kernels().size(); ++k) {
        const std::string_view symbol = image.kernels()[k];
        if (!alone() && !shown.emplace(symbol).second) continue;  // the first of several of the same name
        for (NameSearch& one : searches) one.show(c, k, symbol);
        if (program_.others.size() < kMostOthers) program_.others.emplace_back(symbol);
      }
      if (std::all_of(searches.begin(), searches.end(), [](const NameSearch& s) { return s.symbol_found(); })) break;
    }
    std::set<std::pair<std::size_t, std::size_t>> found;
    for (const NameSearch& one : searches) found.insert(one.found().begin(), one.found().end());
    return found;
  }

  /// Of one cubin, the kernels in `which`, or all.
  void load(std::size_t c, const std::vector<std::size_t>* which,
            const std::function<void(const ImagePart&, Kernel&&)>& use) {
    const std::string name = cubin_path(c);
    const std::span<const std::uint8_t> bytes = bytes_of(c);
    CubinImage image(name, bytes);
    program_.sm = image.sm();
    add_hash(bytes);
    image.place_data(program_);
    std::optional<WrittenText> written;
    if (alone() && cubins_[c].sm == 0 && options_.instructions) {
      if (auto disassembly = read_disassembly(path_)) written.emplace(path_, image, std::move(*disassembly));
    }
    std::vector<std::size_t> all;
    if (which == nullptr) {
      for (std::size_t k = 0; k < image.kernels().size(); ++k) {
        // The same symbol in another cubin is another instance of the same function.
        if ((alone() || seen_.emplace(image.kernels()[k]).second) && counted_++ % options_.one_in == 0)
          all.push_back(k);
      }
      which = &all;
    }
    const ImagePart part{&program_, c, cubins_.size()};
    std::vector<LinkedKernel> batch;
    std::size_t batch_bytes = 0;
    for (std::size_t i = 0; i < which->size(); ++i) {
      batch.push_back(image.link((*which)[i], program_));
      batch_bytes += batch.back().code.size() * sizeof(CodeWord);
      if (batch_bytes < kBatchBytes && i + 1 < which->size()) continue;
      assemble(part, name, batch, written ? &*written : nullptr, use);
      batch.clear();
      batch_bytes = 0;
    }
  }

  void assemble(const ImagePart& part, const std::string& name, std::vector<LinkedKernel>& batch,
                const WrittenText* written, const std::function<void(const ImagePart&, Kernel&&)>& use) {
    if (!options_.instructions) {
      for (LinkedKernel& kernel : batch) use(part, std::move(kernel.kernel));
      return;
    }
    std::vector<CodeText> texts;
    if (written == nullptr) {
      std::vector<const std::vector<CodeWord>*> sequences;
      for (const LinkedKernel& kernel : batch) sequences.push_back(&kernel.code);
      texts = disassemble(path_, program_.sm, sequences, options_.texts);
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::vector<const TextInstruction*> lines;
      if (written != nullptr) {
        lines = written->of(batch[i]);
      } else {
        for (const TextInstruction& line : texts[i].instructions) lines.push_back(&line);
      }
      UnknownForms unknown;
      Kernel kernel =
          Assembler(path_, program_.sm, unknown)
              .assemble(std::move(batch[i]), lines, written != nullptr ? std::nullopt : std::optional(texts[i].base),
                        written != nullptr ? written->origin() : "nvdisasm -json of " + name);
      if (!unknown.forms.empty()) program_.not_understood[kernel.name] = unknown.list();
      use(part, std::move(kernel));
    }
  }

  void add_hash(std::span<const std::uint8_t> bytes) {
    const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
    const std::uint64_t both[] = {program_.content_hash, hash};
    program_.content_hash = program_.content_hash == 0 ? hash : XXH3_64bits(both, sizeof both);
  }

  void report_unknown() {
    if (options_.unknown == UnknownOpcode::Reject) return;
    std::string assumed;
    for (const auto& [kernel, list] : program_.not_understood) assumed += list;
    program_.not_understood.clear();
    if (!assumed.empty() && options_.warnings != nullptr)
      options_.warnings->push_back(path_ + ": assumed to be ordinary ALU instructions:" + assumed);
  }

  static constexpr std::size_t kMostOthers = 100;

  std::string path_;
  const ImageOptions& options_;
  MappedFile file_;
  std::vector<EmbeddedCubin> cubins_;
  std::vector<std::uint8_t> buffer_;
  std::set<std::string, std::less<>> seen_;
  std::size_t counted_ = 0;
  Program program_;
};

/// The first of a list that may be long, one a line.
std::string listing(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 40;
  std::string list;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) list += "\n    " + names[i];
  return names.size() > kMost ? list + "\n    ... (forewarp list shows all)" : list;
}

}  // namespace

void for_each_kernel(const std::string& path, const ImageOptions& options,
                     const std::function<void(const ImagePart&, Kernel&&)>& use) {
  ImageLoader(path, options).run(use);
}

Program load_program(const std::string& path, const ImageOptions& options) {
  std::vector<Kernel> kernels;
  Program program =
      ImageLoader(path, options).run([&](const ImagePart&, Kernel&& kernel) { kernels.push_back(std::move(kernel)); });
  program.kernels = std::move(kernels);
  if (program.kernels.empty() && program.others.empty())
    throw InputError(SourcePosition{path, 0, 0}, "there is no kernel in this cubin", "declare one __global__");
  return program;
}

Program load_program(const std::string& path, UnknownOpcode unknown, std::vector<std::string>* warnings) {
  ImageOptions options;
  options.unknown = unknown;
  options.warnings = warnings;
  return load_program(path, options);
}

namespace {

/// Those that the name fits best.
std::vector<const Kernel*> matching(const std::vector<Kernel>& kernels, const std::string& name) {
  NameFit best = NameFit::None;
  std::vector<const Kernel*> matches;
  for (const Kernel& candidate : kernels) {
    const NameFit how = name_fit(name, candidate.name, candidate.demangled);
    if (how == NameFit::None || how < best) continue;
    if (how > best) matches.clear();
    best = how;
    matches.push_back(&candidate);
  }
  return matches;
}

}  // namespace

const Kernel* Program::find(const std::string& name) const {
  const std::vector<const Kernel*> matches = matching(kernels, name);
  return matches.size() == 1 ? matches.front() : nullptr;
}

const Kernel& Program::kernel(const std::string& name) const {
  const std::vector<const Kernel*> matches = matching(kernels, name);
  if (matches.size() == 1) return *matches.front();
  std::vector<std::string> names;
  if (!matches.empty()) {
    for (const Kernel* match : matches) names.push_back(match->demangled);
    throw InputError(SourcePosition{path, 0, 0}, "more than one kernel begins with '" + name + "':" + listing(names),
                     "write more of the name");
  }
  for (const Kernel& candidate : kernels) names.push_back(candidate.demangled);
  for (const std::string& symbol : others) {
    std::string demangled = demangle(symbol);
    if (std::find(names.begin(), names.end(), demangled) == names.end()) names.push_back(std::move(demangled));
  }
  throw InputError(SourcePosition{path, 0, 0}, "there is no kernel '" + name + "'; the image has:" + listing(names),
                   "name one of them, or a prefix of one");
}

}  // namespace forewarp
