// Attention's kernels: softmax(Q K^T) V for every head, [head][length][size] of 16-bit types.
#pragma once

#include "sketch/families/tensor.h"

namespace forewarp::sketch {

inline constexpr double kLog2E = 1.4426950408889634;

struct AttentionPlan {
  std::int64_t queries = 0, keys = 0;  ///< lengths
  int heads = 1, size = 64;            ///< of queries, elements of one
  int group = 1;                       ///< heads of queries to a head of keys
  bool causal = false;
  Type type = Type::F16;
  int tile_q = 128, tile_k = 64, warps = 4;
  bool wgmma = false;     ///< products of warpgroups on tiles that TMA fetches
  bool log_sums = false;  ///< of wgmma forward: rows leave the logarithms of their sums to the way back

  int threads() const { return warps * kWarpLanes; }
  /// Rows of a head in what wgmma backward reads by boxes: whole tiles.
  std::int64_t pitch() const { return ceiling(queries, tile_q) * tile_q; }
  int row_bytes() const { return size * bytes_of(type); }
};

/// FlashAttention-2, forward. Arguments: q, k, v, o, log_sums, queries, keys, scale log2(e). A block keeps tile_q
/// queries, each warp its share of them with all keys, and walks the keys tile_k at a time.
Kernel flash_forward(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
int flash_forward_shared(const AttentionPlan&);

/// FlashAttention-3, forward, on sm_90. Arguments: maps of q (boxes of 64 x tile_q), k and v (64 x tile_k) and o (64 x
/// 64), of three dimensions; queries, keys, scale log2(e); for a way back its pitch, log_sums.
Kernel flash_groups(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
int flash_groups_shared(const AttentionPlan&);

/// FlashAttention-2, backward. Arguments: q, k, v, d_o, log_sums, delta, dq_sums, dk, dv, queries, keys, scale, scale
/// log2(e). A block keeps tile_k keys, 16 a warp, and walks the queries tile_q at a time.
Kernel flash_backward(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
int flash_backward_shared(const AttentionPlan&);
/// FlashAttention-3, backward, on sm_90. Arguments: maps of q, d_o (boxes of 64 x tile_q), k, v (64 x tile_k), dk, dv
/// (64 x 64), log_sums and delta (tile_q); dq_sums, queries, keys, pitch, scale log2(e), scale.
Kernel flash_groups_backward(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
int flash_groups_backward_shared(const AttentionPlan&);
/// delta[row] = sum of dO O along the head, a warp a row; also clears dq_sums. Arguments: o, d_o, delta, dq_sums, rows
/// (of wgmma those of a head, with the heads along y, and the pitch); blocks of 256.
Kernel flash_delta(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
/// dq of dq_sums. Arguments: dq_sums, dq, pairs of elements (of wgmma those of a head, with the heads along y, the
/// pitch and the scale); blocks of 256.
Kernel flash_dq(const AttentionPlan&, const GpuModel&, const std::string& name, const SourcePosition&);

}  // namespace forewarp::sketch
