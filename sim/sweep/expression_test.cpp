#include "sweep/expression.h"

#include <catch2/catch.hpp>

using namespace forewarp;
using namespace forewarp::sweep;
using Catch::Matchers::Contains;

namespace {

const Point kPoint{{"n", "1000", 1000}, {"tile", "128", 128}, {"gpu", "h200-sxm"}, {"x.y", "2.5", 2.5}};

std::string error(const std::string& formula) {
  try {
    evaluate(formula, kPoint);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a formula has the value of its variables", "[sweep]") {
  CHECK(evaluate("n / tile", kPoint) == 7.8125);
  CHECK(evaluate("ceil(n / tile)", kPoint) == 8);
  CHECK(evaluate("floor(n / tile) + round(2.6)", kPoint) == 10);
  CHECK(evaluate("n % tile", kPoint) == 104);
  CHECK(evaluate("2^10 * min(3, 4)", kPoint) == 3072);
  CHECK(evaluate("n > 500 && tile != 64 ? 1 : 2", kPoint) == 1);
  CHECK(evaluate("x.y * 2", kPoint) == 5);
}

TEST_CASE("a formula that has no value says why", "[sweep]") {
  CHECK_THAT(error("m / 2"),
             Contains("formula 'm / 2'") && Contains("\"m\"") && Contains("numbers here: n, tile, x.y"));
  CHECK_THAT(error("gpu + 1"), Contains("\"gpu\""));
  CHECK_THAT(error("n / 0"), Contains("is no finite number for n = 1000, tile = 128"));
  CHECK_THAT(error("n = 3"), Contains("assigns a value"));
  CHECK_THAT(error("n +"), Contains("formula 'n +'"));
  CHECK_THAT(error("n, tile"), Contains("several values"));
  CHECK_THAT(error(std::string(2000, '1')), Contains("too long"));
}

TEST_CASE("numbers are written as a launch file reads them", "[sweep]") {
  CHECK(number_text(4194304) == "4194304");
  CHECK(number_text(-3) == "-3");
  CHECK(number_text(0.1) == "0.1");
  CHECK(number_text(7.8125) == "7.8125");
}

TEST_CASE("texts that begin with = are formulas, wherever they stand", "[sweep]") {
  const config::Node node = config::parse(
      "grid: [=ceil(n / tile), \"=max(n, 4)\", 1]\nname: \"=gpu\"\nplain: n\ndeep: {bytes: = n * n * 4}\n",
      "case.yaml");
  resolve(node, kPoint).read_map([](config::Map& m) {
    const std::vector<config::Node> grid = m.at("grid").list();
    CHECK(grid[0].integer() == 8);
    CHECK(grid[1].integer() == 1000);
    CHECK(grid[2].integer() == 1);
    CHECK(m.at("name").string() == "h200-sxm");
    CHECK(m.at("plain").string() == "n");
    m.at("deep").read_map([](config::Map& deep) {
      CHECK(deep.at("bytes").integer() == 4000000);
      CHECK(deep.at("bytes").where().text() == "case.yaml:4:15");
    });
  });
  const config::Node wrong = config::parse("grid:\n  - =n / tyle\n", "case.yaml");
  CHECK_THROWS_WITH(resolve(wrong, kPoint), Contains("case.yaml:2:5") && Contains("tyle"));
}
