#include "program/program.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "program/test_support.h"

using namespace forewarp;
using Catch::Matchers::Contains;
using test::load_error;

namespace {

/// PATH for the time of a test.
class ScopedPath {
 public:
  explicit ScopedPath(const std::string& value) : before_(std::getenv("PATH") ? std::getenv("PATH") : "") {
    setenv("PATH", value.c_str(), 1);
  }
  ~ScopedPath() { setenv("PATH", before_.c_str(), 1); }
  ScopedPath(const ScopedPath&) = delete;
  ScopedPath& operator=(const ScopedPath&) = delete;

 private:
  std::string before_;
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::string lookup_error(const Program& program, const std::string& name) {
  try {
    program.kernel(name);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// forms_sm80 with its disassembly, as a damaged copy: `edit` changes the JSON.
template <typename Edit>
std::string error_after(const test::Scratch& scratch, Edit edit) {
  const std::string cubin = scratch.copy(test::data("forms_sm80.cubin"), "forms.cubin");
  std::string json = read_text_file(test::data("forms_sm80.cubin.json"));
  edit(json);
  write_file(cubin + ".json", json);
  return load_error(cubin);
}

}  // namespace

TEST_CASE("every cubin in traces/ loads without an unknown form") {
  int cubins = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::trace(""))) {
    if (entry.path().extension() != ".cubin" || !std::filesystem::exists(entry.path().string() + ".json")) continue;
    INFO(entry.path().string());
    CHECK(load_error(entry.path().string()) == "");
    ++cubins;
  }
  CHECK(cubins > 0);
}

TEST_CASE("a copy's target is read where other versions of nvdisasm write it") {
  const test::Scratch scratch;
  const std::string cubin = scratch.copy(test::data("forms_sm90.cubin"), "forms.cubin");
  std::string json = read_text_file(test::data("forms_sm90.cubin.json"));
  const std::string ours = "[R9],desc[UR10][R2.64]", theirs = "desc[UR10][R2.64][R9]";
  const std::size_t at = json.find(ours);
  REQUIRE(at != std::string::npos);
  json.replace(at, ours.size(), theirs);
  write_file(cubin + ".json", json);
  const Program usual = load_program(test::data("forms_sm90.cubin")), other = load_program(cubin);
  const Kernel &a = usual.kernel("shared_memory"), &b = other.kernel("shared_memory");
  CHECK(a.text == b.text);
  REQUIRE(a.instructions.size() == b.instructions.size());
  for (std::size_t i = 0; i < a.instructions.size(); ++i) {
    const Instruction &usual_one = a.instructions[i], &other_one = b.instructions[i];
    REQUIRE(usual_one.operand_count == other_one.operand_count);
    for (std::size_t k = 0; k < usual_one.operand_count; ++k) {
      CHECK(usual_one.operands[k].kind == other_one.operands[k].kind);
      CHECK(usual_one.operands[k].index == other_one.operands[k].index);
    }
  }
}

TEST_CASE("a kernel's attributes are what the source says") {
  const Program old_program = load_program(test::data("forms_sm80.cubin"));
  const Program new_program = load_program(test::data("forms_sm90.cubin"));
  CHECK(old_program.sm == 80);
  CHECK(new_program.sm == 90);
  CHECK(old_program.content_hash != new_program.content_hash);
  for (const Program* program : {&old_program, &new_program}) {
    const bool is_new = program->sm == 90;
    const Kernel& shared = program->kernel("shared_memory");
    CHECK(shared.parameter_base == (is_new ? 0x210 : 0x160));
    REQUIRE(shared.parameters.size() == 4);  // int4*, int*, unsigned char*, int
    CHECK(shared.parameters[0].size == 8);
    CHECK(shared.parameters[3].offset == 24);
    CHECK(shared.parameters[3].size == 4);
    CHECK(shared.parameter_bytes == 28);
    CHECK(shared.static_shared_bytes == 528);  // short[256], unsigned, then 16-byte alignment for the dynamic part
    CHECK(shared.shared_base == (is_new ? 0x400 : 0));
    CHECK(shared.barrier_count == 2);
    CHECK(shared.max_threads == 1024);

    const Kernel& calls = program->kernel("calls");
    CHECK(calls.max_threads == 128);  // __launch_bounds__(128, 2)
    CHECK(calls.local_bytes == 160);  // float[40]
    CHECK(calls.functions.size() == 3);
    CHECK(calls.functions[0].name == "calls");
    CHECK(calls.functions[0].first == 0);
    CHECK(calls.instructions.size() == calls.text.size());

    const Kernel& floats = program->kernel("floats");
    CHECK(!floats.indirect_branches.empty());  // its switch
    bool has_user_bank = false;
    for (const ConstantBank& bank : floats.constants) has_user_bank |= bank.bank == 3 && bank.bytes.size() == 64 * 4;
    CHECK(has_user_bank);  // __constant__ float table[64]
    for (const Kernel& kernel : program->kernels) {
      INFO(kernel.name);
      CHECK(kernel.registers > 0);
      std::uint32_t next = 0;
      for (const Function& function : kernel.functions) {
        CHECK(function.first == next);
        next += function.count;
      }
      CHECK(next == kernel.instructions.size());
    }
  }
}

TEST_CASE("kernels are found by symbol, by name and by unique prefix") {
  const Program program = load_program(test::data("forms_sm90.cubin"));
  CHECK(program.kernel("halves").name == "halves");
  CHECK(program.kernel("hal").name == "halves");
  CHECK(program.kernel("_ZN5shape8integersIiEEvPKT_PS1_ij").registers > 0);
  CHECK(program.kernel("shape::integers<int>").name == "_ZN5shape8integersIiEEvPKT_PS1_ij");
  CHECK(program.kernel("void shape::integers<long long>(long long const*, long long*, int, unsigned int)").name ==
        "_ZN5shape8integersIxEEvPKT_PS1_ij");
  CHECK_THAT(lookup_error(program, "shape::integers"),
             Contains("more than one kernel") && Contains("integers<int>") && Contains("integers<long long>"));
  CHECK_THAT(lookup_error(program, "sgemm"), Contains("there is no kernel 'sgemm'") && Contains("halves"));
  CHECK(lookup_error(program, "") != "");
}

TEST_CASE("damaged or foreign cubins are bad input") {
  const test::Scratch scratch;
  SECTION("missing") { CHECK(load_error(scratch.path("none.cubin")) != ""); }
  SECTION("no ELF file") {
    write_file(scratch.path("a.cubin"), "// a text file, not a cubin");
    CHECK_THAT(load_error(scratch.path("a.cubin")), Contains("not a cubin"));
    write_file(scratch.path("a.cubin"), "");
    CHECK_THAT(load_error(scratch.path("a.cubin")), Contains("not a cubin"));
  }
  SECTION("an ELF file of this machine") { CHECK_THAT(load_error("/proc/self/exe"), Contains("no 64-bit CUDA code")); }
  SECTION("another architecture") {
    CHECK_THAT(load_error(test::data("foreign_sm75.cubin")), Contains("sm_75") && Contains("-arch=sm_80"));
  }
  SECTION("cut short anywhere") {
    const std::string whole = read_text_file(test::data("forms_sm80.cubin"));
    scratch.copy(test::data("forms_sm80.cubin.json"), "cut.cubin.json");
    for (std::size_t part = 0; part < 64; ++part) {
      write_file(scratch.path("cut.cubin"), whole.substr(0, whole.size() * part / 64));
      INFO(part << "/64");
      CHECK(load_error(scratch.path("cut.cubin")) != "");
    }
  }
}

TEST_CASE("a disassembly that is not this cubin's is bad input") {
  const test::Scratch scratch;
  SECTION("of another architecture") {
    const std::string error =
        error_after(scratch, [](std::string& json) { json = read_text_file(test::data("forms_sm90.cubin.json")); });
    CHECK_THAT(error, Contains("not the disassembly") && Contains("sm_90"));
  }
  SECTION("of another program") {
    const std::string other = test::trace("sm_80/matmul_03_shared_tiled.cubin.json");
    CHECK_THAT(error_after(scratch, [&](std::string& json) { json = read_text_file(other); }),
               Contains("not the disassembly") && Contains("nvdisasm -json"));
  }
  SECTION("with an instruction less") {
    CHECK_THAT(error_after(scratch,
                           [](std::string& json) {
                             const std::size_t at = json.find("{\"opcode\"");
                             json.erase(at, json.find('}', at) + 2 - at);
                           }),
               Contains("not the disassembly"));
  }
  SECTION("with another guard") {
    CHECK_THAT(error_after(scratch, [](std::string& json) { json.replace(json.find("@P0"), 3, "@P1"); }),
               Contains("not the disassembly") && Contains("guard"));
  }
  SECTION("with other operations throughout") {
    CHECK_THAT(error_after(scratch, [](std::string& json) { replace_all(json, "\"IMAD", "\"FFMA"); }),
               Contains("other operations in the code"));
  }
  SECTION("no JSON") {
    CHECK_THAT(error_after(scratch, [](std::string& json) { json.resize(json.size() / 2); }),
               Contains("nvdisasm -json writes"));
    for (const char* odd : {R"([{"SM": {"version": {"major": "9"}}}, []])", R"([{"SM": [9]}, []])", "[1e400]"})
      CHECK_THAT(error_after(scratch, [&](std::string& json) { json = odd; }), Contains("nvdisasm -json writes"));
    CHECK_THAT(error_after(scratch, [](std::string& json) { json = "{}"; }), Contains("nvdisasm -json writes"));
    CHECK_THAT(error_after(scratch, [](std::string& json) { json = "[{}, [{\"function-name\": 3}]]"; }),
               Contains("nvdisasm -json writes"));
  }
}

TEST_CASE("without a JSON file nvdisasm on the PATH is asked, without a shell") {
  const test::Scratch scratch;
  const std::string cubin = scratch.copy(test::data("forms_sm80.cubin"), "a $(touch hacked) '\".cubin");
  SECTION("there is none") {
    const ScopedPath path(scratch.folder());
    CHECK_THAT(load_error(cubin), Contains("there is no disassembly") && Contains("nvdisasm"));
  }
  SECTION("it fails") {
    write_file(scratch.path("nvdisasm"), "#!/bin/sh\nexit 3\n");
    chmod(scratch.path("nvdisasm").c_str(), 0755);
    const ScopedPath path(scratch.folder());
    CHECK_THAT(load_error(cubin), Contains("nvdisasm -json failed"));
  }
  SECTION("it gives fewer instructions than there are") {
    scratch.copy(test::data("separate_sm90.code.json"), "output");
    write_file(scratch.path("nvdisasm"), "#!/bin/sh\nexec /bin/cat '" + scratch.path("output") + "'\n");
    chmod(scratch.path("nvdisasm").c_str(), 0755);
    const ScopedPath path(scratch.folder());
    CHECK_THAT(load_error(cubin), Contains("nvdisasm gave 128 instructions for"));
  }
}

TEST_CASE("unknown forms are all listed at once, or assumed") {
  const test::Scratch scratch;
  const std::string load = error_after(scratch, [](std::string& json) {
    replace_all(json, "\"opcode\":\"FSEL\"", "\"opcode\":\"FROB.X\"");
    replace_all(json, "\"opcode\":\"MUFU.SIN\"", "\"opcode\":\"MUFU.SINH\"");
    replace_all(json, "\"operands\":\"R6,c[0x2][R4]\"", "\"operands\":\"R6,q[0x2][R4]\"");
  });
  CHECK(load == "");
  const std::string error = load_program(scratch.path("forms.cubin")).not_understood.at("floats");
  CHECK_THAT(error, Contains("opcode FROB.X: ") && Contains("times, first in floats+0x"));
  CHECK_THAT(error, Contains("modifier .SINH of MUFU: 1 times, first in floats+0x"));
  CHECK_THAT(error, Contains("operands 'R6,q[0x2][R4]' of LDC"));

  std::vector<std::string> warnings;
  const Program program = load_program(scratch.path("forms.cubin"), UnknownOpcode::Assume, &warnings);
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], Contains("FROB.X"));
  int unknown = 0;
  for (const Instruction& instruction : program.kernel("floats").instructions) {
    if (instruction.opcode != Opcode::Unknown) continue;
    ++unknown;
    CHECK(instruction.pipe == Pipe::Alu);
    CHECK(instruction.control.stall > 0);
  }
  CHECK(unknown > 0);
}

TEST_CASE("what is not understood concerns its instruction alone") {
  const test::Scratch scratch;
  error_after(scratch, [](std::string& json) { replace_all(json, "\"opcode\":\"FSEL\"", "\"opcode\":\"FROB.X\""); });
  const Program program = load_program(scratch.path("forms.cubin"));
  CHECK(program.not_understood.contains("floats"));
  CHECK(!program.not_understood.contains("shared_memory"));
  for (const Instruction& instruction : program.kernel("floats").instructions)
    CHECK(instruction.understood == (instruction.opcode != Opcode::Unknown));
}
