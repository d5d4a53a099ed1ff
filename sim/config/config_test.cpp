#include "config/config.h"

#include <catch2/catch.hpp>
#include <string>

using namespace forewarp;
using Catch::Matchers::Contains;
using config::Map;
using config::Node;

namespace {

Node yaml(const std::string& text) { return config::parse(text, "x.yaml"); }

/// The message of the InputError that `run` throws.
template <class Run>
std::string message(Run run) {
  try {
    run();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

Node leaf(const std::string& text) { return yaml("v: " + text).entries().at(0).value; }

}  // namespace

TEST_CASE("a closed map gives its values") {
  int warps = 0;
  double clock = 0;
  std::string name;
  bool on = false, absent = true;
  yaml("warps: 64\nclock: 1.98\nname: 'h200'\non: true\n").read_map([&](Map& m) {
    warps = static_cast<int>(m.at("warps").integer(1, 64));
    clock = m.at("clock").number(0.1, 3);
    name = m.at("name").string();
    on = m.at("on").boolean();
    absent = m.find("comment").has_value();
  });
  CHECK(warps == 64);
  CHECK(clock == 1.98);
  CHECK(name == "h200");
  CHECK(on);
  CHECK_FALSE(absent);
}

TEST_CASE("keys that nobody asked for are errors with the accepted ones") {
  const std::string text = message([] {
    yaml("sm:\n  warps: 1\n  wraps: 2\n").read_map([](Map& m) {
      m.at("sm").read_map([](Map& sm) {
        sm.at("warps").integer();
        sm.find("blocks");
      });
    });
  });
  CHECK_THAT(text, Contains("x.yaml:3:3: sm has the unknown key 'wraps'; did you mean 'warps'?"));
  CHECK_THAT(text, Contains("accepted: warps, blocks"));
}

TEST_CASE("missing keys point at the map and at a likely misspelling") {
  const std::string text = message([] { yaml("gird: 1\n").read_map([](Map& m) { m.at("grid"); }); });
  CHECK_THAT(text, Contains("x.yaml:1:1: lacks the key 'grid'"));
  CHECK_THAT(text, Contains("'gird'"));
}

TEST_CASE("repeated keys are found at any depth") {
  CHECK_THAT(message([] { yaml("a: {b: 1, c: 2,\n b: 3}"); }),
             Contains("x.yaml:2:2: key 'b' is repeated") && Contains("line 1"));
  CHECK_THAT(message([] { yaml("a: 1\na: 1\n"); }), Contains("x.yaml:2:1"));
}

TEST_CASE("documents that are none or several are errors") {
  CHECK_THAT(message([] { yaml(""); }), Contains("is empty"));
  CHECK_THAT(message([] { yaml("# nothing\n"); }), Contains("is empty"));
  CHECK_THAT(message([] { yaml("a: 1\n---\nb: 1\n"); }), Contains("second document"));
  CHECK_THAT(message([] { yaml("a: [1, 2\nb: 3\n"); }), Contains("not valid YAML") && Contains("x.yaml:2:"));
  CHECK_THAT(message([] { config::read_file("/nonexistent/x.yaml"); }), Contains("cannot be opened"));
}

TEST_CASE("integers are read whole and within their range") {
  CHECK(leaf("0x10").integer() == 16);
  CHECK(leaf("-3").integer() == -3);
  CHECK(leaf("18446744073709551615").unsigned_integer() == ~0ULL);
  for (const char* bad : {"1.5", "1e3", "'5'", "abc", "", "[1]", "{a: 1}", "5x", "0x", "99999999999999999999", "--1"})
    CHECK_THAT(message([&] { leaf(bad).integer(); }), Contains("v must be an integer"));
  CHECK_THAT(message([] { leaf("-1").unsigned_integer(); }), Contains("not '-1'"));
  CHECK_THAT(message([] { leaf("65").integer(1, 64); }),
             Contains("x.yaml:1:4: v must be an integer from 1 to 64, not '65'"));
  CHECK_THAT(message([] { leaf("0").integer(1); }), Contains("of at least 1"));
}

TEST_CASE("numbers are finite and within their range") {
  CHECK(leaf("-1").number() == -1.0);
  CHECK(leaf("2.5e-3").number() == 2.5e-3);
  for (const char* bad : {"nan", "inf", ".inf", "1.5x", "1e999", "'1'", "true"})
    CHECK_THAT(message([&] { leaf(bad).number(); }), Contains("v must be a number"));
  CHECK_THAT(message([] { leaf("3").number(0, 1.5); }), Contains("from 0 to 1.5"));
}

TEST_CASE("other leaves") {
  CHECK(leaf("5").string() == "5");
  CHECK_THAT(message([] { leaf("''").string(); }), Contains("must not be empty"));
  CHECK_THAT(message([] { leaf("").string(); }), Contains("must be a text, not empty"));
  CHECK_THAT(message([] { leaf("yes").boolean(); }), Contains("true or false"));
  CHECK(leaf("warm").choice({"cold", "warm"}) == 1);
  CHECK_THAT(message([] {
               leaf("tepid").choice({"cold", "warm"});
             }),
             Contains("'tepid'") && Contains("accepted: cold, warm"));
}

TEST_CASE("lists have sizes, and their items have places") {
  const auto items = leaf("[1, x]").list(1, 3);
  CHECK(items.size() == 2);
  CHECK(items[0].integer() == 1);
  CHECK_THAT(message([&] { items[1].integer(); }), Contains("x.yaml:1:8: v[1] must be an integer, not 'x'"));
  CHECK_THAT(message([] { leaf("[]").list(1, 3); }), Contains("1 to 3 values, not 0"));
  CHECK_THAT(message([] { leaf("[1]").list(3, 3); }), Contains("list of 3 values"));
  CHECK_THAT(message([] { leaf("1").list(); }), Contains("must be a list"));
}

TEST_CASE("open maps keep order and places") {
  const auto entries = yaml("b: 1\na: 2\n").entries();
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].key == "b");
  CHECK(entries[1].where.text() == "x.yaml:2:1");
  CHECK(entries[1].value.path() == "a");
}

TEST_CASE("scalars of a copy are rewritten in their places") {
  const Node node = yaml("a: {x: [1, \"2\"], y: keep}\n");
  const Node inner = node.entries().at(0).value;
  const Node other = rewrite(inner, [](const Node& scalar) -> std::optional<std::string> {
    if (scalar.string() == "keep") return std::nullopt;
    return scalar.string() + "0";
  });
  const auto entries = other.entries();
  CHECK(entries[0].value.list()[0].integer() == 10);
  CHECK(entries[0].value.list()[1].integer() == 20);  // no longer quoted
  CHECK(entries[0].value.list()[1].where().text() == "x.yaml:1:12");
  CHECK(entries[1].value.string() == "keep");
  CHECK(overlay(other, yaml("y: over\n"), "").entries().at(1).value.string() == "over");
  CHECK(inner.entries().at(0).value.list()[0].integer() == 1);
  const auto wrapped = wrap("b", other).entries();
  CHECK(wrapped.size() == 1);
  CHECK(wrapped[0].key == "b");
  CHECK(wrapped[0].value.entries()[1].value.string() == "keep");
}

TEST_CASE("aliases repeat what they name") {
  const auto entries = yaml("a: &q {x: 1}\nb: *q\n").entries();
  CHECK(entries[1].value.entries().at(0).value.integer() == 1);
  CHECK_THAT(message([] { yaml("a: &q [*q]\n"); }), Contains("x.yaml:1:"));
  std::string bomb = "a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string before = std::string("*a") += static_cast<char>('0' + i - 1);
    const std::string name = std::string("a") += static_cast<char>('0' + i);
    bomb += name + ": &" + name + " [" + before;
    for (int j = 1; j < 10; ++j) bomb += ", " + before;
    bomb += "]\n";
  }
  CHECK_THAT(message([&] { yaml(bomb); }), Contains("more than a million values"));
}
