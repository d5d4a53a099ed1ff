// Attention's kernels: softmax(Q K^T) V for every head, [head][length][size] of 16-bit types.
#pragma once

#include "sketch/families/tensor.h"

namespace forewarp::sketch {

struct AttentionPlan {
  std::int64_t queries = 0, keys = 0;  ///< lengths
  int heads = 1, size = 64;            ///< of queries, elements of one
  int group = 1;                       ///< heads of queries to a head of keys
  bool causal = false;
  Type type = Type::F16;
  int tile_q = 128, tile_k = 64, warps = 4;

  int threads() const { return warps * kWarpLanes; }
  int row_bytes() const { return size * bytes_of(type); }
};

/// FlashAttention-2, forward. Arguments: q, k, v, o, log_sums, queries, keys, scale log2(e). A block keeps tile_q
/// queries, each warp its share of them with all keys, and walks the keys tile_k at a time.
Kernel flash_forward(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
int flash_forward_shared(const AttentionPlan&);

}  // namespace forewarp::sketch
