#include "program/line_table.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "base/file.h"
#include "program/program.h"
#include "program/test_support.h"

using namespace forewarp;
using namespace forewarp::test;

namespace {

/// DWARF 2 header for one file, then a program.
std::vector<std::uint8_t> table(std::vector<std::uint8_t> program) {
  std::vector<std::uint8_t> header{1, 1, 0xfb, 14, 10, 0, 1,
                                   1, 1, 1,    0,  0,  0, 1};  // line base -5, range 14, opcode base 10
  header.push_back(0);                                         // no folders
  for (const char c : std::string("k.cu")) header.push_back(static_cast<std::uint8_t>(c));
  header.insert(header.end(), {0, 0, 0, 0, 0});
  std::vector<std::uint8_t> unit{2, 0};  // version
  unit.insert(unit.end(), {static_cast<std::uint8_t>(header.size()), 0, 0, 0});
  unit.insert(unit.end(), header.begin(), header.end());
  unit.insert(unit.end(), program.begin(), program.end());
  std::vector<std::uint8_t> all(4 + unit.size());
  all[0] = static_cast<std::uint8_t>(unit.size());
  std::copy(unit.begin(), unit.end(), all.begin() + 4);
  return all;
}

/// set address (its eight bytes are a relocation's), line 7, copy, one instruction on and line 8, end.
const std::vector<std::uint8_t> kProgram{0, 9, 2, 0, 0, 0, 0, 0, 0, 0, 0, 3, 6, 1, 240, 2, 16, 0, 1, 1};
constexpr std::uint64_t kAddressAt = 34 + 3;

}  // namespace

TEST_CASE("rows of a line table") {
  const auto rows = read_line_table(table(kProgram), {{kAddressAt, 5}});
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].section == 5);
  CHECK(rows[0].address == 0);
  CHECK(rows[0].place == "k.cu:7");
  CHECK(rows[1].address == 16);
  CHECK(rows[1].place == "k.cu:8");
  CHECK(rows[2].address == 32);
  CHECK(rows[2].place.empty());
}

TEST_CASE("what is inlined from another file stands for the line that calls it") {
  // Line 7, copy; inlined into row 1: file 2, line 107, copy; no longer: file 1, line 8, copy.
  std::vector<std::uint8_t> program(kProgram.begin(), kProgram.begin() + 11);
  program.insert(program.end(), {3, 6, 1, 0, 3, 0x90, 1, 0, 4, 2, 3, 0xe4, 0, 1});
  program.insert(program.end(), {0, 3, 0x90, 0, 0, 4, 1, 3, 0x9d, 0x7f, 1, 2, 16, 0, 1, 1});
  const auto rows = read_line_table(table(program), {{kAddressAt, 5}});
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].place == "k.cu:7");
  CHECK(rows[1].place == "k.cu:7");
  CHECK(rows[2].place == "k.cu:8");
}

TEST_CASE("a damaged line table gives what can be read, and nothing is touched beyond it") {
  const std::vector<std::uint8_t> good = table(kProgram);
  CHECK(read_line_table({}, {}).empty());
  CHECK(read_line_table(good, {}).empty());  // nobody says which function it is about
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK(read_line_table(std::span(good).first(size), {{kAddressAt, 0}}).size() <= 3);
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const int bit : {0, 3, 7}) {
      std::vector<std::uint8_t> bad = good;
      bad[at] = static_cast<std::uint8_t>(bad[at] ^ (1 << bit));
      CHECK(read_line_table(bad, {{kAddressAt, 0}}).size() <= bad.size());
    }
}

TEST_CASE("instructions know their source lines") {
  // Expected as `nvdisasm -g` prints them.
  const Program program = load_program(data("lines_sm90.cubin"));
  const Kernel& scale = program.kernel("scale");
  REQUIRE(scale.source.size() == scale.instructions.size());
  CHECK(scale.source[0] == "lines.cu:6");
  CHECK(scale.source[1] == "lines.cu:7");
  CHECK(scale.source[5] == "lines.cu:8");
  CHECK(scale.source[13] == "lines.cu:3");  // inlined
  CHECK(scale.source[14] == "lines.cu:11");
  CHECK(scale.source[20] == "lines.cu:12");
  CHECK(program.kernel("fill").source[0] == "lines.cu:14");
  CHECK(load_program(data("forms_sm90.cubin")).kernels.front().source.empty());
}
