#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::floats;
using test::gpu;
using test::Run;

std::vector<float> halves(const std::vector<std::uint8_t>& bytes) {
  std::vector<float> f(bytes.size() / 2);
  for (std::size_t i = 0; i < f.size(); ++i) {
    _Float16 h = 0;
    std::memcpy(&h, bytes.data() + 2 * i, 2);
    f[i] = static_cast<float>(h);
  }
  return f;
}

double worst(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& c, std::size_t m,
             std::size_t n, std::size_t k) {
  double most = 0;
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < k; ++l) sum += static_cast<double>(a[i * k + l]) * static_cast<double>(b[l * n + j]);
      most = std::max(most, std::abs(sum - static_cast<double>(c[i * n + j])));
    }
  return most;
}

TEST_CASE("products equal the host's, with whole tiles and without", "[sketch]") {
  struct Shape {
    std::size_t m, n, k;
  };
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"})
    for (const Shape s : {Shape{64, 64, 64}, Shape{136, 264, 104}}) {
      const std::string shape =
          "shape: [" + std::to_string(s.m) + ", " + std::to_string(s.n) + ", " + std::to_string(s.k) + "]";
      for (const char* design :
           {"", ", ahead: false", ", tile: [128, 256, 32], warp: [64, 64], stages: 4",
            ", tile: [64, 64, 64], warp: [32, 32], stages: 2", ", ahead: false, stages: 4, tile: [128, 64, 32]"}) {
        CAPTURE(name, s.m, design);
        const Run run("p: {matmul: {" + shape + design + "}}", gpu(name));
        CHECK(worst(halves(run.start("a")), halves(run.start("b")), halves(run.end("c")), s.m, s.n, s.k) < 0.02);
      }
      for (const char* design : {"", ", tile: [64, 64, 16], thread: [4, 4]"}) {
        CAPTURE(name, s.m, design);
        const Run run("p: {matmul: {type: f32, " + shape + design + "}}", gpu(name));
        CHECK(worst(floats(run.start("a")), floats(run.start("b")), floats(run.end("c")), s.m, s.n, s.k) < 1e-4);
      }
    }
}

}  // namespace
}  // namespace forewarp::sketch
