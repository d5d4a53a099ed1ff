#include <catch2/catch.hpp>
#include <cmath>

#include "program/analysis.h"
#include "sketch/test_support.h"

namespace forewarp::sketch {
namespace {

using test::gpu;
using test::halves;
using test::numbers;
using test::Run;

struct Shape {
  std::size_t queries, keys, heads, size, group;
  bool causal;
};

/// The largest difference to attention by the host.
double worst(const std::vector<float>& q, const std::vector<float>& k, const std::vector<float>& v,
             const std::vector<float>& o, const Shape& s) {
  double most = 0;
  for (std::size_t h = 0; h < s.heads; ++h)
    for (std::size_t i = 0; i < s.queries; ++i) {
      const float* query = &q[(h * s.queries + i) * s.size];
      const std::size_t keys_at = h / s.group * s.keys * s.size;
      std::vector<double> weights;
      double sum = 0;
      for (std::size_t j = 0; j < (s.causal ? i + 1 : s.keys); ++j) {
        double dot = 0;
        for (std::size_t d = 0; d < s.size; ++d)
          dot += static_cast<double>(query[d]) * static_cast<double>(k[keys_at + j * s.size + d]);
        weights.push_back(std::exp(dot / std::sqrt(static_cast<double>(s.size))));
        sum += weights.back();
      }
      for (std::size_t d = 0; d < s.size; ++d) {
        double out = 0;
        for (std::size_t j = 0; j < weights.size(); ++j)
          out += weights[j] / sum * static_cast<double>(v[keys_at + j * s.size + d]);
        most = std::max(most, std::abs(out - static_cast<double>(o[(h * s.queries + i) * s.size + d])));
      }
    }
  return most;
}

double run(const std::string& design, const std::string& type, const Shape& s, const std::string& on) {
  const Run run("a: {attention: {length: [" + std::to_string(s.queries) + ", " + std::to_string(s.keys) +
                    "], heads: " + std::to_string(s.heads) + ", head: " + std::to_string(s.size) +
                    ", group: " + std::to_string(s.group) + ", causal: " + (s.causal ? "true" : "false") +
                    ", type: " + type + design + "}}",
                gpu(on));
  return worst(numbers(run.start("q"), type), numbers(run.start("k"), type), numbers(run.start("v"), type),
               numbers(run.end("o"), type), s);
}

TEST_CASE("fused attention equals the host's", "[sketch]") {
  for (const char* on : {"h200-sxm", "a100-sxm4-80gb"}) {
    CAPTURE(on);
    for (const Shape& s : {Shape{128, 128, 1, 64, 1, false}, Shape{200, 200, 2, 64, 2, true},
                           Shape{72, 161, 2, 64, 1, false}, Shape{130, 130, 1, 128, 1, true}}) {
      CAPTURE(s.queries, s.keys, s.size);
      CHECK(run("", "f16", s, on) < 2e-3);
    }
    CHECK(run("", "bf16", {128, 128, 1, 128, 1, false}, on) < 1e-2);
    CHECK(run(", tile: [64, 32], warps: 4", "f16", {96, 96, 1, 64, 1, true}, on) < 2e-3);
    CHECK(run(", tile: [64, 128], warps: 2", "f16", {64, 130, 1, 32, 1, false}, on) < 2e-3);
  }
}

TEST_CASE("attention by warpgroups equals the host's", "[sketch]") {
  const std::string design = ", math: wgmma";
  for (const Shape& s :
       {Shape{128, 128, 1, 64, 1, false}, Shape{328, 328, 2, 64, 2, true}, Shape{72, 461, 2, 64, 1, false},
        Shape{130, 130, 4, 128, 2, true}, Shape{200, 300, 1, 128, 1, false}, Shape{200, 200, 2, 256, 1, true},
        Shape{72, 200, 1, 256, 1, false}}) {
    CAPTURE(s.queries, s.keys, s.size);
    CHECK(run(design, "f16", s, "h200-sxm") < 2e-3);
  }
  CHECK(run(design, "bf16", {264, 264, 1, 128, 1, true}, "h200-sxm") < 1e-2);
  CHECK(run(design + ", tile: [64, 128]", "f16", {200, 200, 2, 64, 1, true}, "h200-sxm") < 2e-3);
  CHECK(run(design + ", tile: [128, 64]", "f16", {200, 200, 2, 64, 1, true}, "h200-sxm") < 2e-3);
}

TEST_CASE("gradients of attention equal the host's", "[sketch]") {
  struct Row {
    std::string design;
    Shape shape;
    double most;
  };
  const std::string flash = "algorithm: flash", unfused = "algorithm: unfused", groups = "math: wgmma";
  for (const char* on : {"h200-sxm", "a100-sxm4-80gb"})
    for (const auto& [design, s, most_off] :
         {Row{flash, {128, 128, 1, 64, 1, false}, 4e-3}, Row{flash, {72, 72, 4, 64, 2, true}, 4e-3},
          Row{flash, {165, 165, 1, 64, 1, true}, 4e-3}, Row{flash, {80, 130, 1, 32, 1, false}, 4e-3},
          Row{flash, {72, 72, 1, 128, 1, true}, 4e-3}, Row{unfused, {128, 128, 1, 64, 1, false}, 8e-3},
          Row{unfused, {136, 136, 2, 64, 1, true}, 8e-3}, Row{unfused, {75, 200, 2, 128, 1, false}, 8e-3},
          Row{groups, {128, 128, 1, 64, 1, false}, 4e-3}, Row{groups, {200, 200, 4, 64, 2, true}, 4e-3},
          Row{groups, {72, 300, 2, 64, 1, false}, 4e-3}, Row{groups, {264, 264, 2, 128, 1, true}, 4e-3},
          Row{groups, {300, 130, 2, 128, 2, false}, 4e-3},
          Row{groups + ", tile: [128, 64]", {200, 200, 1, 64, 1, true}, 4e-3},
          Row{groups + ", tile: [64, 128]", {200, 200, 1, 64, 1, true}, 4e-3},
          Row{groups + ", tile: [64, 64]", {136, 136, 1, 64, 1, true}, 4e-3}}) {
      if (design.starts_with(groups) && on[0] == 'a') continue;
      CAPTURE(on, design, s.queries, s.keys, s.size);
      const Run run("a: {attention: {direction: backward, " + design + ", length: [" + std::to_string(s.queries) +
                        ", " + std::to_string(s.keys) + "], heads: " + std::to_string(s.heads) +
                        ", head: " + std::to_string(s.size) + ", group: " + std::to_string(s.group) +
                        ", causal: " + (s.causal ? "true" : "false") + "}}",
                    gpu(on));
      const auto q = halves(run.start("q")), k = halves(run.start("k")), v = halves(run.start("v")),
                 d_o = halves(run.start("d_o"));
      std::vector<double> dq(q.size()), dk(k.size()), dv(v.size());
      const double scale = 1 / std::sqrt(static_cast<double>(s.size));
      const auto dot = [&](const std::vector<float>& a, std::size_t i, const std::vector<float>& b, std::size_t j) {
        double sum = 0;
        for (std::size_t d = 0; d < s.size; ++d) sum += static_cast<double>(a[i + d]) * static_cast<double>(b[j + d]);
        return sum;
      };
      for (std::size_t h = 0; h < s.heads; ++h)
        for (std::size_t i = 0; i < s.queries; ++i) {
          const std::size_t row = (h * s.queries + i) * s.size, keys = h / s.group * s.keys * s.size;
          std::vector<double> p, dp;
          double sum = 0, delta = 0;
          for (std::size_t j = 0; j < (s.causal ? i + 1 : s.keys); ++j) {
            p.push_back(std::exp(dot(q, row, k, keys + j * s.size) * scale));
            dp.push_back(dot(d_o, row, v, keys + j * s.size));
            sum += p.back();
          }
          for (std::size_t j = 0; j < p.size(); ++j) delta += (p[j] /= sum) * dp[j];
          for (std::size_t j = 0; j < p.size(); ++j)
            for (std::size_t d = 0; d < s.size; ++d) {
              const double ds = p[j] * (dp[j] - delta) * scale;
              dq[row + d] += ds * static_cast<double>(k[keys + j * s.size + d]);
              dk[keys + j * s.size + d] += ds * static_cast<double>(q[row + d]);
              dv[keys + j * s.size + d] += p[j] * static_cast<double>(d_o[row + d]);
            }
        }
      const auto off = [&](const std::vector<double>& expected, const char* name) {
        const std::vector<float> got = halves(run.end(name));
        double most = 0;
        for (std::size_t i = 0; i < got.size(); ++i)
          most = std::max(most, std::abs(expected[i] - static_cast<double>(got[i])));
        return most;
      };
      CHECK(off(dq, "dq") < most_off);
      CHECK(off(dk, "dk") < most_off);
      CHECK(off(dv, "dv") < most_off);
    }
}

bool meet(const SpanList& a, const SpanList& b) {
  for (const RegisterSpan& x : a)
    for (const RegisterSpan& y : b)
      if (x.first < y.first + y.count && y.first < x.first + x.count) return true;
  return false;
}

TEST_CASE("registers of products under way are left alone", "[sketch]") {
  for (const char* design : {"head: 64", "head: 128, causal: true", "head: 64, group: 2, causal: true",
                             "head: 64, tile: [128, 64]", "head: 64, tile: [64, 64]"}) {
    CAPTURE(design);
    const Sketches sketches = parse_sketches(
        "a: {attention: {length: 1000, heads: 2, math: wgmma, direction: backward, " + std::string(design) + "}}",
        "sketch.yaml", gpu("h200-sxm"));
    for (const Kernel& kernel : sketches.program->kernels) {
      CAPTURE(kernel.name);
      std::vector<std::vector<Effects>> groups(1);  // the last one is being issued
      int products = 0;
      for (std::size_t i = 0; i < kernel.instructions.size(); ++i) {
        const Instruction& in = kernel.instructions[i];
        const Effects e = effects(in);
        if (in.opcode == Opcode::WARPGROUP && in.has(Modifier::DEPBAR)) {
          const std::size_t left = in.operands[1].immediate + 1;
          if (groups.size() > left) groups.erase(groups.begin(), groups.end() - static_cast<std::ptrdiff_t>(left));
        }
        const bool product = in.opcode == Opcode::HGMMA;
        INFO(kernel.text[i]);
        for (const auto& group : groups)
          for (const Effects& of : group) {
            // Products come one after another, so that one may go on with another's sums.
            const bool apart = product || (!meet(of.writes.registers, e.value_reads.registers) &&
                                           !meet(of.writes.registers, e.address_reads.registers) &&
                                           !meet(of.writes.registers, e.writes.registers));
            SpanList factor;
            for (const RegisterSpan& span : of.value_reads.registers)
              if (!of.writes.registers.contains(span.first)) factor.add(span.first, span.count, kRegisterZero);
            if (!apart || meet(factor, e.writes.registers)) FAIL_CHECK("is too early");
          }
        if (!product) continue;
        ++products;
        groups.back().push_back(e);
        if (in.operands[in.operand_count - 1u].kind == OperandKind::Scoreboard) groups.emplace_back();
      }
      CHECK((products > 0) == (kernel.name == "a" || kernel.name == "a_backward"));
    }
  }
}

TEST_CASE("the way back by warpgroups is five products, and adds each tile of dQ once", "[sketch]") {
  constexpr double kQueries = 512, kKeys = 384, kHeads = 2;
  for (const int size : {64, 128}) {
    CAPTURE(size);
    const Sketches sketches =
        parse_sketches("a: {attention: {length: [512, 384], heads: 2, math: wgmma, direction: backward, head: " +
                           std::to_string(size) + "}}",
                       "sketch.yaml", gpu("h200-sxm"));
    TraceOptions options;
    options.value_instructions = options.counted_instructions = 0;
    const auto trace = trace_launch(*sketches.program, sketches.launches->cases.front(), 2, options);
    double operations = 0, added = 0;
    const std::vector<InstructionCount> totals = trace->totals();
    for (std::size_t i = 0; i < totals.size(); ++i) {
      const Instruction& in = trace->kernel->instructions[i];
      if (const auto work = matrix_work(in))
        operations += static_cast<double>(work->operations()) * static_cast<double>(totals[i].executed);
      if (in.opcode == Opcode::REDG) added += 32 * static_cast<double>(totals[i].executed);
    }
    CHECK(operations == 5 * 2 * kQueries * kKeys * kHeads * size);
    CHECK(added == kKeys / 128 * kQueries * kHeads * size);
  }
}

TEST_CASE("attention in three kernels equals the host's", "[sketch]") {
  const std::string design = ", algorithm: unfused";
  for (const char* on : {"h200-sxm", "a100-sxm4-80gb"}) {
    CAPTURE(on);
    CHECK(run(design, "f32", {72, 72, 2, 64, 1, true}, on) < 1e-5);
    CHECK(run(design, "f32", {64, 136, 2, 128, 2, false}, on) < 1e-5);
    CHECK(run(design, "f16", {136, 136, 2, 64, 1, true}, on) < 4e-3);
    CHECK(run(design, "bf16", {64, 200, 4, 128, 2, false}, on) < 2e-2);
    CHECK(run(design + ", tile: [64, 64]", "f16", {128, 128, 2, 64, 1, false}, on) < 4e-3);
  }
}

TEST_CASE("attention that fits nowhere is refused where it stands", "[sketch]") {
  const auto message = [](const std::string& design) {
    return test::refusal("a:\n  attention: {length: 1024, heads: 16, head: 128, " + design + "}");
  };
  using Catch::Contains;
  CHECK_THAT(message("algorithm: unfused, tile: [256, 256], warps: 1"),
             Contains("sketch.yaml:2:14: needs") && Contains("there are 255"));
  CHECK_THAT(message("tile: [256, 256], warps: 1"), Contains("sketch.yaml:2:14: needs"));
  CHECK_THAT(message("tile: [256, 256], warps: 16"), Contains("512 threads leave 128"));
  CHECK_THAT(message("math: wgmma, tile: [128, 256]"), Contains("bytes of shared memory"));
  CHECK_THAT(message("math: wgmma, warps: 4"), Contains("sketch.yaml:2:71: ") && Contains("take 12"));
  CHECK_THAT(message("math: wgmma, direction: backward, tile: [64, 64]"),
             Contains("sketch.yaml:2:14: needs") && Contains("take tile: [64, 128]"));
  CHECK_THAT(message("math: wgmma, direction: backward, tile: [128, 128]"),
             Contains("sketch.yaml:2:91: ") && Contains("bytes of shared memory"));
  CHECK_THAT(message("math: wgmma, direction: backward, warps: 8"), Contains("each 64 keys") && Contains("take 12"));
  CHECK_THAT(test::refusal("a:\n  attention: {length: 64, heads: 1, head: 256, math: wgmma, direction: backward}"),
             Contains("sketch.yaml:2:43: ") && Contains("algorithm: unfused"));
  CHECK_THAT(message("math: wgmma, algorithm: unfused"), Contains("flash attention") && Contains("write mma"));
}

}  // namespace
}  // namespace forewarp::sketch
