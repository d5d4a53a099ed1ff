#include "program/disassembly.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
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
    function.instructions.push_back(std::move(instruction));
  }
  return function;
}

Disassembly parse(const std::string& origin, const std::string& text) {
  json document;
  try {
    document = json::parse(text);
  } catch (const json::parse_error& error) {
    fail(origin, std::string(error.what()));
  }
  if (!document.is_array() || document.size() != 2 || !document[0].is_object() || !document[1].is_array()) {
    fail(origin, "it is no pair of a header and a list of functions");
  }
  Disassembly result;
  result.origin = origin;
  const json version = document[0].value("/SM/version"_json_pointer, json::object());
  if (version.is_object()) {
    result.sm = version.value("major", 0) * 10 + version.value("minor", 0);
  }
  for (const json& function : document[1]) result.functions.push_back(read_function(function, origin));
  return result;
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

/// Runs nvdisasm with the path as an argument of its own: no shell sees it.
std::string run_nvdisasm(const std::string& cubin_path) {
  // A path that begins with '-' must not look like an option.
  std::string path = cubin_path.starts_with('-') ? "./" + cubin_path : cubin_path;
  std::string program = "nvdisasm", option = "-json";
  std::array<char*, 4> arguments{program.data(), option.data(), path.data(), nullptr};

  Pipe2 output;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int spawned = posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) {
    throw InputError(SourcePosition{cubin_path, 0, 0},
                     "there is no disassembly: " + cubin_path + ".json does not exist and nvdisasm is not on the PATH",
                     "write it elsewhere with: nvdisasm -json FILE.cubin > FILE.cubin.json, or install nvdisasm "
                     "(the wheel nvidia-cuda-nvdisasm carries it)");
  }
  output.close_end(1);
  std::string text = read_all(output.ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw InputError(SourcePosition{cubin_path, 0, 0}, "nvdisasm -json failed on this cubin",
                     "nvdisasm of CUDA 12.8 or later writes JSON; run it by hand to see its message");
  }
  return text;
}

}  // namespace

Disassembly read_disassembly(const std::string& cubin_path) {
  const std::string beside = cubin_path + ".json";
  std::error_code ignored;
  if (std::filesystem::exists(beside, ignored)) return parse(beside, read_text_file(beside));
  return parse("nvdisasm -json " + cubin_path, run_nvdisasm(cubin_path));
}

}  // namespace forewarp
