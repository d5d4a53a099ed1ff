// Kernels over rows, for the families that have some.
#pragma once

#include "sketch/families/common.h"

namespace forewarp::sketch {

enum class RowOperation : std::uint8_t { Softmax, LayerNorm, Sum, Max, SoftmaxBack };

/// A block a row. Arguments: in, gamma and beta of a layer norm, out, columns. The way back of a softmax takes its
/// result and the gradient of that, and gives the gradient of what went in.
struct RowsPlan {
  RowOperation operation = RowOperation::Softmax;
  std::int64_t rows = 0, columns = 0;
  Type type = Type::F32;
  int vector = 1, block = 256;
  float scale = 1;  ///< of SoftmaxBack
};
Kernel row_kernel(const RowsPlan&, const GpuModel&, const std::string& name, const SourcePosition&);

}  // namespace forewarp::sketch
