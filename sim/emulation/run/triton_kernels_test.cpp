// The project's kernels in Triton (kernels/triton) with all values, against Eigen in double precision.
#include <algorithm>
#include <numeric>

#include "emulation/run/eigen_support.h"

using namespace forewarp;

namespace {

/// Runs the _check_ case of an instance: check(launch, buffer(name) before, buffer(name) after).
template <class Check>
void check_instance(const std::string& stem, const Check& check) {
  const Program program = load_program(kTraces + "sm_90/" + stem + ".cubin");
  const LaunchFile launches = read_launch_file(kTraces + stem + ".yaml");
  const auto item = std::find_if(launches.cases.begin(), launches.cases.end(), is_check);
  REQUIRE(item != launches.cases.end());
  INFO(item->id);
  const EmulatedCase run = emulate_values(program, *item);
  check(
      item->launches.front(), [&](const char* name) { return make_buffer(item->buffers[buffer_index(*item, name)]); },
      [&](const char* name) { return run.buffers[buffer_index(*item, name)]; });
}

double largest(const Matrix& m) { return m.cwiseAbs().maxCoeff(); }

constexpr double kHalf = 1e-3, kBrain = 8e-3, kFloat = 1e-5;  // of the largest number: the rounding of a result

}  // namespace

TEST_CASE("Triton: gelu with a bias", "[triton]") {
  check_instance("triton_01_bias_gelu", [](const Launch& launch, const auto& before, const auto& after) {
    const int n = int_argument(launch, 3), columns = int_argument(launch, 4);
    Matrix x = matrix(Kind::Bf16, before("x"), n / columns, columns);
    x.rowwise() += matrix(Kind::Bf16, before("bias"), 1, columns).row(0);
    const Matrix y = x.unaryExpr([](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
    CHECK(largest(matrix(Kind::Bf16, after("y"), n / columns, columns) - y) < kBrain * largest(y));
  });
}

TEST_CASE("Triton: dropout keeps nine tenths, scaled, and adds the residual", "[triton]") {
  check_instance("triton_01_dropout_add", [](const Launch& launch, const auto& before, const auto& after) {
    const int n = int_argument(launch, 3);
    const Matrix x = matrix(Kind::F16, before("x"), 1, n), residual = matrix(Kind::F16, before("residual"), 1, n);
    const Matrix added = matrix(Kind::F16, after("y"), 1, n) - residual;
    int kept = 0, dropped = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
      kept += std::fabs(added(i) - x(i) / 0.9) < 2 * kHalf;
      dropped += std::fabs(added(i)) < 2 * kHalf;
    }
    CHECK(kept + dropped >= n);
    CHECK(kept == Approx(0.9 * n).epsilon(0.01));
  });
}

TEST_CASE("Triton: rotary embedding", "[triton]") {
  check_instance("triton_01_rotary", [](const Launch& launch, const auto& before, const auto& after) {
    const int positions = static_cast<int>(launch.grid.x), heads = static_cast<int>(launch.grid.y);
    const Matrix x = matrix(Kind::Bf16, before("x"), positions, heads * 128);
    const Matrix c = matrix(Kind::F32, before("cosine"), positions, 64),
                 s = matrix(Kind::F32, before("sine"), positions, 64);
    Matrix y = x;
    for (Eigen::Index head = 0; head < heads; ++head) {
      const auto a = x.middleCols(head * 128, 64).array(), b = x.middleCols(head * 128 + 64, 64).array();
      y.middleCols(head * 128, 64) = a * c.array() - b * s.array();
      y.middleCols(head * 128 + 64, 64) = a * s.array() + b * c.array();
    }
    CHECK(largest(matrix(Kind::Bf16, after("y"), positions, heads * 128) - y) < kBrain * largest(y));
  });
}

TEST_CASE("Triton: softmax", "[triton]") {
  check_instance("triton_02_softmax", [](const Launch& launch, const auto& before, const auto& after) {
    const int rows = static_cast<int>(launch.grid.x), columns = int_argument(launch, 2);
    Matrix y = matrix(Kind::F16, before("x"), rows, columns).array().exp();
    for (Eigen::Index row = 0; row < rows; ++row) y.row(row) /= y.row(row).sum();
    CHECK(largest(matrix(Kind::F16, after("y"), rows, columns) - y) < kHalf * largest(y));
  });
}

TEST_CASE("Triton: layer normalisation", "[triton]") {
  check_instance("triton_02_layer_norm", [](const Launch& launch, const auto& before, const auto& after) {
    const int rows = static_cast<int>(launch.grid.x), columns = int_argument(launch, 6);
    Matrix y = matrix(Kind::F16, before("x"), rows, columns);
    const Matrix weight = matrix(Kind::F32, before("weight"), 1, columns),
                 bias = matrix(Kind::F32, before("bias"), 1, columns);
    for (Eigen::Index row = 0; row < rows; ++row) {
      y.row(row).array() -= y.row(row).mean();
      y.row(row) /= std::sqrt(y.row(row).squaredNorm() / columns + 1e-5);
      y.row(row) = y.row(row).cwiseProduct(weight.row(0)) + bias.row(0);
    }
    CHECK(largest(matrix(Kind::F16, after("y"), rows, columns) - y) < kHalf * largest(y));
  });
}

TEST_CASE("Triton: cross entropy", "[triton]") {
  check_instance("triton_02_cross_entropy", [](const Launch& launch, const auto& before, const auto& after) {
    const int rows = static_cast<int>(launch.grid.x), columns = int_argument(launch, 3);
    const Matrix x = matrix(Kind::Bf16, before("logits"), rows, columns),
                 labels = matrix(Kind::S32, before("labels"), rows, 1);
    Matrix losses(rows, 1);
    for (Eigen::Index row = 0; row < rows; ++row)
      losses(row) = std::log(x.row(row).array().exp().sum()) - x(row, static_cast<Eigen::Index>(labels(row)));
    CHECK(largest(matrix(Kind::F32, after("losses"), rows, 1) - losses) < kFloat * largest(losses));
  });
}

TEST_CASE("Triton: running sums and the largest of a row", "[triton]") {
  check_instance("triton_02_scan", [](const Launch& launch, const auto& before, const auto& after) {
    const int n = int_argument(launch, 2);
    Matrix y = matrix(Kind::F32, before("x"), 1, n);
    for (int i = 0; i < n; ++i)
      if (i % 2048 != 0) y(i) += y(i - 1);
    CHECK(largest(matrix(Kind::F32, after("y"), 1, n) - y) < kFloat * largest(y));
  });
  check_instance("triton_02_best_of", [](const Launch& launch, const auto& before, const auto& after) {
    const int rows = static_cast<int>(launch.grid.x), columns = int_argument(launch, 3);
    const Matrix x = matrix(Kind::F32, before("x"), rows, columns), which = matrix(Kind::S32, after("which"), rows, 1);
    for (Eigen::Index row = 0; row < rows; ++row)
      CHECK(x(row, static_cast<Eigen::Index>(which(row))) == x.row(row).maxCoeff());
    CHECK(matrix(Kind::F32, after("y"), rows, 1) == x.rowwise().maxCoeff());
  });
}

TEST_CASE("Triton: products by pointers and by tensor maps", "[triton]") {
  struct Product {
    const char* stem;
    Kind factor, result;
    double rounding;
    int sizes;  // argument that holds M
  };
  const auto of = GENERATE(Product{"product_f16", Kind::F16, Kind::F16, kHalf, 3},
                           Product{"product_f16_small", Kind::F16, Kind::F16, kHalf, 3},
                           Product{"product_tf32", Kind::Tf32, Kind::F32, kFloat, 3},
                           Product{"product_s8", Kind::S8, Kind::S32, 1e-15, 3},
                           Product{"product_fp8", Kind::E4m3, Kind::F16, kHalf, 3},
                           Product{"split_product", Kind::Bf16, Kind::F32, kFloat, 3},
                           Product{"product_by_maps", Kind::F16, Kind::F16, kHalf, 15},
                           Product{"persistent_product", Kind::Bf16, Kind::Bf16, kBrain, 15});
  check_instance(std::string("triton_03_") + of.stem, [&](const Launch& launch, const auto& before, const auto& after) {
    const std::size_t first = static_cast<std::size_t>(of.sizes);
    const int m = int_argument(launch, first), n = int_argument(launch, first + 1), k = int_argument(launch, first + 2);
    const Matrix c = matrix(of.factor, before("a"), m, k) * matrix(of.factor, before("b"), k, n);
    CHECK(largest(matrix(of.result, after("c"), m, n) - c) <= of.rounding * largest(c));
  });
}

TEST_CASE("Triton: a product with a factor in four bits", "[triton]") {
  check_instance("triton_03_four_bit_product", [](const Launch& launch, const auto& before, const auto& after) {
    const int m = int_argument(launch, 4), n = int_argument(launch, 5), k = int_argument(launch, 6);
    const auto packed = before("packed");
    const Matrix scales = matrix(Kind::F16, before("scales"), k / 128, n);
    Matrix b(k, n);
    for (Eigen::Index row = 0; row < k; ++row)
      for (Eigen::Index col = 0; col < n; ++col) {
        std::uint32_t word = 0;
        std::memcpy(&word, packed.data() + 4 * (row / 8 * n + col), 4);
        b(row, col) = (static_cast<int>(word >> row % 8 * 4 & 15) - 8) * scales(row / 128, col);
      }
    const Matrix c = matrix(Kind::F16, before("a"), m, k) * b;
    CHECK(largest(matrix(Kind::F16, after("c"), m, n) - c) < 2 * kHalf * largest(c));
  });
}

TEST_CASE("Triton: attention forward", "[triton]") {
  struct Instance {
    const char* stem;
    Kind kind;
    Eigen::Index size;
    bool causal;
  };
  const auto of =
      GENERATE(Instance{"attention_64_causal", Kind::F16, 64, true}, Instance{"attention_128", Kind::Bf16, 128, false},
               Instance{"attention_by_maps", Kind::F16, 128, true});
  check_instance(std::string("triton_04_") + of.stem, [&](const Launch& launch, const auto& before, const auto& after) {
    const Eigen::Index length = launch.grid.x * 128, heads = launch.grid.y;
    const auto part = [&](const auto& bytes, Eigen::Index head) {
      return matrix(of.kind, bytes, length, of.size, head * length * of.size);
    };
    for (Eigen::Index head = 0; head < heads; ++head) {
      const Attention expected(part(before("q"), head), part(before("k"), head), part(before("v"), head),
                               1 / std::sqrt(static_cast<double>(of.size)), of.causal);
      CHECK(distance(part(after("o"), head), expected.o) < (of.kind == Kind::Bf16 ? 4e-3 : 5e-4));
    }
  });
}

TEST_CASE("Triton: attention backward", "[triton]") {
  check_instance("triton_04_attention_backward", [](const Launch& launch, const auto& before, const auto& after) {
    const Eigen::Index length = launch.grid.x * 128, heads = launch.grid.y, size = 64;
    const auto part = [&](Kind kind, const auto& bytes, Eigen::Index head, Eigen::Index columns) {
      return matrix(kind, bytes, length, columns, head * length * columns);
    };
    for (Eigen::Index head = 0; head < heads; ++head) {
      const Matrix q = part(Kind::F16, before("q"), head, size), k = part(Kind::F16, before("k"), head, size);
      const Matrix v = part(Kind::F16, before("v"), head, size), go = part(Kind::F16, before("go"), head, size);
      const Matrix lse = part(Kind::F32, before("lse"), head, 1), delta = part(Kind::F32, before("delta"), head, 1);
      // Logarithms and deltas are given, in no relation to q, k and v.
      Matrix p = q * k.transpose() * 0.125 / std::log(2.0);
      for (Eigen::Index row = 0; row < length; ++row) {
        p.row(row) = (p.row(row).array() - lse(row)).unaryExpr([](double e) { return std::exp2(e); });
        p.row(row).tail(length - row - 1).setZero();
      }
      Matrix slope = go * v.transpose();
      for (Eigen::Index row = 0; row < length; ++row) slope.row(row).array() -= delta(row);
      slope = 0.125 * p.cwiseProduct(slope);
      CHECK(distance(part(Kind::F32, after("gq"), head, size), slope * k) < 2e-3);
      CHECK(distance(part(Kind::F16, after("gk"), head, size), slope.transpose() * q) < 2e-3);
      CHECK(distance(part(Kind::F16, after("gv"), head, size), p.transpose() * go) < 1e-3);
    }
  });
}
