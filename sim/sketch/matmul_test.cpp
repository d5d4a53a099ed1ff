#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::brains;
using test::floats;
using test::gpu;
using test::halves;
using test::Run;

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

std::vector<float> turned(const std::vector<float>& b, std::size_t rows, std::size_t columns) {
  std::vector<float> t(b.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) t[c * rows + r] = b[r * columns + c];
  return t;
}

struct Sizes {
  std::size_t m, n, k;
};
std::string shape_of(const Sizes& s) {
  return "shape: [" + std::to_string(s.m) + ", " + std::to_string(s.n) + ", " + std::to_string(s.k) + "]";
}

/// Of a product of halves, whose design says which factors lie by columns.
double worst_of(const Run& run, const Sizes& s, const std::string& design) {
  std::vector<float> a = halves(run.start("a")), b = halves(run.start("b"));
  if (design.find("a: columns") != std::string::npos) a = turned(a, s.k, s.m);
  if (design.find("b: columns") != std::string::npos) b = turned(b, s.n, s.k);
  return worst(a, b, halves(run.end("c")), s.m, s.n, s.k);
}

TEST_CASE("products by other ways through the tiles", "[sketch]") {
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"})
    for (const Sizes s : {Sizes{128, 128, 64}, Sizes{392, 200, 232}})
      for (const char* design :
           {", split_k: 3, tile: [64, 64, 32], warp: [32, 32]", ", split_k: 8", ", persistent: true",
            ", persistent: true, order: 2, tile: [64, 64, 32], warp: [32, 32]",
            ", persistent: true, order: 4, tile: [64, 64, 32], warp: [32, 32], ahead: false", ", order: 2",
            ", copies: registers", ", copies: registers, ahead: true, tile: [128, 128, 64]", ", b: columns",
            ", b: columns, tile: [64, 128, 64], warp: [32, 64], ahead: false", ", a: columns",
            ", a: columns, b: columns, tile: [64, 64, 64], warp: [32, 32]", ", a: columns, copies: registers",
            ", a: columns, split_k: 3", ", a: columns, persistent: true, order: 2"}) {
        CAPTURE(name, s.m, design);
        const Run run("p: {matmul: {" + shape_of(s) + design + "}}", gpu(name));
        CHECK(worst_of(run, s, design) < 0.03);
      }
}

TEST_CASE("products of warpgroups", "[sketch]") {
  for (const Sizes s : {Sizes{128, 128, 64}, Sizes{200, 264, 328}})
    for (const char* design : {"",
                               ", stages: 2, tile: [128, 64, 64]",
                               ", specialised: true, tile: [128, 256, 64]",
                               ", specialised: true, tile: [128, 128, 64], warp: [64, 128], stages: 3, order: 2",
                               ", tile: [256, 128, 64], warp: [128, 128], stages: 2",
                               ", tile: [64, 256, 64]",
                               ", specialised: true, tile: [128, 256, 64], cluster: [2, 1]",
                               ", specialised: true, tile: [128, 256, 64], order: 4, cluster: [2, 1]",
                               ", specialised: true, cluster: [1, 2]",
                               ", specialised: true, order: 2, cluster: [2, 4]",
                               ", specialised: true, cluster: [2, 2]",
                               ", b: columns",
                               ", specialised: true, tile: [64, 64, 64], persistent: true",
                               ", specialised: true, tile: [128, 64, 64], order: 3, persistent: true",
                               ", specialised: true, tile: [128, 128, 64], stages: 3, order: 2, persistent: true",
                               ", split_k: 2",
                               ", split_k: 4, stages: 2, tile: [128, 64, 64]",
                               ", specialised: true, split_k: 3, tile: [64, 64, 64]",
                               ", specialised: true, tile: [128, 256, 64], split_k: 8, cluster: [2, 1]",
                               ", b: columns, specialised: true, tile: [128, 256, 64], order: 2, cluster: [2, 2]"}) {
      CAPTURE(s.m, design);
      const Run run("p: {matmul: {math: wgmma, copies: tma, " + shape_of(s) + design + "}}", gpu("h200-sxm"));
      CHECK(worst_of(run, s, design) < 0.03);
    }
}

TEST_CASE("products of warpgroups on tiles that threads copy", "[sketch]") {
  for (const Sizes s : {Sizes{128, 128, 64}, Sizes{200, 264, 328}})
    for (const char* design :
         {"copies: async", "copies: async, stages: 2, tile: [64, 256, 64]",
          "copies: async, tile: [256, 128, 64], warp: [64, 128], stages: 3, order: 2", "copies: async, b: columns",
          "copies: async, split_k: 4", "copies: async, split_k: 3, tile: [128, 64, 64], b: columns",
          "copies: registers", "copies: registers, tile: [128, 256, 64]",
          "copies: registers, b: columns, tile: [128, 64, 64]", "copies: registers, split_k: 2"}) {
      CAPTURE(s.m, design);
      const Run run("p: {matmul: {math: wgmma, " + shape_of(s) + ", " + design + "}}", gpu("h200-sxm"));
      CHECK(worst_of(run, s, design) < 0.03);
    }
}

TEST_CASE("products of warps on tiles that TMA fetches", "[sketch]") {
  for (const Sizes s : {Sizes{128, 128, 64}, Sizes{200, 264, 328}})
    for (const char* design :
         {"", ", ahead: false", ", stages: 2, tile: [64, 64, 64], warp: [32, 32]",
          ", tile: [128, 256, 64], warp: [64, 64], order: 2", ", tile: [128, 64, 64], warp: [64, 16]", ", b: columns",
          ", b: columns, ahead: false, tile: [64, 128, 64], warp: [32, 32], stages: 4"}) {
      CAPTURE(s.m, design);
      const Run run("p: {matmul: {copies: tma, " + shape_of(s) + design + "}}", gpu("h200-sxm"));
      CHECK(worst_of(run, s, design) < 0.03);
    }
  const Sizes s{136, 272, 208};
  const Run tf32("p: {matmul: {copies: tma, type: tf32, " + shape_of(s) + "}}", gpu("h200-sxm"));
  CHECK(worst(floats(tf32.start("a")), turned(floats(tf32.start("b")), s.n, s.k), floats(tf32.end("c")), s.m, s.n,
              s.k) < 0.1);
}

std::vector<float> signed_bytes(const std::vector<std::uint8_t>& raw) {
  std::vector<float> f;
  for (const std::uint8_t b : raw) f.push_back(static_cast<std::int8_t>(b));
  return f;
}

std::vector<float> integers(const std::vector<std::uint8_t>& raw) {
  std::vector<float> f;
  for (std::size_t i = 0; i < raw.size(); i += 4) {
    std::int32_t n = 0;
    std::memcpy(&n, &raw[i], 4);
    f.push_back(static_cast<float>(n));
  }
  return f;
}

/// Four bits of exponent, three of fraction.
std::vector<float> eighths(const std::vector<std::uint8_t>& raw) {
  std::vector<float> f;
  for (const std::uint8_t b : raw) {
    const int exponent = b >> 3 & 15, fraction = b & 7;
    const float size =
        std::ldexp(static_cast<float>(exponent == 0 ? fraction : 8 + fraction), std::max(exponent, 1) - 10);
    f.push_back((b & 0x80) != 0 ? -size : size);
  }
  return f;
}

TEST_CASE("products of warpgroups in other types", "[sketch]") {
  const Sizes s{136, 272, 208};
  for (const char* design : {"", ", specialised: true, order: 2", ", specialised: true, cluster: [2, 1]",
                             ", specialised: true, persistent: true", ", copies: async", ", copies: registers"}) {
    CAPTURE(design);
    const auto run = [&](const std::string& type) {
      return Run("p: {matmul: {math: wgmma, type: " + type + ", " + shape_of(s) + design + "}}", gpu("h200-sxm"));
    };
    const Run bf16 = run("bf16"), tf32 = run("tf32"), s8 = run("s8"), e4m3 = run("e4m3");
    CHECK(worst(brains(bf16.start("a")), brains(bf16.start("b")), brains(bf16.end("c")), s.m, s.n, s.k) < 0.2);
    CHECK(worst(floats(tf32.start("a")), turned(floats(tf32.start("b")), s.n, s.k), floats(tf32.end("c")), s.m, s.n,
                s.k) < 0.1);
    CHECK(worst(signed_bytes(s8.start("a")), turned(signed_bytes(s8.start("b")), s.n, s.k), integers(s8.end("c")), s.m,
                s.n, s.k) == 0);
    const auto b = turned(eighths(e4m3.start("b")), s.n, s.k);
    CHECK(worst(eighths(e4m3.start("a")), b, brains(e4m3.end("c")), s.m, s.n, s.k) < 0.2);
  }
  const Run run("p: {matmul: {math: wgmma, type: e4m3, " + shape_of(s) + ", epilogue: [bias]}}", gpu("h200-sxm"));
  const auto a = eighths(run.start("a")), b = turned(eighths(run.start("b")), s.n, s.k),
             bias = brains(run.start("bias"));
  auto c = brains(run.end("c"));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] -= bias[i % s.n];
  CHECK(worst(a, b, c, s.m, s.n, s.k) < 0.2);
}

TEST_CASE("blocks that stay take several tiles", "[sketch]") {
  GpuModel few = gpu("h200-sxm");
  few.chip.sm_count = 2;
  const Sizes s{392, 584, 328};
  for (const char* design :
       {", tile: [64, 64, 32], warp: [32, 32]", ", math: wgmma, copies: tma, specialised: true",
        ", math: wgmma, copies: tma, specialised: true, tile: [64, 64, 64], stages: 3, order: 2"}) {
    CAPTURE(design);
    const Run run("p: {matmul: {persistent: true, " + shape_of(s) + design + "}}", few);
    CHECK(run.sketches.launches->cases.front().launches.front().grid.x < 20);
    CHECK(worst(halves(run.start("a")), halves(run.start("b")), halves(run.end("c")), s.m, s.n, s.k) < 0.04);
  }
}

TEST_CASE("products that cannot be are refused where they say so", "[sketch]") {
  const auto message = [](const std::string& design, const char* name) {
    return test::refusal("p:\n  matmul: {shape: [256, 256, 256], " + design + "}", name);
  };
  using Catch::Contains;
  const char *h200 = "h200-sxm", *a100 = "a100-sxm4-80gb";
  CHECK_THAT(message("math: wgmma", a100), Contains("sketch.yaml:2:42") && Contains("needs a GPU of sm_90"));
  CHECK_THAT(message("math: wgmma, specialised: true, split_k: 2, persistent: true", h200),
             Contains("exclude each other"));
  CHECK_THAT(message("math: wgmma, cluster: [2, 1]", h200), Contains("a warpgroup of its own"));
  CHECK_THAT(message("cluster: [2, 1]", h200), Contains("sketch.yaml:2:45") && Contains("math: wgmma"));
  CHECK_THAT(message("math: wgmma, specialised: true, cluster: [4, 1]", h200), Contains("64 columns of B"));
  CHECK_THAT(message("math: wgmma, specialised: true, cluster: [4, 4]", h200), Contains("8 are the most"));
  CHECK_THAT(message("math: wgmma, specialised: true, cluster: [2, 1], order: 3", h200), Contains("multiple of 2"));
  CHECK_THAT(message("math: wgmma, persistent: true", h200), Contains("a warpgroup of its own"));
  CHECK_THAT(message("math: wgmma, specialised: true, cluster: [2, 1], persistent: true", h200),
             Contains("and cluster exclude each other"));
  CHECK_THAT(message("specialised: true", h200), Contains("sketch.yaml:2:49") && Contains("write math: wgmma"));
  CHECK_THAT(message("type: f32, warp: [64, 32]", h200), Contains("is of tensor cores"));
  CHECK_THAT(message("thread: [8, 8]", h200), Contains("is of f32"));
  CHECK_THAT(message("type: e4m3", h200), Contains("sketch.yaml:2:42") && Contains("wgmma alone"));
  CHECK_THAT(message("type: e4m3, math: wgmma, b: rows", h200), Contains("take k along its rows"));
  CHECK_THAT(message("type: s8, math: wgmma, tile: [128, 128, 64]", h200), Contains("take k = 128"));
  CHECK_THAT(message("math: wgmma, ahead: true", h200), Contains("is of mma.sync"));
  CHECK_THAT(message("copies: tma", a100), Contains("sketch.yaml:2:44") && Contains("needs a GPU of sm_90"));
  CHECK_THAT(message("copies: tma, tile: [128, 128, 32]", h200), Contains("take k = 64"));
  CHECK_THAT(message("copies: tma, a: columns", h200), Contains("takes A by rows"));
  CHECK_THAT(message("copies: tma, persistent: true", h200), Contains("needs copies: async"));
  CHECK_THAT(message("copies: tma, split_k: 2", h200), Contains("async or registers"));
  CHECK_THAT(message("type: f32, copies: tma", h200), Contains("needs tensor cores"));
  CHECK_THAT(message("math: wgmma, copies: async, specialised: true", h200), Contains("copies: tma"));
  CHECK_THAT(message("math: wgmma, copies: registers, stages: 3", h200), Contains("is a ring"));
  CHECK_THAT(message("copies: registers, stages: 3", h200), Contains("is a ring"));
  CHECK_THAT(message("split_k: 2, persistent: true", h200), Contains("exclude each other"));
  CHECK_THAT(message("split_k: 2, epilogue: [relu]", h200), Contains("exclude each other"));
  CHECK_THAT(message("epilogue: [bias, bias]", h200), Contains("is there twice"));
  CHECK_THAT(message("type: tf32, b: rows", h200), Contains("take k along its rows"));
  CHECK_THAT(message("tile: [128, 256, 32], warp: [64, 32], stages: 3", h200), Contains("512 threads leave 128"));
  CHECK_THAT(message("tile: [256, 256, 64], warp: [128, 128], stages: 2", h200),
             Contains("sketch.yaml:2:11: needs") && Contains("registers a thread; there are 255"));
  CHECK_THAT(message("tile: [128, 128, 128], stages: 8", a100),
             Contains("sketch.yaml:2:11") && Contains("524288 bytes of shared memory"));
  CHECK_THAT(message("math: wgmma, tile: [128, 256, 64], stages: 8", h200), Contains("bytes of shared memory"));
}

TEST_CASE("on sm_90 copies are kept apart from other accesses to shared memory", "[sketch]") {
  const std::string text = "p: {matmul: {shape: [256, 256, 256]}}";
  const auto code = [&](const char* name) { return parse_sketches(text, "s", gpu(name)).program->kernels[0].text; };
  const std::string load = "@!PT LDS RZ, [0x0]";
  int copies = 0;
  const std::vector<std::string> lines = code("h200-sxm");
  for (std::size_t i = 3; i < lines.size(); ++i) {
    if (lines[i].find("LDGSTS") == std::string::npos || lines[i - 1].find(load) == std::string::npos) continue;
    CHECK((lines[i - 2] == load && lines[i - 3] == load));
    ++copies;
  }
  CHECK(copies >= 2);  // before the loop and in it
  CHECK(std::count(lines.begin(), lines.end(), load) == 3 * copies);
  const std::vector<std::string> older = code("a100-sxm4-80gb");
  CHECK(std::count(older.begin(), older.end(), load) == 0);
}

TEST_CASE("registers and shared memory may be given", "[sketch]") {
  const auto read = [](const std::string& given, const std::string& more = "") {
    return parse_sketches("p:\n  matmul: {shape: [256, 256, 256]" + more + "}\n" + given, "sketch.yaml",
                          gpu("h200-sxm"));
  };
  const int taken = read("").program->kernels[0].registers;
  const std::uint32_t bytes = read("").launches->cases[0].launches[0].dynamic_shared_bytes;
  const Sketches more = read("  registers: 200\n  shared: 100000\n");
  CHECK(more.program->kernels[0].registers == 200);
  CHECK(more.launches->cases[0].launches[0].dynamic_shared_bytes == 100000);
  CHECK(more.assumptions[0].size() == read("").assumptions[0].size());
  const Sketches fewer = read("  registers: 64\n");
  CHECK(fewer.program->kernels[0].registers == 64);
  CHECK(fewer.assumptions[0].back() ==
        "registers: 64 of p as given; the code here takes " + std::to_string(taken) + ", and no spills are sketched");
  CHECK(read("  registers: {p: 200, p_sum: 40}\n", ", split_k: 2").program->kernels[1].registers == 40);
  const auto message = [](const std::string& given) {
    return test::refusal("p:\n  matmul: {shape: [256, 256, 256], split_k: 2}\n  " + given);
  };
  using Catch::Contains;
  CHECK_THAT(message("registers: 64"), Contains("sketch.yaml:3:14: ") && Contains("p, p_sum"));
  CHECK_THAT(message("registers: {p: 300}"), Contains("sketch.yaml:3:18: ") && Contains("16 to 255"));
  CHECK_THAT(message("registers: {q: 64}"), Contains("sketch.yaml:3:15: ") && Contains("accepted: p, p_sum"));
  CHECK_THAT(
      message("shared: {p: 1000}"),
      Contains("sketch.yaml:3:15: ") && Contains("less than the " + std::to_string(bytes) + " bytes that p uses"));
  CHECK_THAT(message("shared: {p: 300000}"), Contains("bytes of shared memory"));
  CHECK_THAT(test::refusal("p: {registers: 64}"), Contains("give one of: elementwise"));
}

TEST_CASE("products in other types", "[sketch]") {
  const Sizes s{136, 144, 208};
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"}) {
    CAPTURE(name);
    const Run bf16("p: {matmul: {type: bf16, " + shape_of(s) + "}}", gpu(name));
    CHECK(worst(brains(bf16.start("a")), brains(bf16.start("b")), brains(bf16.end("c")), s.m, s.n, s.k) < 0.2);
    const Run tf32("p: {matmul: {type: tf32, " + shape_of(s) + "}}", gpu(name));
    CHECK(worst(floats(tf32.start("a")), turned(floats(tf32.start("b")), s.n, s.k), floats(tf32.end("c")), s.m, s.n,
                s.k) < 0.1);
    const Run s8("p: {matmul: {type: s8, " + shape_of(s) + "}}", gpu(name));
    CHECK(worst(signed_bytes(s8.start("a")), turned(signed_bytes(s8.start("b")), s.n, s.k), integers(s8.end("c")), s.m,
                s.n, s.k) == 0);
  }
}

TEST_CASE("what follows a product's sums", "[sketch]") {
  const Sizes s{72, 136, 64};
  for (const char* type : {"f16", "bf16", "f32"}) {
    CAPTURE(type);
    const Run run(
        "p: {matmul: {type: " + std::string(type) + ", " + shape_of(s) + ", epilogue: [bias, gelu, residual, relu]}}",
        gpu("h200-sxm"));
    const auto read = [&](const std::vector<std::uint8_t>& raw) { return test::numbers(raw, type); };
    const auto a = read(run.start("a")), b = read(run.start("b")), bias = read(run.start("bias")),
               residual = read(run.start("residual")), c = read(run.end("c"));
    double most = 0;
    for (std::size_t i = 0; i < s.m; ++i)
      for (std::size_t j = 0; j < s.n; ++j) {
        double x = static_cast<double>(bias[j]);
        for (std::size_t l = 0; l < s.k; ++l)
          x += static_cast<double>(a[i * s.k + l]) * static_cast<double>(b[l * s.n + j]);
        x = x / 2 * (1 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x))) +
            static_cast<double>(residual[i * s.n + j]);
        most = std::max(most, std::abs(std::max(x, 0.0) - static_cast<double>(c[i * s.n + j])));
      }
    CHECK(most < (type == std::string("bf16") ? 0.1 : 0.02));
  }
}

}  // namespace
}  // namespace forewarp::sketch
