#include "report/format.h"

#include <catch2/catch.hpp>

#include "report/table.h"

using namespace forewarp;
using namespace forewarp::report;

TEST_CASE("numbers print the same everywhere") {
  CHECK(count(0) == "0");
  CHECK(count(999) == "999");
  CHECK(count(1234567) == "1,234,567");
  CHECK(fixed(1234.567, 2) == "1,234.57");
  CHECK(fixed(-1234.5, 0) == "-1,234");
  CHECK(fixed(-0.001, 1) == "0.0");
  CHECK(percent_text(12.345) == "12.3 %");
  CHECK(signed_percent(102, 100) == "+2.0 %");
  CHECK(signed_percent(97, 100) == "-3.0 %");
  CHECK(signed_percent(1, 0) == "-");
  CHECK(si(4.81e12, "B/s") == "4.81 TB/s");
  CHECK(si(999.7, "B") == "1.00 kB");
  CHECK(si(12, "B") == "12 B");
  CHECK(si(0, "B") == "0 B");
  CHECK(duration(512) == "512 ns");
  CHECK(duration(258843.2) == "259 us");
  CHECK(duration(1.5e9) == "1.50 s");
  CHECK(address(26) == "0x01a0");
  CHECK(left("abcdef", 4) == "ab..");
  CHECK(right("ab", 4) == "  ab");
}

TEST_CASE("tones change no width of a table") {
  const auto table = [](Tone tone) {
    Table t({{"name", Table::Left}, {"error", Table::Right}, {"", Table::Left}});
    t.row({{"a", tone}, {"+12.0 %", tone}, ""});
    t.row({"longer", {"-3.1 %", tone}, {"note", tone}});
    return t;
  };
  const std::string plain = table(Tone::Plain).text("  ");
  CHECK(table(Tone::Error).text("  ") == plain);
  std::string coloured = table(Tone::Error).text("  ", Style(true));
  CHECK(coloured.find(Style(true).paint(Tone::Error, "-3.1 %")) != std::string::npos);
  for (std::size_t at = 0; at < coloured.size();)
    if (const std::size_t code = Style(true).code_length(std::string_view(coloured).substr(at)); code > 0)
      coloured.erase(at, code);
    else
      ++at;
  CHECK(coloured == plain);
}

TEST_CASE("tables are as wide as their cells") {
  Table t({{"name", Table::Left}, {"n", Table::Right}});
  t.row({"a", "1,000"});
  t.row({"longer", "2"});
  CHECK(t.text("") == "name        n\n------  -----\na       1,000\nlonger      2\n");
}
