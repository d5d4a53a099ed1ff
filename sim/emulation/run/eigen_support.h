// Values of kernels against Eigen: matrices of every type out of buffers, and attention by its definition.
#pragma once

#include <Eigen/Dense>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "emulation/machine/float_bits.h"
#include "emulation/run/kernels_support.h"

namespace forewarp {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

enum class Kind { F16, Bf16, F32, Tf32, F64, S8, S32, E4m3 };

inline int bytes_of(Kind kind) {
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

inline double value_of(Kind kind, const std::uint8_t* from) {
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

inline Matrix matrix(Kind kind, const std::vector<std::uint8_t>& bytes, Eigen::Index rows, Eigen::Index cols,
                     Eigen::Index first = 0) {
  const auto size = static_cast<std::size_t>(bytes_of(kind));
  REQUIRE(bytes.size() >= static_cast<std::size_t>(first + rows * cols) * size);
  Matrix m(rows, cols);
  for (Eigen::Index i = 0; i < rows * cols; ++i)
    m.data()[i] = value_of(kind, bytes.data() + static_cast<std::size_t>(first + i) * size);
  return m;
}

/// Runs every _check_ case of a stem for an architecture: check(case, buffer(name) before, buffer(name) after).
template <class Check>
void for_each_check_of(const std::string& arch, const std::string& stem, const Check& check) {
  const Program program = load_program(kTraces + arch + "/" + stem.substr(0, stem.find('.')) + ".cubin");
  const LaunchFile launches = read_launch_file(kTraces + stem + ".yaml");
  int checked = 0;
  for (const Case& item : launches.cases) {
    if (!is_check(item)) continue;
    ++checked;
    INFO(arch << " " << item.id);
    const EmulatedCase run = emulate_values(program, item);
    check(
        item, [&](const char* name) { return make_buffer(item.buffers[buffer_index(item, name)]); },
        [&](const char* name) { return run.buffers[buffer_index(item, name)]; });
  }
  CHECK(checked >= 3);
}

/// One head of attention and its gradients; `factor` scales the weights after the softmax (dropout), or is empty.
struct Attention {
  Matrix p, o, dq, dk, dv;

  Attention(const Matrix& q, const Matrix& k, const Matrix& v, double scale, bool causal, const Matrix& factor = {},
            const Matrix& d_o = {}) {
    p = scale * (q * k.transpose());
    for (Eigen::Index row = 0; row < p.rows(); ++row) {
      if (causal) p.row(row).tail(p.cols() - row - 1).setConstant(-INFINITY);
      p.row(row) = (p.row(row).array() - p.row(row).maxCoeff()).exp();
      p.row(row) /= p.row(row).sum();
    }
    const Matrix w = factor.size() == 0 ? p : Matrix(p.cwiseProduct(factor));
    o = w * v;
    if (d_o.size() == 0) return;
    dv = w.transpose() * d_o;
    Matrix ds = d_o * v.transpose();
    if (factor.size() != 0) ds = ds.cwiseProduct(factor);
    for (Eigen::Index row = 0; row < ds.rows(); ++row)
      ds.row(row) = p.row(row).cwiseProduct(ds.row(row) - Matrix::Constant(1, ds.cols(), p.row(row).dot(ds.row(row))));
    dq = scale * (ds * k);
    dk = scale * (ds.transpose() * q);
  }
};

inline double distance(const Matrix& result, const Matrix& expected) {
  return (result - expected).norm() / expected.norm();
}

}  // namespace forewarp
