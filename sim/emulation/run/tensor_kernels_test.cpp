// The project's tensor-core kernels with all values, against Eigen in double precision.
#include "emulation/run/eigen_support.h"

using namespace forewarp;

namespace {

/// For both architectures.
template <class Check>
void for_each_check(const std::string& stem, const Check& check) {
  for_each_check_of(GENERATE(as<std::string>{}, "sm_80", "sm_90"), stem, check);
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

TEST_CASE("products of warpgroups equal Eigen's", "[kernels]") {
  const std::string stem =
      GENERATE(as<std::string>{}, "matmul_20_wgmma", "matmul_21_tma", "matmul_22_pipeline",
               "matmul_23_warp_specialised", "matmul_24_cluster_multicast", "matmul_25_persistent");
  for_each_check_of("sm_90", stem, [](const Case& item, const auto& before, const auto& after) {
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

TEST_CASE("A with two of four left packs into what is left, and mma.sp multiplies that", "[kernels]") {
  for_each_check("matmul_17_sparse_2_4", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.back();
    const int m = int_argument(launch, 4), n = int_argument(launch, 5), k = int_argument(launch, 6);
    const Types types = types_of(launch.kernel);
    const Matrix a = matrix(types.factor, before("a"), m, k);
    Matrix left = Matrix::Zero(m, k);
    for (Eigen::Index row = 0; row < m; ++row) {
      for (Eigen::Index col = 0; col < k; ++col) {
        const Eigen::Index first = col / 4 * 4;
        int larger = 0;
        for (Eigen::Index other = first; other < std::min<Eigen::Index>(first + 4, k); ++other) {
          const double mine = std::fabs(a(row, col)), its = std::fabs(a(row, other));
          larger += other < col ? its >= mine : its > mine;
        }
        if (larger < 2) left(row, col) = a(row, col);
      }
    }
    const Matrix expected = left * matrix(types.factor, before("b"), k, n);
    check_close(types, k, matrix(types.result, after("c"), m, n), expected);
  });
}

namespace {

std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

/// What dropout multiplies the weights of a head with (kernels/attention/dropout.cuh).
Matrix dropout(std::uint32_t seed, std::uint32_t head, Eigen::Index length, std::uint32_t dropped) {
  Matrix factor(length, length);
  const std::uint32_t key = mixed(seed + 0x9e3779b9u * head);
  for (Eigen::Index row = 0; row < length; ++row) {
    for (Eigen::Index col = 0; col < length; ++col) {
      const auto pair = static_cast<std::uint32_t>(row * ((length + 1) / 2) + col / 2);
      const std::uint32_t bits = mixed(key ^ pair) >> (col % 2 * 16) & 0xffffu;
      factor(row, col) = bits >= dropped ? 65536.0 / (65536.0 - dropped) : 0.0;
    }
  }
  return factor;
}

bool is_causal(const Case& item) { return item.id.find("causal") != std::string::npos; }

}  // namespace

TEST_CASE("attention on tensor cores equals its definition", "[kernels]") {
  const std::string stem = GENERATE(as<std::string>{}, "attention_04_flash1", "attention_05_flash2");
  for_each_check(stem, [&](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const bool first = stem == "attention_04_flash1", brain = launch.kernel.find("bf16") != std::string::npos;
    const Eigen::Index length = int_argument(launch, first ? 6 : 5), group = first ? 1 : int_argument(launch, 6);
    const Eigen::Index size = launch.kernel.ends_with("_128") ? 128 : 64;
    const Eigen::Index heads = first ? launch.grid.x : launch.grid.y;
    const Kind kind = brain ? Kind::Bf16 : Kind::F16;
    const auto q = before("q"), k = before("k"), v = before("v"), o = after("o");
    for (Eigen::Index head = 0; head < heads; ++head) {
      const auto part = [&](Kind type, const auto& bytes, Eigen::Index of) {
        return matrix(type, bytes, length, size, of * length * size);
      };
      const Attention expected(part(kind, q, head), part(kind, k, head / group), part(kind, v, head / group),
                               1 / std::sqrt(static_cast<double>(size)), is_causal(item));
      const Matrix result = part(first ? Kind::F32 : kind, o, head);
      // Weights and result are rounded to 11 or 8 bits.
      CHECK((result - expected.o).cwiseAbs().maxCoeff() < (brain ? 1.2e-2 : 1.5e-3));
      CHECK(distance(result, expected.o) < (brain ? 4e-3 : 5e-4));
    }
  });
}

TEST_CASE("attention by warpgroups equals its definition", "[kernels]") {
  for_each_check_of("sm_90", "attention_08_flash3", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const Eigen::Index length = int_argument(launch, 4), group = int_argument(launch, 5), heads = launch.grid.y;
    const Eigen::Index size = launch.kernel.ends_with("_128") ? 128 : 64;
    const bool brain = launch.kernel.find("bf16") != std::string::npos;
    const auto q = before("q"), k = before("k"), v = before("v"), o = after("o");
    for (Eigen::Index head = 0; head < heads; ++head) {
      const auto part = [&](const auto& bytes, Eigen::Index of) {
        return matrix(brain ? Kind::Bf16 : Kind::F16, bytes, length, size, of * length * size);
      };
      const Attention expected(part(q, head), part(k, head / group), part(v, head / group),
                               1 / std::sqrt(static_cast<double>(size)), is_causal(item));
      const Matrix result = part(o, head);
      // Weights and result are rounded to 11 or 8 bits.
      CHECK((result - expected.o).cwiseAbs().maxCoeff() < (brain ? 1.2e-2 : 1.5e-3));
      CHECK(distance(result, expected.o) < (brain ? 4e-3 : 5e-4));
    }
  });
}

TEST_CASE("gradients of attention equal their definition", "[kernels]") {
  for_each_check("attention_05_flash2.backward", [](const Case& item, const auto& before, const auto& after) {
    const Launch& launch = item.launches.front();
    const Eigen::Index length = int_argument(launch, 5), group = int_argument(launch, 6), heads = launch.grid.y;
    const Eigen::Index size = launch.kernel.ends_with("_128") ? 128 : 64;
    const auto q = before("q"), k = before("k"), v = before("v"), d_o = before("d_o");
    const auto dq = after("dq"), dk = after("dk"), dv = after("dv");
    const auto part = [&](const auto& bytes, Eigen::Index head) {
      return matrix(Kind::F16, bytes, length, size, head * length * size);
    };
    for (Eigen::Index shared = 0; shared < heads / group; ++shared) {
      Matrix sum_dk = Matrix::Zero(length, size), sum_dv = sum_dk;
      for (Eigen::Index head = shared * group; head < (shared + 1) * group; ++head) {
        const Attention expected(part(q, head), part(k, shared), part(v, shared),
                                 1 / std::sqrt(static_cast<double>(size)), is_causal(item), {}, part(d_o, head));
        CHECK(distance(part(dq, head), expected.dq) < 2e-3);
        sum_dk += expected.dk;
        sum_dv += expected.dv;
      }
      CHECK(distance(part(dk, shared), sum_dk) < 2e-3);
      CHECK(distance(part(dv, shared), sum_dv) < 1e-3);
    }
  });
}

TEST_CASE("nanoGPT's attention drops the same weights slow and flash, forward and backward", "[kernels]") {
  const std::string stem = GENERATE(as<std::string>{}, "attention_06_nanogpt_slow", "attention_07_nanogpt_flash");
  for_each_check(stem, [&](const Case& item, const auto& before, const auto& after) {
    constexpr Eigen::Index kSize = 64;
    const bool slow = stem == "attention_06_nanogpt_slow";
    const Launch& launch = item.launches.front();
    const Eigen::Index length = int_argument(launch, slow ? 3 : 5), heads = slow ? launch.grid.z : launch.grid.y;
    const auto part = [&](const auto& bytes, Eigen::Index head) {
      return matrix(Kind::F16, bytes, length, kSize, head * length * kSize);
    };
    const auto q = before("q"), k = before("k"), v = before("v"), d_o = before("d_o");
    const auto o = after("o"), dq = after("dq"), dk = after("dk"), dv = after("dv");
    for (Eigen::Index head = 0; head < heads; ++head) {
      const Matrix factor = dropout(1234, static_cast<std::uint32_t>(head), length, 13107);
      const Attention expected(part(q, head), part(k, head), part(v, head), 0.125, true, factor, part(d_o, head));
      CHECK(distance(part(o, head), expected.o) < 2e-3);
      CHECK(distance(part(dq, head), expected.dq) < 4e-3);
      CHECK(distance(part(dk, head), expected.dk) < 4e-3);
      CHECK(distance(part(dv, head), expected.dv) < 2e-3);
      CHECK(std::fabs(factor.mean() - 1) < 0.05);
    }
  });
}
