// FlashAttention-2, backward: a block keeps the keys of a tile, a warp 16 of them, and walks the queries: it makes S^T
// and P^T anew from the logarithms of the rows' sums, keeps dK and dV in registers, and adds its share of dQ in memory.
#include <algorithm>

#include "sketch/families/attention.h"

namespace forewarp::sketch {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000;

class FlashBackward {
 public:
  FlashBackward(const AttentionPlan& plan, const GpuModel& model, const std::string& name)
      : plan_(plan), w_(model, name) {}

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    begin();
    for (int p = 0; p < k_.passes(); ++p) k_.copy(p, k_.place(p), k_.offset(p), Value{});
    for (int p = 0; p < v_.passes(); ++p) v_.copy(p, v_.place(p), v_at() + v_.offset(p), Value{});
    copy_queries();
    const Label loop = c.new_label(), none = c.new_label();
    c.place(loop);
    wait_for_copies(w_, 0);  // this stage is there, and every warp is done with the other and with dS
    const Value stage = w_.copy(fetched_stage_), row0 = w_.copy(row0_), head = w_.copy(head_);
    step_on();
    c.branch(none, w_.compare("GE", head_, heads_end_));
    copy_queries();
    c.place(none);
    const Value ring = c.uniform(), offset = c.uniform();
    c.emit("R2UR", {offset, stage});
    c.emit("UIADD3", {ring, offset, base_, kURZ});
    multiply_rows(p_, k_words_, 0, ring, ring_at());
    multiply_rows(ds_, k_words_, v_at(), ring, ring_at() + stage_bytes());
    mask(row0);
    weigh(stage);
    add_products(dv_, p_, ring, ring_at() + stage_bytes());
    add_products(dk_, ds_, ring, ring_at());
    store_scores();
    w_.barrier();
    add_queries(row0, head);
    c.branch(loop, w_.compare("LT", head_, heads_end_));
    end();
    return w_.finish(where, "take smaller heads, or fewer queries a tile", plan_.threads(), 0);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int v_at() const { return k_.bytes(); }
  int ring_at() const { return 2 * k_.bytes(); }
  int stage_bytes() const { return q_.bytes(); }  // of Q, and of dO behind it
  int scores_at() const { return ring_at() + 4 * stage_bytes(); }
  int scores_bytes() const { return plan_.tile_k * plan_.tile_q * bytes_of(plan_.type); }
  int rows_at() const { return scores_at() + scores_bytes(); }
  int eights() const { return plan_.tile_q / 8; }
  int row_strips() const { return plan_.tile_q / kStrip; }
  int parts() const { return plan_.warps / row_strips(); }  // of a head, of dQ
  int size() const { return bytes_of(plan_.type); }

  void begin() {
    for (int& p : pointers_) p = w_.pointer_parameter();
    const int queries = w_.integer_parameter(), keys = w_.integer_parameter();
    scale_at_ = w_.integer_parameter();
    const int scale2 = w_.integer_parameter();
    w_.descriptor();
    const Value thread = w_.thread();
    thread_ = thread;
    const Value block = w_.copy(w_.block_x());
    kv_head_ = w_.copy(w_.block_y());
    queries_ = w_.uniform_integer(queries);
    keys_ = w_.uniform_integer(keys);
    scale2_ = w_.integer(scale2);
    base_ = w_.shared_base();
    const Value column0 = w_.mad(block, imm(plan_.tile_k), kRZ);
    k_ = TileCopy(w_, plan_.tile_k, plan_.row_bytes(), plan_.threads(), thread);
    q_ = TileCopy(w_, plan_.tile_q, plan_.row_bytes(), plan_.threads(), thread);
    const Value base = w_.copy(base_);
    k_.find_places(base);
    q_.find_places();
    v_ = k_;
    const Value key_row = w_.add(column0, k_.row()), all_row = w_.mad(kv_head_, keys_, key_row);
    k_.at = address(1, all_row, k_.chunk());
    v_.at = address(2, all_row, k_.chunk());
    k_.step_bytes = v_.step_bytes = k_.rows_a_pass() * plan_.row_bytes();
    q_.step_bytes = q_.rows_a_pass() * plan_.row_bytes();
    k_.rows_left = left(keys_, key_row);
    v_.rows_left = k_.rows_left;

    const Value lane = w_.and_bits(thread, 31), warp = w_.shift_right(thread, 5);
    pair_ = w_.shift_left(w_.and_bits(lane, 3), 1);
    const Value first = w_.mad(warp, imm(kStrip), kRZ), in_tile = w_.add(first, w_.shift_right(lane, 2));
    key_ = w_.add(column0, in_tile);
    const int turns = plan_.size / step_depth(plan_.type), strips = plan_.size / kStrip;
    k_words_ = TileWords(w_, Factor::A, plan_.row_bytes(), first, lane, turns);
    q_columns_ = TileWords(w_, Factor::BTurned, plan_.row_bytes(), Value{}, lane, turns);
    q_rows_ = TileWords(w_, Factor::B, plan_.row_bytes(), Value{}, lane, strips);
    const int part_bits = log2_of(row_strips());
    const Value strip = w_.and_bits(warp, static_cast<std::uint32_t>(row_strips() - 1)),
                part = w_.shift_right(warp, part_bits);
    scores_words_ = TileWords(w_, Factor::ATurned, plan_.tile_q * size(), w_.shift_left(strip, 1), lane, 1);
    const int part_chunks = plan_.size / parts() * size() / kChunk;
    k_rows_ = TileWords(w_, Factor::B, plan_.row_bytes(), w_.mad(part, imm(part_chunks), kRZ), lane, strips / parts());
    dq_row_ = w_.add(w_.mad(strip, imm(kStrip), kRZ), w_.shift_right(lane, 2));
    dq_column_ = w_.mad(part, imm(plan_.size / parts()), pair_);
    // dS: a row a key, its chunks exchanged by row as everywhere (the row 8 further on has them alike).
    const int ways = std::min(plan_.tile_q * size() / kChunk, 8);
    const Value which = w_.and_bits(w_.shift_right(in_tile, 3 - log2_of(ways)), static_cast<std::uint32_t>(ways - 1));
    const Value turned = w_.shift_left(which, 4);
    scores_to_ = w_.mad(in_tile, imm(plan_.tile_q * size()), w_.mad(pair_, imm(2), turned));

    first_row_ = plan_.causal ? w_.and_bits(column0, ~static_cast<std::uint32_t>(plan_.tile_q - 1)) : w_.number(0);
    row0_ = w_.copy(first_row_);
    head_ = w_.shift_left(kv_head_, log2_of(plan_.group));
    if (plan_.group == 1) head_ = w_.copy(kv_head_);
    heads_end_ = w_.add(head_, imm(plan_.group));
    fetched_stage_ = w_.number(0);
    for (auto* sums : {&dk_, &dv_})
      for (int j = 0; j < plan_.size / 8; ++j) sums->push_back(zero_sums(w_));
  }

  Value address(int which, Value row, Value chunk) {
    const Value element = w_.mad(row, imm(plan_.size), w_.shift_left(chunk, log2_of(kChunk / size())));
    return w_.wide_mad(element, imm(size()), w_.pointer(pointers_[which]));
  }
  Value left(Value all, Value from) {
    const Value v = w_.code.vector();
    w_.code.emit("IADD3", {v, -from, all, kRZ});
    return v;
  }

  /// Q and dO of the next tile, and its rows' logarithms and deltas.
  void copy_queries() {
    Code& c = w_.code;
    const Value row = w_.add(row0_, q_.row()), all = w_.mad(head_, queries_, row), element = w_.copy(all);
    q_.rows_left = left(queries_, row);
    for (int which : {0, 3}) {
      q_.at = address(which, element, q_.chunk());
      const int to = ring_at() + (which == 0 ? 0 : stage_bytes());
      for (int p = 0; p < q_.passes(); ++p) {
        const Value place = c.vector();
        c.emit("IADD3", {place, q_.place(p), fetched_stage_, base_});
        q_.copy(p, place, to + q_.offset(p), Value{});
      }
    }
    // One value a thread: first the logarithms, infinite beyond the queries, then the deltas.
    const Value mine = w_.and_bits(thread_, static_cast<std::uint32_t>(plan_.tile_q - 1));
    const Value of_row = w_.add(row0_, mine), place = w_.mad(head_, queries_, of_row);
    const Value loads = w_.compare("LT.U32", thread_, imm(2 * plan_.tile_q));
    const Value of_delta = w_.compare("GE.U32", thread_, imm(plan_.tile_q));
    const Value value = c.vector(), from = c.vector(2);
    c.emit("SEL", {value, kRZ, imm(kInfinity), of_delta});
    const Value logs = w_.pointer(pointers_[4]), deltas = w_.pointer(pointers_[5]);
    c.emit("SEL", {from, deltas, logs, of_delta});
    c.emit("SEL", {from.at(1), deltas.at(1), logs.at(1), of_delta});
    w_.load_global(value, w_.wide_mad(place, imm(4), from), 0, 4, true, w_.compare_and("LT", of_row, queries_, loads));
    const int shift = log2_of(2 * stage_bytes()) - log2_of(2 * plan_.tile_q * 4);
    const Value to = w_.mad(thread_, imm(4), w_.shift_right(fetched_stage_, shift));
    c.emit("STS", {shared(to, rows_at(), base_), value}).when(loads);
    c.emit("LDGDEPBAR");
  }

  void step_on() {
    Code& c = w_.code;
    c.emit("LOP3.LUT", {fetched_stage_, fetched_stage_, imm(2 * stage_bytes()), kRZ, imm(0x3c), !kPT});
    c.emit("IADD3", {row0_, row0_, imm(plan_.tile_q), kRZ});
    const Value over = w_.compare("GE", row0_, queries_);
    c.emit("SEL", {row0_, first_row_, row0_, over});
    c.emit("IADD3", {head_, head_, imm(1), kRZ}).when(over);
  }

  /// sums = A B of 16 keys and the queries of a stage.
  void multiply_rows(std::vector<Value>& sums, const TileWords& rows, int rows_at, Value ring, int columns_at) {
    sums.clear();
    for (int j = 0; j < eights(); ++j) sums.push_back(w_.code.vector(4));
    for (int step = 0; step < plan_.size / step_depth(plan_.type); ++step) {
      const Value a = w_.code.vector(4);
      rows.load(a, 0, step, base_, rows_at);
      for (int j = 0; j < row_strips(); ++j) {
        const Value b = w_.code.vector(4);
        q_columns_.load(b, j, step, ring, columns_at);
        for (int half = 0; half < 2; ++half) {
          const Value sum = sums[at(2 * j + half)];
          multiply(w_, plan_.type, sum, a, b.at(2 * half), step == 0 ? kRZ : sum);
        }
      }
    }
  }

  void mask(Value row0) {
    const bool ragged = plan_.keys % plan_.tile_k != 0;
    if (!ragged && !plan_.causal) return;
    Code& c = w_.code;
    const Label whole = c.new_label();
    // Of the block's keys none lies beyond the length, nor after the first query of the tile.
    const Value end = w_.mad(w_.copy(w_.block_x()), imm(plan_.tile_k), w_.number(plan_.tile_k));
    Value inside = w_.compare("LE", end, keys_);
    if (plan_.causal) inside = w_.compare_and("LE", end, w_.add(row0, imm(1)), inside);
    c.branch(whole, inside);
    for (int h = 0; h < 2; ++h) {
      const Value key = w_.add(key_, imm(h * 8)), beyond = w_.compare("GE", key, keys_), before = c.vector();
      if (plan_.causal) c.emit("IADD3", {before, key, -row0, -pair_});
      for (int j = 0; j < eights(); ++j)
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          const Value s = p_[at(j)].at(e);
          Value out = beyond;
          if (plan_.causal) {
            out = c.predicate();
            c.emit("ISETP.GT.OR", {out, kPT, before, imm(j * 8 + e % 2), beyond});
          }
          c.emit("FSEL", {s, s, imm(kMinusInfinity), !out});
        }
    }
    c.place(whole);
  }

  /// P = exp2(scale S - logarithm), dS = P (dP - delta).
  void weigh(Value stage) {
    Code& c = w_.code;
    const int shift = log2_of(2 * stage_bytes()) - log2_of(2 * plan_.tile_q * 4);
    const Value rows = c.vector();
    c.emit("IADD3", {rows, w_.shift_right(stage, shift), w_.shift_left(pair_, 2), base_});
    for (int j = 0; j < eights(); ++j) {
      const Value logs = w_.load_shared(rows, rows_at() + j * 32, 8);
      const Value deltas = w_.load_shared(rows, rows_at() + plan_.tile_q * 4 + j * 32, 8);
      for (int e = 0; e < 4; ++e) {
        const Value p = p_[at(j)].at(e), ds = ds_[at(j)].at(e);
        c.emit("FFMA", {p, p, scale2_, -logs.at(e % 2)});
        power_of_2(w_, p);
        c.emit("FADD", {ds, ds, -deltas.at(e % 2)});
        c.emit("FMUL", {ds, p, ds});
      }
    }
  }

  Value words_of(const std::vector<Value>& s, int step) {
    const Value words = w_.code.vector(4), left = s[at(2 * step)], right = s[at(2 * step + 1)];
    pack(w_, plan_.type, words, left, left.at(1));
    pack(w_, plan_.type, words.at(1), left.at(2), left.at(3));
    pack(w_, plan_.type, words.at(2), right, right.at(1));
    pack(w_, plan_.type, words.at(3), right.at(2), right.at(3));
    return words;
  }

  /// sums += s B, with s of 16 keys and the queries as it lies in registers.
  void add_products(const std::vector<Value>& sums, const std::vector<Value>& s, Value ring, int rows_at) {
    for (int step = 0; step < row_strips(); ++step) {
      const Value a = words_of(s, step);
      for (int j = 0; j < plan_.size / kStrip; ++j) {
        const Value b = w_.code.vector(4);
        q_rows_.load(b, j, step, ring, rows_at);
        for (int half = 0; half < 2; ++half) {
          const Value sum = sums[at(2 * j + half)];
          multiply(w_, plan_.type, sum, a, b.at(2 * half), sum);
        }
      }
    }
  }

  /// dS^T goes through shared memory, since dQ sums over the keys of all warps.
  void store_scores() {
    for (int j = 0; j < eights(); ++j) {
      const Value to = j == 0 ? scores_to_ : w_.exclusive_or(scores_to_, imm(j * kChunk));
      for (int h = 0; h < 2; ++h)
        w_.store_shared(to, scores_at() + h * 8 * plan_.tile_q * size(),
                        pack(w_, plan_.type, ds_[at(j)].at(2 * h), ds_[at(j)].at(2 * h + 1)), 4, base_);
    }
  }

  /// dQ += dS K, a strip of the queries and a part of the head a warp.
  void add_queries(Value row0, Value head) {
    Code& c = w_.code;
    const int columns = plan_.size / parts() / 8;
    std::vector<Value> sums;
    for (int j = 0; j < columns; ++j) sums.push_back(c.vector(4));
    for (int step = 0; step < plan_.tile_k / step_depth(plan_.type); ++step) {
      const Value a = c.vector(4);
      scores_words_.load(a, 0, step, base_, scores_at());
      for (int j = 0; j < columns / 2; ++j) {
        const Value b = c.vector(4);
        k_rows_.load(b, j, step, base_, 0);
        for (int half = 0; half < 2; ++half) {
          const Value sum = sums[at(2 * j + half)];
          multiply(w_, plan_.type, sum, a, b.at(2 * half), step == 0 ? kRZ : sum);
        }
      }
    }
    const Value scale = w_.integer(scale_at_);
    for (int h = 0; h < 2; ++h) {
      const Value row = w_.add(w_.add(row0, dq_row_), imm(h * 8)), inside = w_.compare("LT", row, queries_);
      const Value element = w_.mad(w_.mad(head, queries_, row), imm(plan_.size), dq_column_);
      const Value to = w_.wide_mad(element, imm(4), w_.pointer(pointers_[6]));
      for (int j = 0; j < columns; ++j)
        for (int e = 0; e < 2; ++e)
          c.emit(c.hopper() ? "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU" : "RED.E.ADD.F32.FTZ.RN.STRONG.GPU",
                 {global(to, (j * 8 + e) * 4, w_.descriptor()), w_.fp("FMUL", sums[at(j)].at(2 * h + e), scale)})
              .when(inside);
    }
  }

  void end() {
    Code& c = w_.code;
    const Value scale = w_.integer(scale_at_);
    for (const Value& sum : dk_)
      for (int e = 0; e < 4; ++e) c.emit("FMUL", {sum.at(e), sum.at(e), scale});
    const Value row = w_.mad(kv_head_, keys_, key_);
    for (int which : {7, 8})
      for (int h = 0; h < 2; ++h) {
        const Value inside = w_.compare("LT", w_.add(key_, imm(h * 8)), keys_);
        const Value element = w_.mad(w_.add(row, imm(h * 8)), imm(plan_.size), pair_);
        const Value to = w_.wide_mad(element, imm(size()), w_.pointer(pointers_[which]));
        const std::vector<Value>& sums = which == 7 ? dk_ : dv_;
        for (int j = 0; j < plan_.size / 8; ++j)
          w_.store_global(to, j * 16, pack(w_, plan_.type, sums[at(j)].at(2 * h), sums[at(j)].at(2 * h + 1)), 4,
                          inside);
      }
  }

  const AttentionPlan& plan_;
  Writer w_;
  int pointers_[9]{}, scale_at_ = 0;  ///< q, k, v, d_o, log_sums, delta, dq_sums, dk, dv
  TileCopy k_, v_, q_;
  TileWords k_words_, q_columns_, q_rows_, scores_words_, k_rows_;
  Value base_, thread_, kv_head_, queries_, keys_, scale2_, pair_, key_, dq_row_, dq_column_, scores_to_;
  Value first_row_, row0_, head_, heads_end_, fetched_stage_;
  std::vector<Value> p_, ds_, dk_, dv_;
};

}  // namespace

Kernel flash_backward(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                      const SourcePosition& where) {
  return FlashBackward(plan, model, name).write(where);
}

int flash_backward_shared(const AttentionPlan& plan) {
  return (2 * plan.tile_k + 4 * plan.tile_q) * plan.row_bytes() + plan.tile_k * plan.tile_q * bytes_of(plan.type) +
         4 * plan.tile_q * 4;
}

Kernel flash_delta(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                   const SourcePosition& where) {
  constexpr int kThreads = 256;
  Writer w(model, name);
  const int o = w.pointer_parameter(), d_o = w.pointer_parameter(), delta = w.pointer_parameter(),
            dq = w.pointer_parameter(), rows = w.integer_parameter(), pitch = plan.wgmma ? w.integer_parameter() : 0;
  w.descriptor();
  const Value thread = w.thread(), lane = w.and_bits(thread, 31);
  const Value row = w.mad(w.copy(w.block_x()), imm(kThreads / kWarpLanes), w.shift_right(thread, 5));
  const Value all = w.uniform_integer(rows);
  Value from = row, to = row, inside = kPT;
  if (plan.wgmma) {  // rows beyond the queries are none, and have a delta of 0
    const Value head = w.copy(w.block_y());
    from = w.mad(head, all, row);
    to = w.mad(head, w.uniform_integer(pitch), row);
    if (plan.queries % plan.tile_q != 0) inside = w.compare("LT", row, all);
  } else {
    w.code.exit(w.compare("GE", row, all));
  }
  const int each = plan.size / kWarpLanes, size = bytes_of(plan.type), bytes = each * size;
  const Value in_row = w.mad(lane, imm(each), kRZ), element = w.mad(from, imm(plan.size), in_row);
  const auto load = [&](int tensor) {
    const Value words = w.code.vector((bytes + 3) / 4);
    if (inside.id >= 0)
      for (int i = 0; i < (bytes + 3) / 4; ++i) w.assign(words.at(i), kRZ);
    w.load_global(words, w.wide_mad(element, imm(size), w.pointer(tensor)), 0, bytes, true, inside);
    return words;
  };
  const Value a = load(o), b = load(d_o);
  Value sum = w.number(0);
  for (int e = 0; e < each; ++e)
    sum = w.fp("FFMA", element_of(w, a, e, plan.type), element_of(w, b, e, plan.type), sum);
  const Value sums = w.wide_mad(plan.wgmma ? w.mad(to, imm(plan.size), in_row) : element, imm(4), w.pointer(dq));
  for (int e = 0; e < each; ++e) w.store_global(sums, e * 4, kRZ, 4);
  sum = warp_reduce(w, sum, Reduce::Sum);
  const Value first = w.compare("EQ", lane, kRZ);
  w.store_global(w.wide_mad(to, imm(4), w.pointer(delta)), 0, sum, 4, first);
  return w.finish(where, "take smaller heads", kThreads, 0);
}

Kernel flash_dq(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                const SourcePosition& where) {
  constexpr int kThreads = 256;
  Writer w(model, name);
  const int sums = w.pointer_parameter(), dq = w.pointer_parameter(), pairs = w.integer_parameter();
  const int pitch = plan.wgmma ? w.integer_parameter() : 0, scale = plan.wgmma ? w.integer_parameter() : 0;
  w.descriptor();
  const Value index = w.mad(w.copy(w.block_x()), imm(kThreads), w.thread()), all = w.uniform_integer(pairs);
  w.code.exit(w.compare("GE", index, all));
  if (!plan.wgmma) {
    const Value v = w.load_global(w.wide_mad(index, imm(8), w.pointer(sums)), 0, 8);
    w.store_global(w.wide_mad(index, imm(4), w.pointer(dq)), 0, pack(w, plan.type, v, v.at(1)), 4);
    return w.finish(where, "take smaller heads", kThreads, 0);
  }
  // Of 64 rows, a product's registers lie one after another, of its threads side by side (flash_groups_backward).
  constexpr int kRows = 64, kGroupThreads = 128;
  const int pair_bits = log2_of(plan.size / 2);
  const Value row = w.shift_right(index, pair_bits),
              pair = w.and_bits(index, static_cast<std::uint32_t>(plan.size / 2 - 1));
  const Value head = w.copy(w.block_y()), in_tile = w.and_bits(row, kRows - 1);
  const Value tile_row = w.mad(head, w.uniform_integer(pitch), w.and_bits(row, ~std::uint32_t{kRows - 1}));
  const Value thread =
      w.mad(w.shift_right(in_tile, 4), imm(kWarpLanes), w.mad(w.and_bits(row, 7), imm(4), w.and_bits(pair, 3)));
  const Value half = w.and_bits(w.shift_right(row, 3), 1);
  const Value words = w.mad(w.shift_right(pair, 2), imm(4), w.shift_left(half, 1));
  const Value element = w.mad(tile_row, imm(plan.size), w.mad(words, imm(kGroupThreads), thread));
  const Value from = w.wide_mad(element, imm(4), w.pointer(sums)), by = w.integer(scale);
  const Value low = w.load_global(from, 0, 4), high = w.load_global(from, kGroupThreads * 4, 4);
  const Value to = w.wide_mad(w.mad(head, all, index), imm(4), w.pointer(dq));
  w.store_global(to, 0, pack(w, plan.type, w.fp("FMUL", low, by), w.fp("FMUL", high, by)), 4);
  return w.finish(where, "take smaller heads", kThreads, 0);
}

}  // namespace forewarp::sketch
