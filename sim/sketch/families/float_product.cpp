// Products by FMA: a tile of each operand goes through registers into shared memory (what runs along k transposed), all
// wait, all multiply.
#include "sketch/families/product.h"

namespace forewarp::sketch {
namespace {

constexpr int kFour = 4;  ///< floats of a load

class FloatProduct : public Product {
 public:
  using Product::Product;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    const int fours_k = plan_.tile_k / kFour, fours_n = plan_.tile_n / kFour;
    const auto quotient = [&](int fours) { return w_.shift_right(thread_, log2_of(fours)); };
    const auto rest = [&](int fours) {
      return w_.shift_left(w_.and_bits(thread_, static_cast<std::uint32_t>(fours - 1)), 2);
    };
    const Value a_row = quotient(fours_k), a_column = rest(fours_k);
    const Value b_row = quotient(plan_.b_turned ? fours_k : fours_n),
                b_column = rest(plan_.b_turned ? fours_k : fours_n);
    const int across = plan_.tile_n / plan_.thread_n;
    const Value row = w_.mad(w_.shift_right(thread_, log2_of(across)), imm(plan_.thread_m), kRZ);
    const Value column = w_.mad(w_.and_bits(thread_, static_cast<std::uint32_t>(across - 1)), imm(plan_.thread_n), kRZ);
    const Value from_row = w_.mad(block_m_, imm(plan_.tile_m), a_row);
    const Value b_place = w_.mad(block_n_, imm(plan_.tile_n), plan_.b_turned ? b_row : b_column);  // along n
    const Value b_depth = plan_.b_turned ? b_column : b_row;
    const Value a_at = element(pointers_[0], in_batch(from_row, m_), k_, a_column, plan_.type);
    const Value b_at = plan_.b_turned
                           ? element(pointers_[1], in_batch(b_place, n_, plan_.shared_b), k_, b_column, plan_.type)
                           : element(pointers_[1], in_batch(b_row, k_, plan_.shared_b), n_, b_place, plan_.type);
    const Value rows_in = w_.compare("LT", from_row, m_), columns_in = w_.compare("LT", b_place, n_);
    Value b_tile;
    if (!plan_.b_turned) b_tile = w_.wide_mad(n_, imm(plan_.tile_k * 4), kRZ);
    const Value a_to = w_.mad(a_column, imm(plan_.tile_m * 4), w_.shift_left(a_row, 2));
    const Value b_to = w_.mad(b_depth, imm(plan_.tile_n * 4), w_.shift_left(plan_.b_turned ? b_row : b_column, 2));
    const Value a_from = w_.shift_left(row, 2), b_from = w_.shift_left(column, 2);
    const Value depth = w_.number(0);
    std::vector<std::vector<Value>> sums(static_cast<std::size_t>(plan_.thread_m));
    for (auto& of_row : sums)
      for (int s = 0; s < plan_.thread_n; s += kFour) {
        const Value four = zero_sums(w_);
        for (int e = 0; e < kFour; ++e) of_row.push_back(four.at(e));
      }
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LT", k_, imm(1)));
    c.place(loop);
    const Value a = zero_sums(w_), b = zero_sums(w_);
    w_.load_global(a, a_at, 0, 16, true, w_.compare_and("LT", w_.add(a_column, depth), k_, rows_in));
    w_.load_global(b, b_at, 0, 16, true, w_.compare_and("LT", w_.add(b_depth, depth), k_, columns_in));
    for (int e = 0; e < kFour; ++e) w_.store_shared(a_to, e * plan_.tile_m * 4, a.at(e), 4, base_);
    if (plan_.b_turned) {
      for (int e = 0; e < kFour; ++e) w_.store_shared(b_to, plan_.a_bytes() + e * plan_.tile_n * 4, b.at(e), 4, base_);
    } else {
      w_.store_shared(b_to, plan_.a_bytes(), b, 16, base_);
    }
    w_.advance(a_at, imm(plan_.tile_k * 4));
    if (plan_.b_turned)
      w_.advance(b_at, imm(plan_.tile_k * 4));
    else
      advance_by(w_, b_at, b_tile);
    w_.barrier();
    for (int i = 0; i < plan_.tile_k; ++i) {
      std::vector<Value> x, y;
      for (int r = 0; r < plan_.thread_m; r += kFour) {
        const Value v = w_.load_shared(a_from, i * plan_.tile_m * 4 + r * 4, 16, base_);
        for (int e = 0; e < kFour; ++e) x.push_back(v.at(e));
      }
      for (int s = 0; s < plan_.thread_n; s += kFour) {
        const Value v = w_.load_shared(b_from, plan_.a_bytes() + i * plan_.tile_n * 4 + s * 4, 16, base_);
        for (int e = 0; e < kFour; ++e) y.push_back(v.at(e));
      }
      for (std::size_t s = 0; s < y.size(); ++s)
        for (std::size_t r = 0; r < x.size(); ++r) c.emit("FFMA", {sums[r][s], x[r], y[s], sums[r][s]});
    }
    w_.barrier();
    c.emit("IADD3", {depth, depth, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", depth, k_));
    c.place(done);
    store_tile(sums, row, column);
    return w_.finish(where, "take fewer results a thread", plan_.threads(),
                     static_cast<std::uint32_t>(plan_.shared_bytes()));
  }

 private:
  void store_tile(const std::vector<std::vector<Value>>& sums, Value row, Value column) {
    Code& c = w_.code;
    const Value first_row = w_.mad(block_m_, imm(plan_.tile_m), row),
                first_column = w_.mad(block_n_, imm(plan_.tile_n), column);
    std::vector<int> columns;
    for (int s = 0; s < plan_.thread_n; s += kFour) columns.push_back(s);
    begin_results(first_column, columns, kFour);
    for (int r = 0; r < plan_.thread_m; ++r) {
      const Label skip = c.new_label();
      const Value at_row = w_.add(first_row, imm(r));
      c.diverge(skip);
      c.branch(skip, w_.compare("GE", at_row, m_));
      begin_row(at_row, first_column);
      for (std::size_t g = 0; g < columns.size(); ++g) {
        const int s = columns[g];
        const Value beyond = w_.compare("GE", w_.add(first_column, imm(s)), n_);
        const Value* first = &sums[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)];
        store(g, {first, first + kFour}, s, beyond);
      }
      c.converge(skip);
    }
  }
};

}  // namespace

Kernel float_product(const ProductPlan& plan, const GpuModel& model, const std::string& name,
                     const SourcePosition& where) {
  return FloatProduct(plan, model, name).write(where);
}

}  // namespace forewarp::sketch
