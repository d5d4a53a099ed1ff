#include "program/disassembly.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

extern char** environ;

namespace forewarp {
namespace {

using nlohmann::json;

constexpr const char* kRemedy = "write it with: nvdisasm -json FILE.cubin > FILE.cubin.json";

[[noreturn]] void fail(const std::string& origin, const std::string& what) {
  throw InputError(SourcePosition{origin, 0, 0}, "the disassembly is not what nvdisasm -json writes: " + what, kRemedy);
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint32_t number_at(const json& object, const char* key, const std::string& origin) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) fail(origin, std::string("no number '") + key + "'");
  return found->get<std::uint32_t>();
}

/// nvdisasm writes P2R R16,PR,RZ,0x1 with "PR" as its predicate, and puts the guard, if any, where PR belongs.
void restore_predicate_file(TextInstruction& text) {
  if (text.predicate.empty() || text.predicate[0] == '@') return;
  std::string file;
  file.swap(text.predicate);
  const std::size_t comma = text.operands.find(',');
  if (comma == std::string::npos) {
    text.operands += "," + file;
    return;
  }
  std::size_t end = comma + 1;
  if (end < text.operands.size() && text.operands[end] == '@') {
    end = std::min(text.operands.find(',', end), text.operands.size());
    text.predicate = text.operands.substr(comma + 1, end - comma - 1);
    text.operands.replace(comma + 1, end - comma - 1, file);
  } else {
    text.operands.insert(comma + 1, file + ",");
  }
}

/// nvdisasm 13.1 writes where a copy goes behind all else and without a comma: desc[UR8][R4.64],!P0[R3+0x10].
void restore_copy_target(TextInstruction& text) {
  if (!text.opcode.starts_with("LDGSTS") || !text.operands.starts_with("desc[")) return;
  const std::size_t target = text.operands.rfind('[');
  if (std::count(text.operands.begin(), text.operands.end(), '[') < 3) return;
  text.operands = text.operands.substr(target) + "," + text.operands.substr(0, target);
}

DisassembledFunction read_function(const json& object, const std::string& origin) {
  if (!object.is_object()) fail(origin, "a function is no object");
  DisassembledFunction function;
  function.name = text_at(object, "function-name");
  function.start = number_at(object, "start", origin);
  function.length = number_at(object, "length", origin);
  const auto list = object.find("sass-instructions");
  if (function.name.empty() || list == object.end() || !list->is_array()) {
    fail(origin, "a function has no name or no instructions");
  }
  function.instructions.reserve(list->size());
  for (const json& entry : *list) {
    TextInstruction instruction{text_at(entry, "predicate"), text_at(entry, "opcode"), text_at(entry, "operands")};
    if (instruction.opcode.empty()) fail(origin, "an instruction of " + function.name + " has no opcode");
    restore_predicate_file(instruction);
    restore_copy_target(instruction);
    function.instructions.push_back(std::move(instruction));
  }
  return function;
}

Disassembly read_document(const std::string& origin, const json& document) {
  if (!document.is_array() || document.size() != 2 || !document[0].is_object() || !document[1].is_array()) {
    fail(origin, "it is no pair of a header and a list of functions");
  }
  Disassembly result;
  result.origin = origin;
  const json version = document[0].value("/SM/version"_json_pointer, json::object());
  if (version.is_object()) {
    const int major = version.value("major", 0), minor = version.value("minor", 0);
    if (major < 0 || major > 99 || minor < 0 || minor > 9)
      fail(origin, "it is for no compute capability that there is");
    result.sm = major * 10 + minor;
  }
  for (const json& function : document[1]) result.functions.push_back(read_function(function, origin));
  return result;
}

Disassembly parse(const std::string& origin, const std::string& text) {
  try {
    return read_document(origin, json::parse(text));
  } catch (const json::exception& error) {  // syntax, numbers without end, another type than expected
    fail(origin, error.what());
  }
}

/// Ends of a pipe that close themselves.
struct Pipe2 {
  std::array<int, 2> ends{-1, -1};
  Pipe2() {
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw InternalError(std::string("pipe: ") + std::strerror(errno));
  }
  ~Pipe2() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe2(const Pipe2&) = delete;
  Pipe2& operator=(const Pipe2&) = delete;
  void close_end(int which) {
    close(ends[which]);
    ends[which] = -1;
  }
};

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = read(descriptor, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

/// A file that is gone with its owner.
class TemporaryFile {
 public:
  TemporaryFile() {
    std::error_code ignored;
    path_ = (std::filesystem::temp_directory_path(ignored) / "forewarp-code-XXXXXX").string();
    descriptor_ = mkostemp(path_.data(), O_CLOEXEC);
    if (descriptor_ < 0) throw InputError("no file can be made in the folder of temporary files: " + error_text());
  }
  ~TemporaryFile() {
    close(descriptor_);
    unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  void append(const void* bytes, std::size_t count) const {
    const auto* at = static_cast<const char*>(bytes);
    while (count > 0) {
      const ssize_t written = write(descriptor_, at, count);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw InputError(SourcePosition{path_, 0, 0}, "cannot be written: " + error_text());
      at += written;
      count -= static_cast<std::size_t>(written);
    }
  }

 private:
  static std::string error_text() { return std::strerror(errno); }
  std::string path_;
  int descriptor_ = -1;
};

/// Runs nvdisasm over bare code; no shell sees any argument. `image` is what the code is of, for messages.
std::string run_nvdisasm(const std::string& image, int sm, const std::string& code_path) {
  std::string path = code_path, program = "nvdisasm", json_option = "-json", binary_option = "-b";
  std::string architecture = sm == 90 ? "SM90a" : "SM" + std::to_string(sm);  // sm_90a is sm_90 and more
  std::array<char*, 6> arguments{program.data(),      json_option.data(), binary_option.data(),
                                 architecture.data(), path.data(),        nullptr};

  Pipe2 output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    throw InputError(
        SourcePosition{image, 0, 0},
        "there is no disassembly: " + image + ".json does not exist and nvdisasm is not on the PATH",
        "install nvdisasm (the wheel nvidia-cuda-nvdisasm carries it), or write the disassembly of a cubin "
        "elsewhere with: nvdisasm -json FILE.cubin > FILE.cubin.json");
  }
  output.close_end(1);
  std::string text = read_all(output.ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw InputError(SourcePosition{image, 0, 0}, "nvdisasm -json failed on this code",
                     "nvdisasm of CUDA 12.8 or later writes JSON; run nvdisasm -json on a cubin by hand to see its "
                     "message");
  }
  return text;
}

// In a store: the base, then a line an instruction of guard, opcode and operands, with tabs between them.
std::string packed(const CodeText& text) {
  std::string lines = std::to_string(text.base) + "\n";
  for (const TextInstruction& i : text.instructions)
    lines.append(i.predicate).append("\t").append(i.opcode).append("\t").append(i.operands).append("\n");
  return lines;
}

std::optional<CodeText> unpacked(const std::string& lines, std::size_t instructions) {
  CodeText text;
  const std::string_view all = lines;
  std::size_t at = all.find('\n');
  if (at == std::string_view::npos) return std::nullopt;
  std::from_chars(all.data(), all.data() + at, text.base);
  while (++at < all.size()) {
    const std::size_t end = all.find('\n', at), first = all.find('\t', at), second = all.find('\t', first + 1);
    if (end == std::string_view::npos || second == std::string_view::npos || second > end) return std::nullopt;
    text.instructions.push_back({std::string(all.substr(at, first - at)),
                                 std::string(all.substr(first + 1, second - first - 1)),
                                 std::string(all.substr(second + 1, end - second - 1))});
    at = end;
  }
  if (text.instructions.size() != instructions) return std::nullopt;
  return text;
}

struct TextKey {
  std::uint64_t high = 0, low = 0;
};
TextKey key_of(const std::vector<CodeWord>& code, int sm) {
  const XXH128_hash_t hash =
      XXH3_128bits_withSeed(code.data(), code.size() * sizeof(CodeWord), static_cast<XXH64_hash_t>(sm));
  return {hash.high64, hash.low64};
}

}  // namespace

std::optional<Disassembly> read_disassembly(const std::string& cubin_path) {
  const std::string beside = cubin_path + ".json";
  std::error_code ignored;
  if (!std::filesystem::exists(beside, ignored)) return std::nullopt;
  return parse(beside, read_text_file(beside));
}

std::vector<CodeText> disassemble(const std::string& path, int sm,
                                  std::span<const std::vector<CodeWord>* const> sequences, const TextStore* store) {
  std::vector<CodeText> texts(sequences.size());
  std::vector<std::size_t> missing;
  std::uint64_t bytes = 0;
  std::optional<TemporaryFile> file;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<CodeWord>& code = *sequences[i];
    if (store != nullptr) {
      const TextKey key = key_of(code, sm);
      if (const auto kept = store->get(key.high, key.low)) {
        if (auto text = unpacked(*kept, code.size())) {
          texts[i] = std::move(*text);
          continue;
        }
      }
    }
    if (!file) file.emplace();
    file->append(code.data(), code.size() * sizeof(CodeWord));
    texts[i].base = static_cast<std::uint32_t>(bytes);
    bytes += code.size() * sizeof(CodeWord);
    missing.push_back(i);
  }
  if (bytes == 0) return texts;

  Disassembly printed = parse("nvdisasm -json of " + path, run_nvdisasm(path, sm, file->path()));
  std::vector<TextInstruction> all;
  for (DisassembledFunction& function : printed.functions)
    std::move(function.instructions.begin(), function.instructions.end(), std::back_inserter(all));
  if (all.size() * sizeof(CodeWord) != bytes)
    throw InputError(
        SourcePosition{path, 0, 0},
        "nvdisasm gave " + std::to_string(all.size()) + " instructions for " + std::to_string(bytes / sizeof(CodeWord)),
        "take nvdisasm of CUDA 12.8 to 13.5");
  auto next = all.begin();
  for (const std::size_t i : missing) {
    const auto end = next + static_cast<std::ptrdiff_t>(sequences[i]->size());
    texts[i].instructions.assign(std::make_move_iterator(next), std::make_move_iterator(end));
    next = end;
    if (store == nullptr) continue;
    const TextKey key = key_of(*sequences[i], sm);
    store->put(key.high, key.low, packed(texts[i]));
  }
  return texts;
}

}  // namespace forewarp
