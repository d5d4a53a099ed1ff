#include "hardware/tensor.h"

#include <catch2/catch.hpp>

using namespace forewarp;

namespace {

MatrixWork product(int rows, int depth, int bits, bool sparse = false) {
  MatrixWork work;
  for (const MatrixType type : {MatrixType::Half, MatrixType::Tfloat, MatrixType::Int8, MatrixType::Int4,
                                MatrixType::Bit, MatrixType::Double}) {
    if (factor_bits(type) == bits) work.type = type;
  }
  work.sparse = sparse;
  work.rows = rows;
  work.columns = 8;
  work.depth = depth;
  return work;
}

}  // namespace

TEST_CASE("a product holds the tensor pipe for its arithmetic or its operands") {
  // H200: what Nsight Compute counts as cycles of the pipe for each instruction (kernels/micro tensor_chains).
  const TensorSpec h = load_gpu_model("h200-sxm").tensor;
  CHECK(matrix_interval(h, product(16, 8, 16)) == 4);
  CHECK(matrix_interval(h, product(16, 16, 16)) == 6);
  CHECK(matrix_interval(h, product(16, 4, 32)) == 4);
  CHECK(matrix_interval(h, product(16, 8, 32)) == 6);
  CHECK(matrix_interval(h, product(8, 16, 8)) == 4);
  CHECK(matrix_interval(h, product(16, 16, 8)) == 4);
  CHECK(matrix_interval(h, product(16, 32, 8)) == 6);
  CHECK(matrix_interval(h, product(16, 256, 1)) == 6);
  CHECK(matrix_interval(h, product(16, 16, 16, true)) == 6);
  CHECK(matrix_interval(h, product(16, 32, 16, true)) == 8);
  CHECK(matrix_interval(h, product(16, 64, 8, true)) == 8);
  CHECK(matrix_interval(h, product(8, 4, 64)) == 16);
  CHECK(matrix_interval(h, product(16, 4, 64)) == 16);
  CHECK(matrix_interval(h, product(16, 8, 64)) == 32);
  CHECK(matrix_interval(h, product(16, 16, 64)) == 64);
  // A100: half the multipliers, so that most are bound by them (Sun et al. 2022).
  const TensorSpec a = load_gpu_model("a100-sxm4-80gb").tensor;
  CHECK(matrix_interval(a, product(16, 8, 16)) == 4);
  CHECK(matrix_interval(a, product(16, 16, 16)) == 8);
  CHECK(matrix_interval(a, product(16, 8, 32)) == 8);
  CHECK(matrix_interval(a, product(16, 32, 8)) == 8);
  CHECK(matrix_interval(a, product(16, 64, 4)) == 8);
  CHECK(matrix_interval(a, product(16, 16, 16, true)) == 6);
  CHECK(matrix_interval(a, product(16, 32, 16, true)) == 8);
  CHECK(matrix_interval(a, product(8, 4, 64)) == 16);
}

TEST_CASE("a warp group's product is bound by its arithmetic alone") {
  const TensorSpec h = load_gpu_model("h200-sxm").tensor;
  MatrixWork work = product(64, 16, 16);
  work.columns = 256;
  CHECK(matrix_interval(h, work) == 128);
}

TEST_CASE("a scoreboard says when doubles are summed") {
  const TensorSpec h = load_gpu_model("h200-sxm").tensor;
  CHECK(matrix_latency(h, product(8, 4, 64)) == 8 + 18);
  CHECK(matrix_latency(h, product(16, 4, 64)) == 16 + 18);
}
