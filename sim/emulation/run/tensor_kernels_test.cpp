// The project's tensor-core kernels with all values, against Eigen in double precision.
#include <Eigen/Dense>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>

#include "emulation/emulation.h"
#include "emulation/machine/float_bits.h"

using namespace forewarp;

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

const std::string kTraces = std::string(FOREWARP_SOURCE_DIR) + "/traces/";

enum class Kind { F16, Bf16, F32, Tf32, F64, S8, S32, E4m3 };

int bytes_of(Kind kind) {
  switch (kind) {
    case Kind::F16:
    case Kind::Bf16:
      return 2;
    case Kind::S8:
    case Kind::E4m3:
      return 1;
    case Kind::F64:
      return 8;
    default:
      return 4;
  }
}

double value_of(Kind kind, const std::uint8_t* from) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, from, static_cast<std::size_t>(bytes_of(kind)));
  const auto word = static_cast<std::uint32_t>(raw);
  switch (kind) {
    case Kind::F16:
      return static_cast<double>(emulation::half_to_float(word));
    case Kind::Bf16:
      return static_cast<double>(emulation::brain_to_float(word));
    case Kind::F32:
      return static_cast<double>(std::bit_cast<float>(word));
    case Kind::Tf32:  // the tensor core looks at the upper 19 bits
      return static_cast<double>(std::bit_cast<float>(word & 0xffffe000u));
    case Kind::F64:
      return std::bit_cast<double>(raw);
    case Kind::S8:
      return static_cast<std::int8_t>(word);
    case Kind::S32:
      return static_cast<std::int32_t>(word);
    case Kind::E4m3: {
      const int exponent = static_cast<int>(word >> 3 & 15), fraction = static_cast<int>(word & 7);
      const double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
      return (word & 0x80) != 0 ? -magnitude : magnitude;
    }
  }
  return 0;
}

Matrix matrix(Kind kind, const std::vector<std::uint8_t>& bytes, Eigen::Index rows, Eigen::Index cols,
              Eigen::Index first = 0) {
  const auto size = static_cast<std::size_t>(bytes_of(kind));
  REQUIRE(bytes.size() >= static_cast<std::size_t>(first + rows * cols) * size);
  Matrix m(rows, cols);
  for (Eigen::Index i = 0; i < rows * cols; ++i)
    m.data()[i] = value_of(kind, bytes.data() + static_cast<std::size_t>(first + i) * size);
  return m;
}

std::size_t buffer_index(const Case& item, const std::string& name) {
  for (std::size_t i = 0; i < item.buffers.size(); ++i) {
    if (item.buffers[i].name == name) return i;
  }
  FAIL("no buffer " << name << " in " << item.id);
  return 0;
}

int int_argument(const Launch& launch, std::size_t i) {
  return static_cast<int>(static_cast<std::uint32_t>(launch.arguments[i].bits));
}

/// Runs every _check_ case of a stem for both architectures: check(case, buffer(name) before, buffer(name) after).
template <class Check>
void for_each_check(const std::string& stem, const Check& check) {
  const std::string arch = GENERATE(as<std::string>{}, "sm_80", "sm_90");
  const Program program = load_program(kTraces + arch + "/" + stem + ".cubin");
  const LaunchFile launches = read_launch_file(kTraces + stem + ".yaml");
  int checked = 0;
  for (const Case& item : launches.cases) {
    if (item.id.find("_check_") == std::string::npos) continue;
    if (arch == "sm_90" && item.id.find("_f64_") != std::string::npos) continue;  // DMMA of 16 rows is to come
    ++checked;
    INFO(arch << " " << item.id);
    const EmulatedCase run = emulate_values(program, item);
    check(
        item, [&](const char* name) { return make_buffer(item.buffers[buffer_index(item, name)]); },
        [&](const char* name) { return run.buffers[buffer_index(item, name)]; });
  }
  CHECK(checked >= 3);
}

struct Types {
  Kind factor, result;
  bool b_transposed;
};

Types types_of(const std::string& kernel) {
  const auto has = [&](const char* part) { return kernel.find(part) != std::string::npos; };
  if (has("_bf16")) return {Kind::Bf16, Kind::Bf16, false};
  if (has("_f16")) return {Kind::F16, Kind::F16, false};
  if (has("_tf32")) return {Kind::Tf32, Kind::F32, true};
  if (has("_s8")) return {Kind::S8, Kind::S32, true};
  if (has("_e4m3")) return {Kind::E4m3, Kind::F32, true};
  REQUIRE(has("_f64"));
  return {Kind::F64, Kind::F64, true};
}

/// How far a sum of k products of numbers up to 1 may be off: a rounding a step, then the rounding of the result.
double tolerance(const Types& types, int k, double expected) {
  const double magnitude = std::fabs(expected);
  switch (types.result) {
    case Kind::F16:
      return k * 6e-8 * std::sqrt(k) + magnitude * 0x1p-11 + 0x1p-25;
    case Kind::Bf16:
      return k * 6e-8 * std::sqrt(k) + magnitude * 0x1p-8;
    case Kind::S32:
      return 0;
    case Kind::F64:
      return k * 1.2e-16 * std::sqrt(k);
    default:
      return k * 6e-8 * std::sqrt(k);
  }
}

void check_close(const Types& types, int k, const Matrix& result, const Matrix& expected) {
  Eigen::Index wrong = 0;
  for (Eigen::Index i = 0; i < result.size(); ++i) {
    const double error = std::fabs(result.data()[i] - expected.data()[i]);
    wrong += !(error <= tolerance(types, k, expected.data()[i]));
  }
  CHECK(wrong == 0);
  CHECK(expected.cwiseAbs().maxCoeff() > 1.0);
}

}  // namespace

TEST_CASE("tensor-core products equal Eigen's", "[kernels]") {
  const std::string stem = GENERATE(as<std::string>{}, "matmul_08_mma_global", "matmul_09_shared_ldmatrix",
                                    "matmul_10_bank_conflicts", "matmul_11_async_stages", "matmul_12_tensor",
                                    "matmul_13_block_order", "matmul_14_split_k", "matmul_15_persistent");
  for_each_check(stem, [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const int m = int_argument(launch, 3), n = int_argument(launch, 4), k = int_argument(launch, 5);
    const Types types = types_of(launch.kernel);
    const Matrix expected = matrix(types.factor, before("a"), m, k) * matrix(types.factor, before("b"), k, n);
    check_close(types, k, matrix(types.result, after("c"), m, n), expected);
  });
}

TEST_CASE("tensor-core products of every type equal Eigen's", "[kernels]") {
  for_each_check("matmul_16_types", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const int m = int_argument(launch, 3), n = int_argument(launch, 4), k = int_argument(launch, 5);
    const Types types = types_of(launch.kernel);
    const Matrix expected =
        matrix(types.factor, before("a"), m, k) * matrix(types.factor, before("b"), n, k).transpose();
    check_close(types, k, matrix(types.result, after("c"), m, n), expected);
  });
}

TEST_CASE("every choice of tiles equals Eigen's product", "[kernels]") {
  for_each_check("matmul_19_tiles", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const int m = int_argument(launch, 3), n = int_argument(launch, 4), k = int_argument(launch, 5);
    const Types types = types_of(launch.kernel);
    Matrix b = matrix(types.factor, before("b"), types.b_transposed ? n : k, types.b_transposed ? k : n);
    if (types.b_transposed) b.transposeInPlace();
    check_close(types, k, matrix(types.result, after("c"), m, n), matrix(types.factor, before("a"), m, k) * b);
  });
}

TEST_CASE("a product with blocks of A left out equals Eigen's without them", "[kernels]") {
  for_each_check("matmul_18_block_sparse", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const int m = int_argument(launch, 4), n = int_argument(launch, 5), k = int_argument(launch, 6);
    const Types types = types_of(launch.kernel);
    Matrix a = matrix(types.factor, before("a"), m, k);
    const Matrix blocks = matrix(Kind::S32, before("blocks"), (m + 127) / 128, (k + 63) / 64);
    for (Eigen::Index row = 0; row < m; ++row) {
      for (Eigen::Index col = 0; col < k; ++col) {
        if (blocks(row / 128, col / 64) >= int_argument(launch, 7)) a(row, col) = 0;
      }
    }
    const Matrix expected = a * matrix(types.factor, before("b"), k, n);
    Eigen::Index wrong = 0;
    const Matrix c = matrix(types.result, after("c"), m, n);
    for (Eigen::Index i = 0; i < c.size(); ++i)
      wrong += !(std::fabs(c.data()[i] - expected.data()[i]) <= tolerance(types, k, expected.data()[i]));
    CHECK(wrong == 0);
  });
}
