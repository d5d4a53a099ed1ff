#include "sweep/sweep_file.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.h"

using namespace forewarp;
using namespace forewarp::sweep;
using Catch::Matchers::Contains;

namespace {

SweepFile read(const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / "forewarp_sweep_file_test.yaml").string();
  write_file(path, text);
  try {
    SweepFile file = read_sweep_file(path, {"kernel", "sketch"});
    std::filesystem::remove(path);
    return file;
  } catch (...) {
    std::filesystem::remove(path);
    throw;
  }
}

const std::string kHead = "kernel: {image: a.cubin}\ngpu: h200-sxm\n";

std::vector<std::string> points(const std::string& text) {
  std::vector<std::string> all;
  for (const Point& point : read(kHead + text).points) all.push_back(point_text(point));
  return all;
}

}  // namespace

TEST_CASE("variables combine, the last one fastest", "[sweep]") {
  CHECK(points("vary: {n: [1, 2], gpu: [a, b]}") ==
        std::vector<std::string>{"n = 1, gpu = a", "n = 1, gpu = b", "n = 2, gpu = a", "n = 2, gpu = b"});
}

TEST_CASE("points are listed, and combine with what varies", "[sweep]") {
  CHECK(points("points: [{n: 1, k: 8}, {k: 9, n: 2}]\nvary: {c: [5, 6]}") ==
        std::vector<std::string>{"n = 1, k = 8, c = 5", "n = 1, k = 8, c = 6", "n = 2, k = 9, c = 5",
                                 "n = 2, k = 9, c = 6"});
}

TEST_CASE("ranges step, grow or divide", "[sweep]") {
  CHECK(points("vary: {n: {from: 1, to: 7, step: 3}}") == std::vector<std::string>{"n = 1", "n = 4", "n = 7"});
  CHECK(points("vary: {n: {from: 32, to: 200, factor: 2}}") == std::vector<std::string>{"n = 32", "n = 64", "n = 128"});
  CHECK(points("vary: {n: {from: 0, to: 1, count: 3}}") == std::vector<std::string>{"n = 0", "n = 0.5", "n = 1"});
  CHECK(points("vary: {n: {from: 0.1, to: 0.3, step: 0.1}}").size() == 3);
}

TEST_CASE("`where` leaves points out", "[sweep]") {
  CHECK(points("vary: {n: [1, 2, 3], m: [1, 2, 3]}\nwhere: n * m == 3") ==
        std::vector<std::string>{"n = 1, m = 3", "n = 3, m = 1"});
}

TEST_CASE("what is better is said with the metric", "[sweep]") {
  const SweepFile file =
      read(kHead + "vary: {n: [1]}\nbest: {highest: rate}\nderive: {rate: n / gpu__time_duration.sum}\n");
  CHECK(file.best.metric == "rate");
  CHECK(file.best.highest);
  CHECK(file.best.better(2, 1));
  CHECK_FALSE(read(kHead + "vary: {n: [1]}").best.highest);
}

TEST_CASE("a sweep file that makes no sense is an error with its place", "[sweep]") {
  CHECK_THROWS_WITH(read("gpu: h200-sxm\nvary: {n: [1]}"),
                    Contains("does not say what is predicted") && Contains("kernel or sketch"));
  CHECK_THROWS_WITH(read(kHead), Contains("varies nothing"));
  CHECK_THROWS_WITH(read(kHead + "vray: {n: [1]}"), Contains("did you mean 'vary'?") && Contains(":3:1"));
  CHECK_THROWS_WITH(read(kHead + "vary: {n: {from: 1, to: 2}}"), Contains("one of step, factor and count"));
  CHECK_THROWS_WITH(read(kHead + "vary: {n: {from: 0, to: 1e9, step: 0.1}}"), Contains("more than a million values"));
  CHECK_THROWS_WITH(read(kHead + "vary: {a: {from: 1, to: 5000, step: 1}, b: {from: 1, to: 5000, step: 1}}"),
                    Contains("more than a million points"));
  CHECK_THROWS_WITH(read(kHead + "points: [{n: 1}]\nvary: {n: [2]}"), Contains("'n' values in two places"));
  CHECK_THROWS_WITH(read(kHead + "points: [{n: 1}, {m: 1}]"), Contains("the variables of the first point"));
  CHECK_THROWS_WITH(read(kHead + "vary: {n: [1]}\nwhere: n > 1"), Contains("leaves no point"));
  CHECK_THROWS_WITH(read(kHead + "vary: {2n: [1]}"), Contains("is not letters, digits and _"));
  CHECK_THROWS_WITH(read(kHead + "vary: {n: [=2]}"), Contains("is a formula"));
  CHECK_THROWS_WITH(read(kHead + "sketch: {}\nvary: {n: [1]}"), Contains("stands beside kernel"));
}
