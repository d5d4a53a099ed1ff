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
  CHECK(matrix_interval(h, product(16, 8, 16), 128) == 4);
  CHECK(matrix_interval(h, product(16, 16, 16), 128) == 6);
  CHECK(matrix_interval(h, product(16, 4, 32), 128) == 4);
  CHECK(matrix_interval(h, product(16, 8, 32), 128) == 6);
  CHECK(matrix_interval(h, product(8, 16, 8), 128) == 4);
  CHECK(matrix_interval(h, product(16, 16, 8), 128) == 4);
  CHECK(matrix_interval(h, product(16, 32, 8), 128) == 6);
  CHECK(matrix_interval(h, product(16, 256, 1), 128) == 6);
  CHECK(matrix_interval(h, product(16, 16, 16, true), 128) == 6);
  CHECK(matrix_interval(h, product(16, 32, 16, true), 128) == 8);
  CHECK(matrix_interval(h, product(16, 64, 8, true), 128) == 8);
  CHECK(matrix_interval(h, product(8, 4, 64), 128) == 16);
  CHECK(matrix_interval(h, product(16, 4, 64), 128) == 16);
  CHECK(matrix_interval(h, product(16, 8, 64), 128) == 32);
  CHECK(matrix_interval(h, product(16, 16, 64), 128) == 64);
  // A100: half the multipliers, so that most are bound by them (Sun et al. 2022).
  const TensorSpec a = load_gpu_model("a100-sxm4-80gb").tensor;
  CHECK(matrix_interval(a, product(16, 8, 16), 128) == 4);
  CHECK(matrix_interval(a, product(16, 16, 16), 128) == 8);
  CHECK(matrix_interval(a, product(16, 8, 32), 128) == 8);
  CHECK(matrix_interval(a, product(16, 32, 8), 128) == 8);
  CHECK(matrix_interval(a, product(16, 64, 4), 128) == 8);
  CHECK(matrix_interval(a, product(16, 16, 16, true), 128) == 6);
  CHECK(matrix_interval(a, product(16, 32, 16, true), 128) == 8);
  CHECK(matrix_interval(a, product(8, 4, 64), 128) == 16);
}

TEST_CASE("a warp group's product is bound by its arithmetic, or by what it reads of shared memory") {
  const GpuModel model = load_gpu_model("h200-sxm");
  const auto interval = [&](int columns, int depth, int bits, bool shared, bool sparse = false) {
    MatrixWork work = product(64, depth, bits, sparse);
    work.columns = columns;
    work.first_shared = shared;
    return matrix_interval(model.tensor, work, model.l1.data_bytes_per_cycle);
  };
  for (const bool shared : {true, false}) {
    CHECK(interval(256, 16, 16, shared) == 128);
    CHECK(interval(64, 16, 16, shared) == 32);
    CHECK(interval(256, 32, 8, shared) == 128);
    CHECK(interval(256, 8, 32, shared) == 128);
  }
  CHECK(interval(32, 16, 16, true) == 24);
  CHECK(interval(32, 16, 16, false) == 16);
  CHECK(interval(256, 32, 16, true, true) == 144);
  CHECK(interval(256, 32, 16, false, true) == 128);
}

TEST_CASE("a scoreboard says when doubles are summed") {
  const TensorSpec h = load_gpu_model("h200-sxm").tensor;
  CHECK(matrix_latency(h, product(8, 4, 64)) == 8 + 18);
  CHECK(matrix_latency(h, product(16, 4, 64)) == 16 + 18);
}

TEST_CASE("a warp group's product goes in slabs, whose sums hold the register ports") {
  const GpuModel model = load_gpu_model("h200-sxm");
  MatrixWork work = product(64, 16, 16);
  work.columns = 128;
  work.first_shared = true;
  MatrixSlabs slabs = matrix_slabs(model, work, 64);
  CHECK(slabs.count == 16);
  CHECK(slabs.cycles == 4);
  CHECK(slabs.lead_cycles == 0);
  CHECK(slabs.fetch_cycles == 0);
  CHECK(slabs.port_cycles == model.async.slab_port_cycles);
  // Sums of halves are half as many registers.
  CHECK(matrix_slabs(model, work, 32).port_cycles == (model.async.slab_port_cycles + 1) / 2);
  work.first_shared = false;
  CHECK(matrix_slabs(model, work, 64).fetch_cycles == model.async.factor_fetch_cycles);
  // Three slabs in the 22 cycles in which the factors come: one more before the first.
  work.columns = 24;
  work.first_shared = true;
  slabs = matrix_slabs(model, work, 12);
  CHECK(slabs.count == 3);
  CHECK(slabs.cycles == 7);
  CHECK(slabs.lead_cycles == 1);
}
