// What lowered kernels compute, by the emulator that runs compiled ones.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::floats;
using test::gpu;
using test::refusal;
using test::Run;

TEST_CASE("fused and separate statements give the same values", "[sketch]") {
  const std::string body =
      "shape: [1000], tensors: {x: f32, y: f32}, "
      "compute: [\"m = x < 0\", \"e = 1.5 * (exp(x) - 1)\", \"y = where(m, e, x)\"]}}";
  for (const char* name : {"h200-sxm", "a100-sxm4-80gb"}) {
    const Run fused("elu: {elementwise: {" + body, gpu(name));
    const Run separate("elu: {elementwise: {fused: false, " + body, gpu(name));
    CHECK(fused.sketches.program->kernels.size() == 1);
    CHECK(separate.sketches.program->kernels.size() == 3);
    const std::vector<float> x = floats(fused.start("x")), y = floats(fused.end("y"));
    CHECK(fused.end("y") == separate.end("y"));
    for (std::size_t i = 0; i < 1000; ++i) {
      const float expected = x[i] < 0 ? 1.5f * (std::exp(x[i]) - 1) : x[i];
      CHECK(y[i] == Approx(expected).margin(2e-6));
    }
  }
}

TEST_CASE("functions agree with the host's", "[sketch]") {
  struct Row {
    const char* text;
    double (*of)(double);
  };
  const Row rows[] = {{"exp(x)", [](double x) { return std::exp(x); }},
                      {"sin(x)", [](double x) { return std::sin(x); }},
                      {"cos(3 * x)", [](double x) { return std::cos(3 * x); }},
                      {"sin(x) * sin(x) + cos(x) * cos(x)", [](double) { return 1.0; }},
                      {"sigmoid(x)", [](double x) { return 1 / (1 + std::exp(-x)); }},
                      {"1 / (2 + x)", [](double x) { return 1 / (2 + x); }},
                      {"x / (2 + x * x)", [](double x) { return x / (2 + x * x); }},
                      {"sqrt(x + 2)", [](double x) { return std::sqrt(x + 2); }},
                      {"rsqrt(x + 2)", [](double x) { return 1 / std::sqrt(x + 2); }},
                      {"log(x + 1.5)", [](double x) { return std::log(x + 1.5); }},
                      {"abs(x) - 2 * x", [](double x) { return std::abs(x) - 2 * x; }},
                      {"max(x, 0) - min(x, 0.25)", [](double x) { return std::max(x, 0.0) - std::min(x, 0.25); }}};
  for (const Row& row : rows)
    for (const char* name : {"h200-sxm", "a100-sxm4-80gb"}) {
      CAPTURE(row.text, name);
      const Run run(std::string("f: {elementwise: {shape: [513], tensors: {x: f32, y: f32}, compute: [\"y = ") +
                        row.text + "\"]}}",
                    gpu(name));
      const std::vector<float> x = floats(run.start("x")), y = floats(run.end("y"));
      double worst = 0;
      for (std::size_t i = 0; i < 513; ++i)
        worst = std::max(worst, std::abs(row.of(static_cast<double>(x[i])) - static_cast<double>(y[i])));
      CHECK(worst < 2e-6);
    }
}

TEST_CASE("results that replace what they are made of", "[sketch]") {
  const Run run(
      "t: {elementwise: {shape: [300], tensors: {x: f32, y: f32}, "
      "compute: [\"s = sin(x)\", \"x = 2 * x\", \"y = s + cos(x)\", \"y = y * y + x\"]}}",
      gpu("h200-sxm"));
  const std::vector<float> x = floats(run.start("x")), doubled = floats(run.end("x")), y = floats(run.end("y"));
  for (std::size_t i = 0; i < 300; ++i) {
    const float sum = std::sin(x[i]) + std::cos(2 * x[i]);
    CHECK(doubled[i] == 2 * x[i]);
    CHECK(y[i] == Approx(sum * sum + 2 * x[i]).margin(2e-6));
  }
}

TEST_CASE("vectors, halves and layouts", "[sketch]") {
  const Run run(
      "t: {elementwise: {shape: [64, 96], vector: 4, block: 32, tensors: {x: {type: f32, pitch: 100}, b: {type: f32, "
      "layout: row}, "
      "y: f32}, compute: [\"y = x + b\"]}}",
      gpu("h200-sxm"));
  const std::vector<float> x = floats(run.start("x")), b = floats(run.start("b")), y = floats(run.end("y"));
  for (std::size_t r = 0; r < 64; ++r)
    for (std::size_t c = 0; c < 96; ++c) CHECK(y[r * 96 + c] == x[r * 100 + c] + b[c]);

  const Run transposed(
      "t: {elementwise: {shape: [64, 96], tensors: {x: {type: f32, layout: columns}, y: f32}, compute: [\"y = x\"]}}",
      gpu("h200-sxm"));
  const std::vector<float> from = floats(transposed.start("x")), to = floats(transposed.end("y"));
  for (std::size_t r = 0; r < 64; ++r)
    for (std::size_t c = 0; c < 96; ++c) CHECK(to[r * 96 + c] == from[c * 64 + r]);

  for (const char* type : {"f16", "bf16"}) {
    const Run half(std::string("t: {elementwise: {shape: [256], vector: 8, tensors: {x: ") + type + ", y: " + type +
                       "}, compute: [\"y = max(x, 0)\"]}}",
                   gpu("h200-sxm"));
    const std::vector<std::uint8_t> in = half.start("x"), out = half.end("y");
    for (std::size_t i = 0; i < 256; ++i) {
      std::uint16_t a = 0, r = 0;
      std::memcpy(&a, in.data() + 2 * i, 2);
      std::memcpy(&r, out.data() + 2 * i, 2);
      CHECK(r == ((a & 0x8000) != 0 ? 0 : a));
    }
  }
}

TEST_CASE("errors say where and what to do", "[sketch]") {
  const std::string head = "t:\n  elementwise:\n    shape: [100]\n    tensors: {x: f32, y: f32}\n    compute: [\"";
  CHECK(refusal(head + "y = x + z\"]\n") ==
        "sketch.yaml:5:23: there is no tensor 'z', and no statement before this makes it\n  declare it under tensors");
  CHECK(refusal(head + "y = xep(x)\"]\n") == "sketch.yaml:5:19: there is no function 'xep'\n  did you mean exp?");
  CHECK(refusal(head + "z = x\"]\n") ==
        "sketch.yaml:5:15: 'z' goes nowhere: no statement after this reads it\n  declare it under tensors, or leave it "
        "out");
  CHECK(refusal(head + "z = x\", \"y = x\"]\n").find("sketch.yaml:5:15: 'z' goes nowhere") == 0);
  CHECK(refusal(head + "y = 2\"]\n") == "sketch.yaml:4:15: no statement reads or makes 'x'\n  leave it out");
  CHECK(refusal(
            "t: {elementwise: {shape: [100000, 8], tensors: {x: f32, y: {type: f32, pitch: 9}}, compute: [\"y = x\"]}}")
            .find("sketch.yaml:1:27") == 0);
  CHECK(refusal("t: {elementwise: {shape: [100000, 8], tensors: {x: f32, y: f32}, compute: [\"y = x\"]}}").empty());
  CHECK(refusal("t: {elementwise: {shape: [10], vector: 4, tensors: {x: f32}, compute: [\"x = x\"]}}")
            .find("sketch.yaml:1:40") == 0);
  CHECK(refusal("t: {}").find("give one of: elementwise") != std::string::npos);
}

}  // namespace
}  // namespace forewarp::sketch
