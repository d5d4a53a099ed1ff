// The project's own kernels with all values, against references computed on the host.
#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>

#include "emulation/run/kernels_support.h"

using namespace forewarp;

namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix64 = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct Stem {
  Program program;
  LaunchFile launches;
  Stem(const std::string& arch, const std::string& stem)
      : program(load_program(kTraces + arch + "/" + stem + ".cubin")),
        launches(read_launch_file(kTraces + stem + ".yaml")) {}
};

Matrix matrix(const std::vector<std::uint8_t>& bytes, Eigen::Index rows, Eigen::Index cols) {
  REQUIRE(bytes.size() >= static_cast<std::size_t>(rows * cols) * sizeof(float));
  Matrix m(rows, cols);
  std::memcpy(m.data(), bytes.data(), static_cast<std::size_t>(rows * cols) * sizeof(float));
  return m;
}

Matrix64 initial(const Case& item, const std::string& name, Eigen::Index rows, Eigen::Index cols) {
  return matrix(make_buffer(item.buffers[buffer_index(item, name)]), rows, cols).cast<double>();
}

Matrix64 result(const Case& item, const EmulatedCase& run, const std::string& name, Eigen::Index rows,
                Eigen::Index cols) {
  return matrix(run.buffers[buffer_index(item, name)], rows, cols).cast<double>();
}

}  // namespace

TEST_CASE("matrix products equal Eigen's", "[kernels]") {
  const std::string arch = GENERATE(as<std::string>{}, "sm_80", "sm_90");
  const std::string stem = GENERATE(as<std::string>{}, "matmul_01_naive_uncoalesced", "matmul_02_coalesced",
                                    "matmul_03_shared_tiled", "matmul_04_coarsened_1d", "matmul_05_coarsened_2d",
                                    "matmul_06_vectorized", "matmul_07_warp_tiled_double_buffered");
  const Stem files(arch, stem);
  int checked = 0;
  for (const Case& item : files.launches.cases) {
    if (!is_check(item)) continue;
    ++checked;
    INFO(arch << " " << item.id);
    const Launch& launch = item.launches.front();
    const int m = int_argument(launch, 3), n = int_argument(launch, 4), k = int_argument(launch, 5);
    const EmulatedCase run = emulate_values(files.program, item);
    const Matrix64 expected = initial(item, "a", m, k) * initial(item, "b", k, n);
    const double error = (result(item, run, "c", m, n) - expected).cwiseAbs().maxCoeff();
    // Sums of k products of numbers below 1, each step rounded to 2^-24 of a partial sum below k.
    CHECK(error < k * 6e-8 * std::sqrt(k));
    CHECK(expected.cwiseAbs().maxCoeff() > 1.0);
  }
  CHECK(checked > 0);
}

namespace {

/// softmax(scale q k^T) v of one head.
Matrix64 attention(const Matrix64& q, const Matrix64& k, const Matrix64& v, double scale, bool causal) {
  Matrix64 s = scale * (q * k.transpose());
  for (Eigen::Index row = 0; row < s.rows(); ++row) {
    if (causal) s.row(row).tail(s.cols() - row - 1).setConstant(-INFINITY);
    s.row(row) = (s.row(row).array() - s.row(row).maxCoeff()).exp();
    s.row(row) /= s.row(row).sum();
  }
  return s * v;
}

}  // namespace

TEST_CASE("attention equals its definition", "[kernels]") {
  constexpr Eigen::Index kHead = 64;
  const std::string arch = GENERATE(as<std::string>{}, "sm_80", "sm_90");
  const std::string stem =
      GENERATE(as<std::string>{}, "attention_01_unfused", "attention_02_student", "attention_03_flash");
  const Stem files(arch, stem);
  int checked = 0;
  for (const Case& item : files.launches.cases) {
    if (!is_check(item)) continue;
    ++checked;
    INFO(arch << " " << item.id);
    const bool student = stem == "attention_02_student";
    const Launch& first = item.launches.front();
    const Eigen::Index length = int_argument(first, stem == "attention_03_flash" ? 4 : 3);
    const Eigen::Index heads = student ? 1 : stem == "attention_03_flash" ? first.grid.y : first.grid.z;
    const bool causal = item.id.find("causal") != std::string::npos;
    const EmulatedCase run = emulate_values(files.program, item);
    const Matrix64 q = initial(item, "q", heads * length, kHead), k = initial(item, "k", heads * length, kHead),
                   v = initial(item, "v", heads * length, kHead), o = result(item, run, "o", heads * length, kHead);
    for (Eigen::Index h = 0; h < heads; ++h) {
      const auto part = [&](const Matrix64& x) { return Matrix64(x.middleRows(h * length, length)); };
      const Matrix64 expected = attention(part(q), part(k), part(v), 0.125, causal);
      CHECK((part(o) - expected).cwiseAbs().maxCoeff() < 1e-6);
    }
  }
  CHECK(checked > 0);
}

TEST_CASE("arguments too large for a quick reduction go through the compiler's table", "[kernels]") {
  const std::string arch = GENERATE(as<std::string>{}, "sm_80", "sm_90");
  Stem files(arch, "elementwise_01_sin_cos");
  CHECK(files.program.module_data.size() == 24);  // 2 / pi
  Case item;
  for (const Case& c : files.launches.cases) {
    if (c.id == "sin_cos_unfused_check_1000") item = c;
  }
  REQUIRE(!item.launches.empty());
  Buffer& x = item.buffers[buffer_index(item, "x")];
  x.fill = FillUniform{ElementType::F32, -1e8, 1e8, 3};
  const EmulatedCase run = emulate_values(files.program, item);
  const Matrix64 in = matrix(make_buffer(x), 1, 1000).cast<double>();
  const Matrix64 sine = in.array().sin(), cosine = in.array().cos();
  CHECK((result(item, run, "sine", 1, 1000) - sine).cwiseAbs().maxCoeff() < 1e-6);
  CHECK((result(item, run, "cosine", 1, 1000) - cosine).cwiseAbs().maxCoeff() < 1e-6);
}
