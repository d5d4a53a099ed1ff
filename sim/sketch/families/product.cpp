#include "sketch/families/product.h"

#include <algorithm>

namespace forewarp::sketch {

Dim3 ProductPlan::grid() const {
  const auto m_tiles = static_cast<std::uint32_t>(tiles_m()), n_tiles = static_cast<std::uint32_t>(tiles_n());
  if (persistent) return {m_tiles * n_tiles, 1, 1};  // at most
  if (rows_first()) {
    // x is the row in its group: blocks are handed out in that order without a division.
    const std::uint32_t rows = std::min(m_tiles, static_cast<std::uint32_t>(group));
    return {rows, n_tiles, (m_tiles + rows - 1) / rows};
  }
  return {n_tiles, m_tiles, static_cast<std::uint32_t>(std::max(batch, parts))};
}

Dim3 ProductPlan::cluster() const {
  if (!clustered()) return {0, 0, 0};
  const auto along_m = static_cast<std::uint32_t>(cluster_m), along_n = static_cast<std::uint32_t>(cluster_n);
  return rows_first() ? Dim3{along_m, along_n, 1} : Dim3{along_n, along_m, 1};
}

bool ProductPlan::deals() const {
  const auto whole = [&](int bytes, int row_bytes) {
    return bytes / kChunk % threads() == 0 && row_bytes >= kStepBytes && threads() % (row_bytes / kChunk) == 0;
  };
  const int size = bytes_of(type);
  return warp_m >= kStrip && warp_n >= kStrip && warp_m <= tile_m && warp_n <= tile_n && tile_k >= step_depth(type) &&
         whole(a_bytes(), (a_turned ? tile_m : tile_k) * size) && whole(b_bytes(), (b_turned ? tile_k : tile_n) * size);
}

bool ProductPlan::has(AfterSum what) const {
  return std::find(epilogue.begin(), epilogue.end(), what) != epilogue.end();
}

Kernel write_product(const ProductPlan& plan, const GpuModel& model, const std::string& name,
                     const SourcePosition& where) {
  if (plan.wgmma) return group_product(plan, model, name, where);
  return plan.mma() ? tensor_product(plan, model, name, where) : float_product(plan, model, name, where);
}

Launch product_launch(const ProductPlan& plan, const std::string& kernel, const SourcePosition& where) {
  Launch launch;
  launch.kernel = kernel;
  launch.where = where;
  launch.grid = plan.grid();
  launch.cluster = plan.cluster();
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  if (plan.mma()) launch.dynamic_shared_bytes = static_cast<std::uint32_t>(plan.shared_bytes());
  return launch;
}

Kernel sum_parts(int parts, Type type, const GpuModel& model, const std::string& name, const SourcePosition& where) {
  constexpr int kThreads = 256;
  Writer w(model, name);
  const int sums = w.pointer_parameter(), c = w.pointer_parameter(), elements = w.integer_parameter();
  w.descriptor();
  const Value index = w.mad(w.copy(w.block_x()), imm(kThreads), w.thread());
  const Value count = w.uniform_integer(elements);
  w.code.exit(w.compare("GE", index, count));
  Value at = w.wide_mad(index, imm(4), w.pointer(sums));
  const Value step = w.wide_mad(w.copy(count), imm(4), kRZ), total = w.number(0);
  for (int p = 0; p < parts; ++p) {
    w.code.emit("FADD", {total, total, w.load_global(at, 0, 4)});
    if (p + 1 < parts) at = further(w, at, step);
  }
  const Value to = w.wide_mad(index, imm(bytes_of(type)), w.pointer(c));
  w.store_global(to, 0, narrow(w, total, type), bytes_of(type));
  return w.finish(where, "take fewer parts", kThreads, 0);
}

// ---- what both kinds share

Product::Product(const ProductPlan& plan, const GpuModel& model, const std::string& name)
    : plan_(plan), w_(model, name) {
  for (int f = 0; f < 3; ++f) pointers_[f] = plan.tma && f < 2 ? w_.tensor_map_parameter() : w_.pointer_parameter();
  if (plan.has(AfterSum::Bias)) bias_ = w_.pointer_parameter();
  if (plan.has(AfterSum::Residual)) residual_ = w_.pointer_parameter();
  for (int& p : sizes_) p = w_.integer_parameter();
  w_.descriptor();
  thread_ = w_.thread();
  find_block();
  if (!plan_.persistent && plan_.rows_first() && plan_.tiles_m() % plan_.grid().x != 0)
    w_.code.exit(w_.compare("GE", block_m_, imm(static_cast<int>(plan_.tiles_m()))));
  k_ = w_.integer(sizes_[2]);
  base_ = w_.shared_base();
}

void Product::find_block() {
  m_ = w_.integer(sizes_[0]);
  n_ = w_.integer(sizes_[1]);
  if (plan_.persistent) return;
  if (!plan_.rows_first()) {
    block_n_ = w_.copy(w_.block_x());
    block_m_ = w_.copy(w_.block_y());
    return;
  }
  const int rows = static_cast<int>(plan_.grid().x);
  block_m_ = w_.mad(w_.copy(w_.block_z()), imm(rows), w_.block_x());
  block_n_ = w_.copy(w_.block_y());
}

Value Product::divide(Value a, int by) {
  if (is_power_of_two(by)) return w_.shift_right(a, log2_of(by));
  const int bits = log2_of(by);
  const auto factor =
      static_cast<std::uint32_t>((std::uint64_t{1} << (31 + bits)) / static_cast<std::uint64_t>(by) + 1);
  const Value high = w_.code.vector();
  w_.code.emit("IMAD.HI.U32", {high, a, imm(factor), kRZ});
  return w_.shift_right(high, bits - 1);
}
Value Product::rest(Value a, Value quotient, int by) {
  const Value v = w_.code.vector();
  w_.code.emit("IMAD", {v, quotient, imm(-by), a});
  return v;
}

void Product::find_tile(Value i, Value& row, Value& column) {
  const int tiles_m = static_cast<int>(plan_.tiles_m()), tiles_n = static_cast<int>(plan_.tiles_n());
  const int group = std::min(plan_.group, tiles_m);
  const Value which = divide(i, group * tiles_n), in_group = rest(i, which, group * tiles_n);
  column = divide(in_group, group);
  Value in_column = rest(in_group, column, group);
  if (const int lower = tiles_m % group; lower != 0) {  // of the last group
    const Value last = w_.compare("EQ", which, imm(tiles_m / group)), other = divide(in_group, lower);
    const Value chosen = w_.code.vector(), left = w_.code.vector();
    w_.code.emit("SEL", {chosen, other, column, last});
    w_.code.emit("SEL", {left, rest(in_group, other, lower), in_column, last});
    column = chosen;
    in_column = left;
  }
  row = w_.mad(which, imm(group), in_column);
}

Value Product::subtract(Value a, Value b) {
  const Value v = w_.code.vector();
  w_.code.emit("IADD3", {v, a, -b, kRZ});
  return v;
}

Value Product::in_batch(Value row, Value rows, int shared) {
  if (plan_.batch == 1 || shared >= plan_.batch) return row;
  return w_.mad(w_.shift_right(w_.copy(w_.block_z()), log2_of(shared)), rows, row);
}

void Product::begin_results(Value first_column, const std::vector<int>& columns, int count) {
  biases_.clear();
  if (bias_ == 0) return;
  const int size = bytes_of(plan_.beside());
  const Value at = w_.wide_mad(first_column, imm(size), w_.pointer(bias_));
  for (const int column : columns) {
    const Value beyond = w_.compare("GE", w_.add(first_column, imm(column)), n_);
    const Value v = w_.load_global(at, column * size, count * size, true, beyond, true);
    std::vector<Value> floats;
    for (int e = 0; e < count; ++e) floats.push_back(element_of(w_, v, e, plan_.beside()));
    biases_.push_back(std::move(floats));
  }
}

void Product::begin_row(Value row, Value first_column) {
  row_ = row;
  first_column_ = first_column;
  Value at = in_batch(row, m_);
  if (plan_.parts > 1) at = w_.mad(w_.copy(w_.block_z()), m_, at);
  row_at_ = element(pointers_[2], at, n_, first_column, plan_.type == Type::S8 ? Type::F32 : plan_.result());
  if (residual_ != 0) residual_at_ = element(residual_, at, n_, first_column, plan_.beside());
}

void Product::store(std::size_t group, const std::vector<Value>& sums, int column, Value beyond) {
  std::vector<Value> v = sums;
  const int size = bytes_of(plan_.beside()), count = static_cast<int>(sums.size());
  for (const AfterSum what : plan_.epilogue) {
    Value other;
    if (what == AfterSum::Residual)
      other = w_.load_global(residual_at_, column * size, count * size, true, beyond, true);
    for (int e = 0; e < count; ++e) {
      Value& x = v[static_cast<std::size_t>(e)];
      switch (what) {
        case AfterSum::Bias:
          x = w_.fp("FADD", x, biases_[group][static_cast<std::size_t>(e)]);
          break;
        case AfterSum::Residual:
          x = w_.fp("FADD", x, element_of(w_, other, e, plan_.beside()));
          break;
        case AfterSum::Relu: {
          const Value most = w_.code.vector();
          w_.code.emit("FMNMX", {most, x, kRZ, !kPT});
          x = most;
          break;
        }
        case AfterSum::Gelu: {
          // x / 2 (1 + tanh(x (a + b x^2))), by tanh.approx.
          constexpr float kA = 0.7978845608f, kB = 0.7978845608f * 0.044715f;
          const Value square = w_.fp("FMUL", x, x);
          const Value inner = w_.fp("FMUL", x, w_.fp("FFMA", square, w_.copy(imm(kB)), imm(kA)));
          const Value half = w_.fp("FMUL", x, imm(0.5f));
          x = w_.fp("FFMA", half, w_.fp("MUFU.TANH", inner), half);
          break;
        }
        case AfterSum::Scale:
          x = w_.fp("FMUL", x, imm(plan_.scale));
          break;
        case AfterSum::Mask: {
          const Value later = w_.compare("GT", w_.add(first_column_, imm(column + e)), row_);
          x = w_.fp("FSEL", x, imm(kMinusInfinity), !later);
          break;
        }
      }
    }
  }
  const int bytes = plan_.result_bytes();
  if (bytes == 2) {
    const Value packed = pack(w_, plan_.result(), v[0], v[1]);
    w_.store_global(row_at_, column * 2, packed, 4, beyond, true);
    return;
  }
  Value together = sums[0];
  bool moved = false;
  for (std::size_t e = 0; e < v.size(); ++e) moved |= !(v[e] == sums[0].at(static_cast<int>(e)));
  if (moved) {
    together = w_.code.vector(count);
    for (int e = 0; e < count; ++e) w_.assign(together.at(e), v[static_cast<std::size_t>(e)]);
  }
  w_.store_global(row_at_, column * bytes, together, count * bytes, beyond, true);
}

}  // namespace forewarp::sketch
