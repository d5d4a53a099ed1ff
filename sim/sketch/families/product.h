// Products of matrices as kernels, for the families that have some.
#pragma once

#include <string>
#include <vector>

#include "sketch/families/tensor.h"

namespace forewarp::sketch {

/// What happens to a result between its sum and its store, in order.
enum class AfterSum : std::uint8_t { Bias, Relu, Gelu, Residual, Scale, Mask };

/// C[m][n] = A[m][k] B[k][n], row-major, a tile of C a block.
struct ProductPlan {
  std::int64_t m = 0, n = 0, k = 0;
  Type type = Type::F16;
  bool a_turned = false;  ///< A is [k][m]
  bool b_turned = false;  ///< B is [n][k]
  int tile_m = 0, tile_n = 0, tile_k = 0;
  int warp_m = 0, warp_n = 0, stages = 0;
  int thread_m = 8, thread_n = 8;
  bool ahead = true;
  bool by_registers = false;
  bool wgmma = false;        ///< products of warpgroups, whose tile is warp_m x tile_n
  bool tma = false;          ///< TMA fetches the tiles
  bool specialised = false;  ///< ... of wgmma, with a warpgroup that asks for them
  int cluster_m = 1;         ///< blocks one above the other that have one tile of B, of which each fetches its share
  int cluster_n = 1;         ///< ... and side by side, of A
  int group = 1;             ///< rows of tiles that are handed out together
  int parts = 1;             ///< of k
  bool persistent = false;   ///< blocks stay and take one tile after another
  int batch = 1;             ///< products, side by side in memory
  int shared_b = 1;          ///< products of the batch, one after another, that have one B
  std::vector<AfterSum> epilogue;
  float scale = 1;                                  ///< of AfterSum::Scale
  const char* remedy = "take a smaller warp tile";  ///< where it takes too many registers

  bool mma() const { return type != Type::F32; }
  /// Of what is stored.
  Type result() const {
    if (parts > 1 || type == Type::Tf32) return Type::F32;
    return beside();
  }
  /// Of bias and residual.
  Type beside() const { return type == Type::E4m3 ? Type::Bf16 : type; }
  int result_bytes() const { return type == Type::S8 ? 4 : bytes_of(result()); }
  int threads() const {
    if (wgmma) return (tile_m / warp_m + (specialised ? 1 : 0)) * 4 * kWarpLanes;
    return mma() ? tile_m / warp_m * (tile_n / warp_n) * kWarpLanes : tile_m / thread_m * (tile_n / thread_n);
  }
  int a_bytes() const { return tile_m * tile_k * bytes_of(type); }
  int b_bytes() const { return tile_k * tile_n * bytes_of(type); }
  int shared_bytes() const {
    const int barriers = tma ? stages * 16 : 0;
    return (mma() ? stages : 1) * (a_bytes() + b_bytes()) + barriers;
  }
  bool clustered() const { return cluster_m * cluster_n > 1; }
  /// In whole clusters.
  std::int64_t tiles_m() const { return ceiling(m, std::int64_t{tile_m} * cluster_m) * cluster_m; }
  std::int64_t tiles_n() const { return ceiling(n, std::int64_t{tile_n} * cluster_n) * cluster_n; }
  Dim3 grid() const;
  bool rows_first() const { return group > 1; }  ///< x of the grid runs along m
  Dim3 cluster() const;
  /// Whether every thread gets whole copies of both tiles, and every warp whole steps.
  bool deals() const;
  bool has(AfterSum what) const;
};

/// Arguments: a, b, c, bias, residual (where the epilogue has them), m, n, k.
Kernel tensor_product(const ProductPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
Kernel float_product(const ProductPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
/// Arguments: as above; with `tma` maps of a (boxes of 64 x its share of tile_m) and of b (64 x 64; by columns 64 x its
/// share of tile_n), both with rows of 128 bytes.
Kernel group_product(const ProductPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
Kernel write_product(const ProductPlan&, const GpuModel&, const std::string& name, const SourcePosition&);
/// Adds up the parts of k: sums[parts][elements] in fp32, c[elements], elements, in blocks of 256.
Kernel sum_parts(int parts, Type, const GpuModel&, const std::string& name, const SourcePosition&);
/// The launch of a product's kernel, without its arguments.
Launch product_launch(const ProductPlan&, const std::string& kernel, const SourcePosition&);

/// What both kinds of product begin and end with.
class Product {
 public:
  Product(const ProductPlan& plan, const GpuModel& model, const std::string& name);

 protected:
  Value subtract(Value a, Value b);
  /// The address of element (row, column) of a matrix with so many in a row.
  Value element(int parameter, Value row, Value pitch, Value column, Type type) {
    return element_address(w_, parameter, row, pitch, column, type);
  }
  /// A row of the batch's matrix: beyond the rows of the products before.
  Value in_batch(Value row, Value rows, int shared = 1);

  /// Sizes of C, and the block's tile in it unless it stays.
  void find_block();

  // Blocks that stay.
  int all_tiles() const { return static_cast<int>(plan_.tiles_m() * plan_.tiles_n()); }
  /// Row and column of the i-th tile, in groups of rows of tiles.
  void find_tile(Value i, Value& row, Value& column);

  // Results, `count` side by side in a row at a time.
  void begin_results(Value first_column, const std::vector<int>& columns, int count);
  void begin_row(Value row, Value first_column);
  void store(std::size_t group, const std::vector<Value>& sums, int column, Value beyond);

  const ProductPlan& plan_;
  Writer w_;
  int pointers_[3]{}, sizes_[3]{}, bias_ = 0, residual_ = 0;
  Value thread_, block_m_, block_n_, m_, n_, k_, base_;

 private:
  Value divide(Value a, int by);  ///< the quotient of a number below 2^31
  Value rest(Value a, Value quotient, int by);

  std::vector<std::vector<Value>> biases_;  ///< by group of columns
  Value row_at_, residual_at_, row_, first_column_;
};

}  // namespace forewarp::sketch
