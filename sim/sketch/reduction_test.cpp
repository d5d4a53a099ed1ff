#include <catch2/catch.hpp>
#include <cmath>

#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::floats;
using test::gpu;
using test::Run;

constexpr std::size_t kRows = 5;

std::string sketch(const std::string& operation, std::size_t columns, const std::string& more) {
  return "r: {reduction: {operation: " + operation + ", shape: [5, " + std::to_string(columns) + "]" + more + "}}";
}

TEST_CASE("rows are reduced as on the host", "[sketch]") {
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"})
    for (const std::size_t columns : {300ul, 64ul, 1000ul})
      for (const char* more : {"", ", vector: 4", ", vector: 2, block: 96", ", block: 32"}) {
        CAPTURE(name, columns, more);
        const Run softmax(sketch("softmax", columns, more), gpu(name));
        const Run norm(sketch("layer_norm", columns, more), gpu(name));
        const Run sum(sketch("sum", columns, more), gpu(name));
        const std::vector<float> x = floats(softmax.start("in")), p = floats(softmax.end("out")),
                                 n = floats(norm.end("out")), gamma = floats(norm.start("gamma")),
                                 beta = floats(norm.start("beta")), s = floats(sum.end("out"));
        double worst = 0;
        for (std::size_t r = 0; r < kRows; ++r) {
          double total = 0, mean = 0, variance = 0;
          for (std::size_t c = 0; c < columns; ++c) {
            total += std::exp(static_cast<double>(x[r * columns + c]));
            mean += static_cast<double>(x[r * columns + c]) / static_cast<double>(columns);
          }
          for (std::size_t c = 0; c < columns; ++c)
            variance += std::pow(static_cast<double>(x[r * columns + c]) - mean, 2) / static_cast<double>(columns);
          for (std::size_t c = 0; c < columns; ++c) {
            const auto e = static_cast<double>(x[r * columns + c]);
            worst = std::max(worst, std::abs(std::exp(e) / total - static_cast<double>(p[r * columns + c])));
            const double expected =
                (e - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(gamma[c]) + static_cast<double>(beta[c]);
            worst = std::max(worst, std::abs(expected - static_cast<double>(n[r * columns + c])));
          }
          CHECK(static_cast<double>(s[r]) == Approx(mean * static_cast<double>(columns)).margin(1e-3));
        }
        CHECK(worst < 1e-5);
      }
}

}  // namespace
}  // namespace forewarp::sketch
