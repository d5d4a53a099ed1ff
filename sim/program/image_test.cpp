// Files that hold cubins, and kernels loaded by themselves.
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "program/analysis.h"
#include "program/disassembly.h"
#include "program/fatbin.h"
#include "program/test_support.h"

using namespace forewarp;
using Catch::Matchers::Contains;

namespace {

using Bytes = std::vector<std::uint8_t>;

template <class T>
void put(Bytes& out, T value) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(&value);
  out.insert(out.end(), at, at + sizeof value);
}

struct Entry {
  std::uint32_t sm;
  std::uint64_t flags;
  Bytes stored;
  std::uint64_t unpacked;
};

Bytes fatbin_of(const std::vector<Entry>& entries) {
  Bytes body;
  for (const Entry& e : entries) {
    put(body, std::uint16_t{2});
    put(body, std::uint16_t{0x101});
    put(body, std::uint32_t{64});
    put(body, std::uint64_t{(e.stored.size() + 7) / 8 * 8});
    put(body, static_cast<std::uint32_t>(e.stored.size()));
    put(body, std::uint32_t{0});
    put(body, std::uint32_t{0x00080001});
    put(body, e.sm);
    put(body, std::uint64_t{0});
    put(body, e.flags);
    put(body, std::uint64_t{0});
    put(body, e.unpacked);
    body.insert(body.end(), e.stored.begin(), e.stored.end());
    body.resize((body.size() + 7) / 8 * 8);
  }
  Bytes file;
  put(file, std::uint32_t{0xba55ed50});
  put(file, std::uint16_t{1});
  put(file, std::uint16_t{16});
  put(file, std::uint64_t{body.size()});
  file.insert(file.end(), body.begin(), body.end());
  return file;
}

struct DataSection {
  std::string name;
  std::uint64_t flags;
  Bytes content;
  std::size_t shift;  ///< bytes in front of the content
};

/// An ELF file of a host with these sections.
Bytes program_with(const std::vector<DataSection>& sections) {
  Bytes file(64), headers(64), names{0};
  const auto add = [&](const std::string& name, std::uint32_t type, std::uint64_t flags, std::uint64_t offset,
                       std::uint64_t size) {
    put(headers, static_cast<std::uint32_t>(names.size()));
    put(headers, type);
    for (const std::uint64_t field :
         {flags, std::uint64_t{0}, offset, size, std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0}})
      put(headers, field);
    names.insert(names.end(), name.begin(), name.end());
    names.push_back(0);
  };
  for (const DataSection& s : sections) {
    const std::size_t at = file.size();
    file.insert(file.end(), s.shift, 0);
    file.insert(file.end(), s.content.begin(), s.content.end());
    add(s.name, 1, s.flags, at, file.size() - at);
  }
  add(".shstrtab", 3, 0, file.size(), 0);
  file.insert(file.end(), names.begin(), names.end());
  const std::uint64_t table = file.size();
  const auto count = static_cast<std::uint16_t>(headers.size() / 64);
  file.insert(file.end(), headers.begin(), headers.end());
  std::memcpy(file.data(), "\177ELF\2\1\1", 7);
  file[18] = 62;  // EM_X86_64
  std::memcpy(file.data() + 0x28, &table, 8);
  std::memcpy(file.data() + 0x3c, &count, 2);
  const auto last = static_cast<std::uint16_t>(count - 1);
  std::memcpy(file.data() + 0x3e, &last, 2);
  return file;
}

void write(const std::string& path, const Bytes& bytes) {
  write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

/// LZ4 without copies: one run of bytes as they are.
Bytes stored_as_lz4(const Bytes& bytes) {
  Bytes out{0xf0};
  std::size_t rest = bytes.size() - 15;
  for (; rest >= 255; rest -= 255) out.push_back(255);
  out.push_back(static_cast<std::uint8_t>(rest));
  out.insert(out.end(), bytes.begin(), bytes.end());
  return out;
}

Bytes unpacked(const Entry& entry) {
  const Bytes file = fatbin_of({entry});
  const auto cubins = find_cubins(file);
  REQUIRE(cubins.size() == 1);
  Bytes buffer;
  const auto bytes = unpack(cubins[0], buffer);
  return {bytes.begin(), bytes.end()};
}

std::string load_error(const std::string& path, int sm = 0) {
  try {
    ImageOptions options;
    options.sm = sm;
    load_program(path, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// PATH with a nvdisasm that prints one text whatever it is given, for the time of a test.
class FakeDisassembler {
 public:
  explicit FakeDisassembler(const std::string& output) : before_(std::getenv("PATH")) {
    write_file(folder_.path("nvdisasm"),
               "#!/bin/sh\n[ $# = 4 ] && [ \"$1$2$3\" = -json-bSM90a ] && [ -f \"$4\" ] || exit 1\necho run >>'" +
                   folder_.path("runs") + "'\nexec /bin/cat '" + output + "'\n");
    chmod(folder_.path("nvdisasm").c_str(), 0755);
    setenv("PATH", folder_.folder().c_str(), 1);
  }
  ~FakeDisassembler() { setenv("PATH", before_.c_str(), 1); }
  std::size_t runs() const { return read_text_file(folder_.path("runs")).size() / 4; }

 private:
  std::string before_;
  test::Scratch folder_;
};

class KeptTexts : public TextStore {
 public:
  std::optional<std::string> get(std::uint64_t high, std::uint64_t low) const override {
    const auto found = texts_.find({high, low});
    return found == texts_.end() ? std::nullopt : std::optional(found->second);
  }
  void put(std::uint64_t high, std::uint64_t low, const std::string& text) const override {
    texts_[{high, low}] = text;
  }

 private:
  mutable std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> texts_;
};

std::vector<std::string> described(const Kernel& kernel) {
  std::vector<std::string> lines;
  for (const Instruction& instruction : kernel.instructions) lines.push_back(test::describe(instruction));
  return lines;
}

}  // namespace

TEST_CASE("cubins are found in what carries them, packed or not") {
  const Bytes cubin = read_binary_file(test::data("separate_sm90.cubin"));
  Bytes zstd(ZSTD_compressBound(cubin.size()));
  zstd.resize(ZSTD_compress(zstd.data(), zstd.size(), cubin.data(), cubin.size(), 3));
  CHECK(unpacked({90, 0x11, cubin, 0}).size() == (cubin.size() + 7) / 8 * 8);  // as stored, with its padding
  CHECK(unpacked({90, 0x8011, zstd, cubin.size()}) == cubin);
  CHECK(unpacked({90, 0x2011, stored_as_lz4(cubin), cubin.size()}) == cubin);

  SECTION("behind other bytes, as in an archive; sm_90a is told from sm_90") {
    Bytes file{'!', '<', 'a', 'r', 'c', 'h', '>', '\n'};
    const Bytes fatbin = fatbin_of({{80, 0x11, cubin, 0}, {90, 0x11, cubin, 0}, {90, 0x100011, cubin, 0}});
    file.insert(file.end(), fatbin.begin(), fatbin.end());
    const auto cubins = find_cubins(file);
    REQUIRE(cubins.size() == 3);
    CHECK(cubins[0].sm == 80);
    CHECK(!cubins[1].accelerated);
    CHECK(cubins[2].accelerated);
  }
  SECTION("in a program's data, at any place; behind those in the sections that are meant for them") {
    const auto cubins = find_cubins(program_with({{".ldata", 2, fatbin_of({{80, 0x11, cubin, 0}}), 3},
                                                  {".text", 4, fatbin_of({{90, 0x11, cubin, 0}}), 0},
                                                  {".nv_fatbin", 2, fatbin_of({{90, 0x100011, cubin, 0}}), 0}}));
    REQUIRE(cubins.size() == 2);
    CHECK(cubins[0].accelerated);
    CHECK(cubins[1].sm == 80);
    std::vector<std::uint8_t> buffer;
    CHECK(unpack(cubins[1], buffer).size() == (cubin.size() + 7) / 8 * 8);
  }
  SECTION("what is damaged gives nothing, and takes no memory") {
    CHECK(unpacked({90, 0x8011, {1, 2, 3}, 1000}).empty());
    CHECK(unpacked({90, 0x8011, zstd, std::uint64_t{1} << 60}).empty());
    CHECK(unpacked({90, 0x8011, zstd, cubin.size() + 1}).empty());
    CHECK(unpacked({90, 0x2011, {0xf0}, 100}).empty());
    CHECK(unpacked({90, 0x2011, {0x10, 7, 2, 0}, 100}).empty());     // copies from before the start
    CHECK(unpacked({90, 0x2011, {0x10, 7, 0, 0}, 100}).empty());     // copies from itself
    CHECK(unpacked({90, 0x2011, {0x1f, 7, 1, 0, 255}, 9}).empty());  // copies past the end
    Bytes cut = fatbin_of({{90, 0x11, cubin, 0}});
    for (std::size_t size = 0; size < cut.size(); size += 97) find_cubins(std::span(cut).first(size));
    std::memset(cut.data() + 16 + 8, 0xff, 8);  // the entry's size
    CHECK(find_cubins(cut).empty());
  }
}

TEST_CASE("LZ4 repeats what went before") {
  // Three bytes, then ten that begin three back, then two as they are.
  const Bytes text = unpacked({90, 0x2011, {0x36, 'a', 'b', 'c', 3, 0, 0x20, 'x', 'y'}, 15});
  CHECK(std::string(text.begin(), text.end()) == "abcabcabcabcaxy");
}

TEST_CASE("the architecture chooses among the cubins of a file") {
  const test::Scratch scratch;
  const std::string path = scratch.path("a.fatbin");
  write(path, fatbin_of({{80, 0x11, read_binary_file(test::data("separate_sm80.cubin")), 0}}));
  CHECK_THAT(load_error(path, 90), Contains("holds code for sm_80, none for sm_90"));
  write(path, fatbin_of({{75, 0x11, read_binary_file(test::data("foreign_sm75.cubin")), 0}}));
  CHECK_THAT(load_error(path), Contains("holds code for sm_75; sm_80 and sm_90 are understood"));
  write(path, fatbin_of({{90, 0x8011, {1, 2, 3}, 1000}}));
  CHECK_THAT(load_error(path), Contains("damaged"));
}

TEST_CASE("a callee in another section is linked behind the kernel") {
  for (const char* name : {"separate_sm80.cubin", "separate_sm90.cubin"}) {
    INFO(name);
    const Program program = load_program(test::data(name));
    const Kernel& kernel = program.kernel("separate");
    REQUIRE(kernel.functions.size() == 2);
    CHECK(kernel.functions[0].name == "separate");
    CHECK(kernel.functions[1].name == "_Z6seriesfi");
    CHECK(kernel.functions[1].first == kernel.functions[0].count);
    CHECK(program.module_data.size() == 256);  // factors[64]
    CHECK(program.not_understood.empty());
    std::uint32_t call = 0, halves = 0;
    for (std::uint32_t i = 0; i < kernel.functions[1].first; ++i) {
      const Instruction& in = kernel.instructions[i];
      if (in.opcode == Opcode::CALL) call = i;
      for (const Operand& o : in.operands)  // the lower half of the variable's address
        if (o.kind == OperandKind::Immediate && o.immediate == (kModuleDataAddress >> 32)) ++halves;
    }
    CHECK(halves == 1);
    REQUIRE(call != 0);
    CHECK(kernel.instructions[call].operands[0].immediate == kernel.functions[1].first);
    const ControlFlow flow(kernel);
    for (std::uint32_t i = kernel.functions[1].first; i < flow.size(); ++i) {
      if (kernel.instructions[i].opcode != Opcode::RET) continue;
      REQUIRE(flow.successors(i).size() == 1);
      CHECK(flow.successors(i)[0] == call + 1);
    }
  }
}

TEST_CASE("a kernel from a packed fat binary is the one from its cubin, and its text is kept") {
  const FakeDisassembler disassembler(test::data("separate_sm90.code.json"));
  const KeptTexts texts;
  ImageOptions options;
  options.sm = 90;
  options.kernels = {"separate"};
  options.texts = &texts;
  const Program packed = load_program(test::data("separate.fatbin"), options);
  const Program plain = load_program(test::data("separate_sm90.cubin"));
  CHECK(packed.sm == 90);
  CHECK(packed.content_hash == plain.content_hash);
  CHECK(packed.module_data == plain.module_data);
  CHECK(described(packed.kernel("separate")) == described(plain.kernel("separate")));
  CHECK(disassembler.runs() == 1);
  const Program again = load_program(test::data("separate.fatbin"), options);
  CHECK(described(again.kernel("separate")) == described(plain.kernel("separate")));
  CHECK(disassembler.runs() == 1);
}

TEST_CASE("only the kernels that are asked for are loaded") {
  ImageOptions options;
  options.kernels = {"halves", "shape::integers<int>"};
  const Program program = load_program(test::data("forms_sm90.cubin"), options);
  CHECK(program.kernels.size() == 2);
  CHECK(program.kernel("halves").instructions.size() > 0);
  CHECK_THROWS_WITH(program.kernel("calls"), Contains("there is no kernel 'calls'"));
  options.kernels = {"shape::integers", "nothing"};
  const Program several = load_program(test::data("forms_sm90.cubin"), options);
  CHECK_THROWS_WITH(several.kernel("shape::integers"), Contains("more than one kernel"));
  CHECK_THROWS_WITH(several.kernel("nothing"), Contains("there is no kernel 'nothing'") && Contains("halves"));
}

TEST_CASE("functions come from the cubin's symbols, however the disassembly divides a section") {
  const test::Scratch scratch;
  const std::string cubin = scratch.copy(test::data("forms_sm90.cubin"), "forms.cubin");
  // nvdisasm 13.5 lists one function a section.
  auto json = nlohmann::json::parse(read_text_file(test::data("forms_sm90.cubin.json")));
  nlohmann::json merged = nlohmann::json::array();
  for (const auto& function : json[1]) {
    if (function["start"] == 0) {
      merged.push_back(function);
      continue;
    }
    for (const auto& line : function["sass-instructions"]) merged.back()["sass-instructions"].push_back(line);
  }
  json[1] = merged;
  write_file(cubin + ".json", json.dump());
  const Program divided = load_program(test::data("forms_sm90.cubin")), whole = load_program(cubin);
  REQUIRE(whole.kernels.size() == divided.kernels.size());
  for (std::size_t k = 0; k < whole.kernels.size(); ++k) {
    const Kernel &a = whole.kernels[k], &b = divided.kernels[k];
    INFO(a.name);
    REQUIRE(a.functions.size() == b.functions.size());
    for (std::size_t f = 0; f < a.functions.size(); ++f) CHECK(a.functions[f].first == b.functions[f].first);
    const ControlFlow one(a), other(b);
    for (std::uint32_t i = 0; i < one.size(); ++i) {
      const auto x = one.successors(i), y = other.successors(i);
      CHECK(std::equal(x.begin(), x.end(), y.begin(), y.end()));
    }
  }
}

TEST_CASE("a file that is no regular file is not waited for") {
  const test::Scratch scratch;
  mkfifo(scratch.path("pipe").c_str(), 0600);
  CHECK_THAT(load_error(scratch.path("pipe")), Contains("no regular file"));
  CHECK_THAT(load_error(scratch.folder()), Contains("no regular file"));
}
