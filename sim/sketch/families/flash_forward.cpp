// FlashAttention-2, forward: no sums are exchanged between warps, O stays in registers and is divided by its sum once,
// at the end. The sums of S are the words of P for the next product as they lie. K and V come by cp.async, V under S =
// Q K^T and the next K under P V. A causal block stops at its diagonal; blocks with the most keys go first.
#include <algorithm>

#include "sketch/families/attention.h"

namespace forewarp::sketch {
namespace {

class FlashForward {
 public:
  FlashForward(const AttentionPlan& plan, const GpuModel& model, const std::string& name)
      : plan_(plan), w_(model, name) {}

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    begin();
    const Value more_keys = w_.compare("LT", column_, keys_);
    for (int p = 0; p < q_.passes(); ++p) q_.copy(p, q_.place(p), q_.offset(p), Value{});
    copy_keys();
    c.emit("LDGDEPBAR");
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, more_keys, true);
    c.place(loop);
    wait_for_copies(w_, 0);  // K is there, and every warp is done with V
    for (int p = 0; p < v_.passes(); ++p) v_.copy(p, v_.place(p), v_at() + v_.offset(p), Value{});
    c.emit("LDGDEPBAR");
    w_.advance(v_.at, imm(tile_bytes()));
    multiply_keys();
    wait_for_copies(w_, 0);  // V is there, and every warp is done with K
    const Label last = c.new_label();
    c.branch(last, w_.compare("LT", w_.add(column_, imm(plan_.tile_k)), keys_), true);
    w_.advance(k_.at, imm(tile_bytes()));
    c.emit("IADD3", {k_.rows_left, k_.rows_left, imm(-plan_.tile_k), kRZ});
    copy_keys();
    c.place(last);
    c.emit("LDGDEPBAR");
    mask();
    weigh();
    multiply_values();
    c.emit("IADD3", {column_, column_, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", column_, keys_));
    c.place(done);
    end();
    return w_.finish(where, "take fewer queries a warp, or fewer keys a tile", plan_.threads(), 0);
  }

 private:
  int strips() const { return plan_.tile_q / plan_.warps / kStrip; }
  int k_at() const { return q_.bytes(); }
  int v_at() const { return q_.bytes() + k_.bytes(); }
  int eights(int columns) const { return columns / 8; }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void begin() {
    Code& c = w_.code;
    for (int& p : pointers_) p = w_.pointer_parameter();
    const int queries = w_.integer_parameter(), keys = w_.integer_parameter(), scale = w_.integer_parameter();
    w_.descriptor();
    const Value thread = w_.thread();
    Value tile = w_.copy(w_.block_x());
    if (plan_.causal) {
      const Value from_end = c.vector();
      c.emit("LOP3.LUT", {from_end, kRZ, tile, kRZ, imm(0x33), !kPT});
      tile = c.vector();
      c.emit("IADD3", {tile, from_end, constant(kGridX), kRZ});
    }
    const Value head = w_.copy(w_.block_y());
    queries_ = w_.uniform_integer(queries);
    all_keys_ = w_.uniform_integer(keys);
    scale_ = w_.integer(scale);
    base_ = w_.shared_base();
    const Value row0 = w_.mad(tile, imm(plan_.tile_q), kRZ);

    const int threads = plan_.threads();
    q_ = TileCopy(w_, plan_.tile_q, plan_.row_bytes(), threads, thread);
    k_ = TileCopy(w_, plan_.tile_k, plan_.row_bytes(), threads, thread);
    v_ = k_;
    const Value base = w_.copy(base_);
    q_.find_places(base);
    k_.find_places(base);
    v_ = k_;
    const Value head_row = w_.mad(head, queries_, kRZ);
    const Value k_row = w_.mad(w_.shift_right(head, log2_of(plan_.group)), all_keys_, k_.row());
    const Value q_row = w_.add(row0, q_.row());
    q_.at = chunk_address(pointers_[0], w_.add(head_row, q_row), q_.chunk());
    k_.at = chunk_address(pointers_[1], k_row, k_.chunk());
    v_.at = chunk_address(pointers_[2], k_row, v_.chunk());
    for (TileCopy* t : {&q_, &k_, &v_}) t->step_bytes = t->rows_a_pass() * plan_.row_bytes();
    q_.rows_left = left(queries_, q_row);
    k_.rows_left = left(all_keys_, k_.row());
    v_.rows_left = k_.rows_left;  // V is copied before K goes on

    const Value lane = w_.and_bits(thread, 31);
    const Value first = w_.mad(w_.shift_right(thread, 5), imm(plan_.tile_q / plan_.warps), kRZ);
    pair_ = w_.shift_left(w_.and_bits(lane, 3), 1);
    const Value in_tile = w_.add(first, w_.shift_right(lane, 2));
    row_ = w_.add(row0, in_tile);
    const int turns = plan_.size / step_depth(plan_.type);
    q_words_ = TileWords(w_, Factor::A, plan_.row_bytes(), first, lane, turns);
    k_words_ = TileWords(w_, Factor::BTurned, plan_.row_bytes(), Value{}, lane, turns);
    v_words_ = TileWords(w_, Factor::B, plan_.row_bytes(), Value{}, lane, plan_.size / kStrip);

    keys_ = all_keys_;
    if (plan_.causal) {
      const Value keys_seen = c.vector();
      c.emit(c.hopper() ? "VIMNMX" : "IMNMX", {keys_seen, w_.add(row0, imm(plan_.tile_q)), all_keys_, kPT});
      keys_ = c.uniform();
      c.emit("R2UR", {keys_, keys_seen});
      diagonal_ = c.uniform();
      c.emit("R2UR", {diagonal_, w_.add(row0, imm(1))});
    }
    column_ = w_.number(0);
    out_.assign(at(strips()), std::vector<Value>(at(eights(plan_.size))));
    for (auto& strip : out_)
      for (Value& sum : strip) sum = zero_sums(w_);
    for (int i = 0; i < 2 * strips(); ++i) {
      largest_.push_back(w_.copy(imm(kMinusInfinity)));
      sum_.push_back(w_.number(0));
    }
  }

  Value chunk_address(int parameter, Value row, Value chunk) {
    const Value element = w_.mad(row, imm(plan_.size), w_.shift_left(chunk, log2_of(kChunk / bytes_of(plan_.type))));
    return w_.wide_mad(element, imm(bytes_of(plan_.type)), w_.pointer(parameter));
  }
  Value left(Value all, Value from) {
    const Value v = w_.code.vector();
    w_.code.emit("IADD3", {v, -from, all, kRZ});
    return v;
  }

  void copy_keys() {
    for (int p = 0; p < k_.passes(); ++p) k_.copy(p, k_.place(p), k_at() + k_.offset(p), Value{});
  }
  int tile_bytes() const { return plan_.tile_k * plan_.row_bytes(); }

  /// S = Q K^T.
  void multiply_keys() {
    s_.assign(at(strips()), std::vector<Value>(at(eights(plan_.tile_k))));
    for (auto& strip : s_)
      for (Value& sum : strip) sum = w_.code.vector(4);
    for (int step = 0; step < plan_.size / step_depth(plan_.type); ++step) {
      std::vector<Value> a, b;
      for (int i = 0; i < strips(); ++i) {
        a.push_back(w_.code.vector(4));
        q_words_.load(a.back(), i, step, base_, 0);
      }
      for (int j = 0; j < plan_.tile_k / kStrip; ++j) {
        b.push_back(w_.code.vector(4));
        k_words_.load(b.back(), j, step, base_, k_at());
      }
      for (int i = 0; i < strips(); ++i)
        for (int j = 0; j < eights(plan_.tile_k); ++j)
          multiply(w_, plan_.type, s_[at(i)][at(j)], a[at(i)], b[at(j / 2)].at(j % 2 * 2),
                   step == 0 ? kRZ : s_[at(i)][at(j)]);
    }
  }

  /// Keys beyond the length, or after the query, count for nothing.
  void mask() {
    const bool ragged = plan_.keys % plan_.tile_k != 0;
    if (!ragged && !plan_.causal) return;
    Code& c = w_.code;
    const Label whole = c.new_label();
    const Value end = w_.add(column_, imm(plan_.tile_k));
    Value inside = w_.compare("LE", end, all_keys_);
    if (plan_.causal) inside = w_.compare_and("LE", end, diagonal_, inside);
    c.branch(whole, inside);
    const Value first = w_.add(column_, pair_);
    const Value last = w_.add(w_.copy(all_keys_), imm(-1));
    for (int i = 0; i < strips(); ++i)
      for (int h = 0; h < 2; ++h) {
        Value limit = last;
        if (plan_.causal) {
          limit = c.vector();
          c.emit(c.hopper() ? "VIMNMX" : "IMNMX", {limit, last, w_.add(row_, imm(i * kStrip + h * 8)), kPT});
        }
        const Value before = left(limit, first);
        for (int j = 0; j < eights(plan_.tile_k); ++j)
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            const Value s = s_[at(i)][at(j)].at(e);
            const Value beyond = w_.compare("LT", before, imm(j * 8 + e % 2));
            c.emit("FSEL", {s, s, imm(kMinusInfinity), !beyond});
          }
      }
    c.place(whole);
  }

  Value most_of(Value a, Value b) { return combine(w_, a, b, Reduce::Max); }

  /// P = exp2(scale S - scale max), and what was summed up before in the same measure.
  void weigh() {
    Code& c = w_.code;
    for (int i = 0; i < strips(); ++i)
      for (int h = 0; h < 2; ++h) {
        const Value largest = largest_[at(2 * i + h)], sum = sum_[at(2 * i + h)];
        Value most = largest;
        for (int j = 0; j < eights(plan_.tile_k); ++j) {
          const Value s = s_[at(i)][at(j)];
          most = most_of(most, most_of(s.at(2 * h), s.at(2 * h + 1)));
        }
        most = across_row(most, Reduce::Max);
        const Value kept = w_.fp("FMUL", w_.fp("FADD", largest, -most), scale_);
        power_of_2(w_, kept);
        const Value shift = w_.fp("FMUL", most, scale_);
        w_.assign(largest, most);
        Value added;
        for (int j = 0; j < eights(plan_.tile_k); ++j)
          for (int e = 2 * h; e < 2 * h + 2; ++e) {
            const Value s = s_[at(i)][at(j)].at(e);
            c.emit("FFMA", {s, s, scale_, -shift});
            power_of_2(w_, s);
            added = added.id < 0 ? w_.fp("FADD", kRZ, s) : w_.fp("FADD", added, s);
          }
        c.emit("FFMA", {sum, sum, kept, added});  // of this lane's keys; the lanes are added up at the end
        for (const Value& o : out_[at(i)])
          for (int e = 2 * h; e < 2 * h + 2; ++e) c.emit("FMUL", {o.at(e), o.at(e), kept});
      }
  }

  Value across_row(Value x, Reduce how) {
    for (const int distance : {1, 2}) {
      const Value other = w_.code.vector();
      w_.code.emit("SHFL.BFLY", {kPT, other, x, imm(distance), imm(0x1f)});
      x = combine(w_, x, other, how);
    }
    return x;
  }

  /// O += P V: the sums of S are the words of P as they lie.
  void multiply_values() {
    Code& c = w_.code;
    for (int step = 0; step < plan_.tile_k / step_depth(plan_.type); ++step) {
      std::vector<Value> p;
      for (int i = 0; i < strips(); ++i) {
        const Value words = c.vector(4), s = s_[at(i)][at(2 * step)], t = s_[at(i)][at(2 * step + 1)];
        pack(w_, plan_.type, words, s, s.at(1));
        pack(w_, plan_.type, words.at(1), s.at(2), s.at(3));
        pack(w_, plan_.type, words.at(2), t, t.at(1));
        pack(w_, plan_.type, words.at(3), t.at(2), t.at(3));
        p.push_back(words);
      }
      for (int j = 0; j < plan_.size / kStrip; ++j) {
        const Value b = c.vector(4);
        v_words_.load(b, j, step, base_, v_at());
        for (int i = 0; i < strips(); ++i)
          for (int half = 0; half < 2; ++half) {
            const Value o = out_[at(i)][at(2 * j + half)];
            multiply(w_, plan_.type, o, p[at(i)], b.at(2 * half), o);
          }
      }
    }
  }

  void end() {
    Code& c = w_.code;
    const Value first_lane = w_.compare("EQ", pair_, kRZ);
    const Value head = c.hopper() ? c.uniform() : c.vector();
    c.emit(c.hopper() ? "S2UR" : "S2R", {head, special(SpecialRegister::CtaIdY)});
    const Value head_row = w_.mad(w_.copy(head), queries_, kRZ);
    for (int i = 0; i < strips(); ++i)
      for (int h = 0; h < 2; ++h) {
        const Value total = across_row(sum_[at(2 * i + h)], Reduce::Sum);
        const Value scale = reciprocal_of_normal(w_, total);  // at least 1, the largest one's weight
        for (const Value& o : out_[at(i)])
          for (int e = 2 * h; e < 2 * h + 2; ++e) c.emit("FMUL", {o.at(e), o.at(e), scale});
        const Value row = w_.add(row_, imm(i * kStrip + h * 8));
        const Label skip = c.new_label();
        c.diverge(skip);
        c.branch(skip, w_.compare_and("LT", row, queries_, first_lane), true);
        const Value log = w_.fp("FMUL", logarithm(w_, total), imm(1.4426950408889634f));
        const Value result = w_.fp("FFMA", largest_[at(2 * i + h)], scale_, log);
        w_.store_global(w_.wide_mad(w_.add(head_row, row), imm(4), w_.pointer(pointers_[4])), 0, result, 4);
        c.converge(skip);
      }
    for (int i = 0; i < strips(); ++i)
      for (int h = 0; h < 2; ++h) {
        const Value row = w_.add(row_, imm(i * kStrip + h * 8));
        const Value inside = w_.compare("LT", row, queries_);
        const Value element = w_.mad(w_.add(head_row, row), imm(plan_.size), pair_);
        const Value to = w_.wide_mad(element, imm(bytes_of(plan_.type)), w_.pointer(pointers_[3]));
        for (int j = 0; j < eights(plan_.size); ++j) {
          const Value o = out_[at(i)][at(j)];
          w_.store_global(to, j * 16, pack(w_, plan_.type, o.at(2 * h), o.at(2 * h + 1)), 4, inside);
        }
      }
  }

  const AttentionPlan& plan_;
  Writer w_;
  int pointers_[5]{};
  TileCopy q_, k_, v_;
  TileWords q_words_, k_words_, v_words_;
  Value base_, queries_, all_keys_, keys_, scale_, pair_, row_, column_, diagonal_;
  std::vector<std::vector<Value>> s_, out_;  ///< by strip and eight columns
  std::vector<Value> largest_, sum_;         ///< by strip and half of it
};

}  // namespace

Kernel flash_forward(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                     const SourcePosition& where) {
  return FlashForward(plan, model, name).write(where);
}

int flash_forward_shared(const AttentionPlan& plan) { return (plan.tile_q + 2 * plan.tile_k) * plan.row_bytes(); }

}  // namespace forewarp::sketch
