// FlashAttention-3, backward: one thread has TMA fetch a block's keys and values once, and queries, the gradients of
// their results, logarithms and deltas into a ring of two stages. Warpgroups of 64 keys make S^T = K Q^T and dP^T = V
// dO^T by wgmma, and of them P^T and dS^T in registers, where they lie as first factors of dV += P^T dO and dK += dS^T
// Q. dS also goes to shared memory, as a factor of dQ = dS K, which sums over all groups' keys: it is added in memory
// while dK is under way, in the order of the product's registers, so that a warp adds to whole lines. sm_90 alone.
#include <algorithm>

#include "sketch/families/attention_groups.h"

namespace forewarp::sketch {
namespace {

constexpr int kRowFloats = 2;  ///< of a query: its logarithm and its delta
constexpr int kDepth = kStepBytes / 2;

class FlashGroupsBackward : AttentionGroups {
 public:
  using AttentionGroups::AttentionGroups;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    begin();
    split([&] { produce(); });
    begin_group();
    wait_for_phase(w_, uniform_add(w_, base_, kv_full()), w_.number(0));
    const Label loop = c.new_label();
    c.place(loop);
    next_queries();
    c.branch(loop, w_.compare("GT", steps_, count_));
    end();
    Kernel kernel = w_.finish(where, "take tile: [64, 128]", plan_.threads(), 0, kConsumerRegisters);
    kernel.barrier_count = 2;
    return kernel;
  }

 private:
  enum Map { kQ, kDo, kK, kV, kDk, kDv, kLogs, kDeltas, kMaps };
  static constexpr int kConsumers = 1;  ///< the named barrier of all that multiply

  int groups() const { return plan_.tile_k / kGroupRows; }
  int consumers() const { return groups() * kGroupThreads; }
  int k_panel() const { return plan_.tile_k * kRowBytes; }
  int q_panel() const { return plan_.tile_q * kRowBytes; }
  int q_bytes() const { return panels() * q_panel(); }
  int scores_bytes() const { return plan_.tile_q * plan_.tile_k * 2; }
  int row_bytes() const { return plan_.tile_q * 4; }
  // Shared memory: K, V, stages of Q, of dO, of dS and of the rows' floats, barriers.
  int v_at() const { return panels() * k_panel(); }
  int q_at() const { return 2 * v_at(); }
  int do_at() const { return q_at() + kStages * q_bytes(); }
  int scores_at() const { return do_at() + kStages * q_bytes(); }
  int rows_at() const { return scores_at() + kStages * scores_bytes(); }
  int kv_full() const { return rows_at() + kStages * kRowFloats * row_bytes(); }
  int q_full() const { return kv_full() + kBarrierBytes; }
  int do_full() const { return q_full() + kStages * kBarrierBytes; }
  int q_empty() const { return do_full() + kStages * kBarrierBytes; }
  int do_empty() const { return q_empty() + kStages * kBarrierBytes; }

  // dQ's tile is dealt to the groups by strips of 64 queries where there are enough, else by columns.
  bool by_rows() const { return plan_.tile_q / kGroupRows >= groups(); }
  int halves() const { return by_rows() ? plan_.tile_q / kGroupRows / groups() : 1; }
  int dq_columns() const { return by_rows() ? plan_.size : plan_.size / groups(); }
  int dq_words() const { return halves() * dq_columns() / 2; }
  int score_words() const { return plan_.tile_q / 2; }

  void begin() {
    Code& c = w_.code;
    int maps[kMaps];
    for (int& m : maps) m = w_.tensor_map_parameter();
    dq_sums_ = w_.pointer_parameter();
    const int queries = w_.integer_parameter(), keys = w_.integer_parameter(), pitch = w_.integer_parameter(),
              scale2 = w_.integer_parameter();
    scale_ = w_.integer_parameter();
    w_.descriptor();
    find_maps(w_, maps, maps_, kMaps);
    thread_ = w_.thread();
    base_ = w_.shared_base();
    kv_head_ = w_.block_y();
    queries_ = w_.uniform_integer(queries);
    keys_ = w_.uniform_integer(keys);
    pitch_ = w_.uniform_integer(pitch);
    scale2_ = w_.integer(scale2);
    key0_ = w_.mad(w_.copy(w_.block_x()), imm(plan_.tile_k), kRZ);
    first_row_ = plan_.causal ? w_.and_bits(key0_, ~static_cast<std::uint32_t>(plan_.tile_q - 1)) : w_.number(0);
    const Value rows = c.vector();
    c.emit("IADD3", {rows, -first_row_, queries_, imm(plan_.tile_q - 1)});
    steps_ = w_.shift_left(w_.shift_right(rows, log2_of(plan_.tile_q)), log2_of(plan_.group));
    row0_ = w_.copy(first_row_);
    head_ = w_.copy(kv_head_);
    if (plan_.group > 1) head_ = w_.shift_left(head_, log2_of(plan_.group));

    const Label meet = c.new_label();
    c.diverge(meet);
    c.branch(meet, w_.compare("NE", thread_, kRZ));
    start_barrier(w_, uniform_add(w_, base_, kv_full()), 1);
    for (int stage = 0; stage < kStages; ++stage)
      for (const bool full : {true, false})
        for (const int at_byte : {full ? q_full() : q_empty(), full ? do_full() : do_empty()})
          start_barrier(w_, uniform_add(w_, base_, at_byte + stage * kBarrierBytes), full ? 1 : groups());
    show_barriers(meet);
  }

  /// The next queries, or the first ones of the next head.
  void step_on() {
    Code& c = w_.code;
    c.emit("VIADD", {row0_, row0_, imm(plan_.tile_q)});
    if (plan_.group == 1) return;
    const Value over = w_.compare("GE", row0_, queries_);
    c.emit("SEL", {row0_, first_row_, row0_, over});
    c.emit("VIADD", {head_, head_, imm(1)}).when(over);
  }

  // ---- who fetches

  void produce() {
    Code& c = w_.code;
    const Value keys = to_uniform(w_, key0_), kv_barrier = uniform_add(w_, base_, kv_full()), count = c.uniform();
    expect(kv_barrier, 2 * v_at());
    fetch(kK, base_, k_panel(), keys, kv_head_, kv_barrier);
    fetch(kV, uniform_add(w_, base_, v_at()), k_panel(), keys, kv_head_, kv_barrier);
    c.emit("UMOV", {count, kURZ});
    const Label loop = c.new_label();
    c.place(loop);
    const Value parity = parity_of(count, true), stage = stage_of(count);
    const Value row = to_uniform(w_, row0_), head = to_uniform(w_, head_);
    wait_for_phase(w_, barrier_of(stage, q_empty()), parity);
    fetch_stage(kQ, kLogs, stage, q_at(), rows_at(), q_full(), row, head);
    wait_for_phase(w_, barrier_of(stage, do_empty()), parity);
    fetch_stage(kDo, kDeltas, stage, do_at(), rows_at() + row_bytes(), do_full(), row, head);
    step_on();
    c.emit("UIADD3", {count, count, imm(1), kURZ});
    c.branch(loop, w_.compare("GT", steps_, count));
    c.exit();
  }

  /// Queries, or gradients, with a float of each.
  void fetch_stage(Map tile, Map floats, Value stage, int tile_at, int floats_at, int full, Value row, Value head) {
    Code& c = w_.code;
    const Value barrier = barrier_of(stage, full);
    expect(barrier, q_bytes() + row_bytes());
    fetch(tile, times(stage, q_bytes(), uniform_add(w_, base_, tile_at)), q_panel(), row, head, barrier);
    const Value words = c.uniform(4);
    c.emit("UIMAD", {words, stage, imm(kRowFloats * row_bytes()), uniform_add(w_, base_, floats_at)});
    c.emit("UMOV", {words.at(1), barrier});
    c.emit("UMOV", {words.at(2), row});
    c.emit("UMOV", {words.at(3), head});
    c.emit("UTMALDG.2D", {at(words), at(maps_[floats])});
  }

  // ---- who multiplies

  void begin_group() {
    Code& c = w_.code;
    const Value number = c.vector();
    c.emit("SHFL.IDX", {kPT, number, w_.shift_right(thread_, 7), kRZ, imm(0x1f)});
    const Value group = w_.add(number, imm(-1)), in_group = w_.and_bits(thread_, kGroupThreads - 1);
    const Value lane = w_.and_bits(thread_, 31), warp = w_.shift_right(in_group, 5);
    first_thread_ = w_.compare("EQ", in_group, kRZ);
    group_key_ = w_.mad(group, imm(kGroupRows), kRZ);
    pair_ = w_.shift_left(w_.and_bits(lane, 3), 1);
    key_ = w_.add(w_.add(key0_, group_key_), w_.mad(warp, imm(kStrip), w_.shift_right(lane, 2)));
    k_rows_ = to_uniform(w_, w_.mad(group_key_, imm(kRowBytes), base_));
    k_ = factor_start(w_, w_.copy(k_rows_), 1);
    v_ = uniform_add(w_, k_, v_at() / kChunk);
    // dS: a row a query, the group's keys side by side. Lane 8 i + r gives row r of the i-th matrix of eight, which are
    // two of keys for each eight queries.
    const Value query = c.vector(), in_eight = w_.and_bits(lane, 7);
    c.emit("LOP3.LUT", {query, w_.shift_right(lane, 1), imm(8), in_eight, imm(0xea), !kPT});
    const Value chunk = w_.mad(warp, imm(2), w_.and_bits(w_.shift_right(lane, 3), 1));
    const Value turned = w_.shift_left(w_.exclusive_or(chunk, in_eight), log2_of(kChunk));
    scores_to_ = w_.mad(group, imm(q_panel()), w_.mad(query, imm(kRowBytes), turned));
    // dQ: the group's strip of dS and all columns of K, or all of dS and its columns.
    const int columns = dq_columns();
    const int of_group = by_rows() ? halves() * kGroupRows * plan_.size : plan_.size / groups() / 2 * kGroupThreads;
    dq_at_ = w_.mad(group, imm(of_group), in_group);
    Value first_column = base_, first_scores = uniform_add(w_, base_, scores_at());
    if (groups() > 1 && by_rows())
      first_scores = to_uniform(w_, w_.mad(group, imm(halves() * kGroupRows * kRowBytes), first_scores));
    if (groups() > 1 && !by_rows())
      first_column =
          to_uniform(w_, w_.mad(group, imm(columns < kPanel ? columns * 2 : columns / kPanel * k_panel()), base_));
    scores_from_ = factor_start(w_, w_.copy(first_scores), 1);
    k_columns_ = factor_start(w_, w_.copy(first_column), static_cast<std::uint32_t>(k_panel() / kChunk));
    // S^T and dP^T. The words of P^T and dS^T take the place of S^T, dQ that of dP^T if it is no larger; so they stay
    // for as long as products read them.
    scores_ = c.vector(2 * score_words());
    dq_ = dq_words() <= score_words() ? scores_.at(score_words()) : c.vector(dq_words());
    dk_ = c.vector(plan_.size / 2);
    dv_ = c.vector(plan_.size / 2);
    for (const Value& sums : {dk_, dv_}) clear(sums, plan_.size / 2);
    count_ = c.uniform();
    c.emit("UMOV", {count_, kURZ});
  }

  struct First {
    Value words{};       ///< in registers, four a step
    Value start = kURZ;  ///< or in shared memory
    int panel = 0;       ///< bytes from 64 columns to the next
    int further = 0;     ///< bytes
  };
  struct Second {
    Value start = kURZ;
    int panel = 0;        ///< bytes from 64 columns to the next, where they run along k
    bool across = false;  ///< rows run along k
  };
  /// sums (+)= A B.
  void multiply(Value sums, int columns, int depth, const First& a, const Second& b, bool anew) {
    Code& c = w_.code;
    const int steps = depth / kDepth, per_panel = kRowBytes / kStepBytes;
    for (int step = 0; step < steps; ++step) {
      const Value f = factors();
      const int in_row = step % per_panel * kStepBytes, panel = step / per_panel;
      if (a.words.id >= 0)
        c.emit("UMOV", {f, kURZ});
      else
        c.emit("UIADD3", {f, a.start, imm((panel * a.panel + in_row + a.further) / kChunk), kURZ});
      const int b_at = b.across ? step * kDepth * kRowBytes : panel * b.panel + in_row;
      c.emit("UIADD3", {f.at(2), b.start, imm(b_at / kChunk), kURZ});
      const bool first = anew && step == 0, last = step == steps - 1;
      const Arg from = first ? Arg(kRZ) : Arg(sums), add = first ? never() : uniform_true();
      const Value words = a.words.id >= 0 ? a.words.at(4 * step) : kRZ;
      const std::string name = mnemonic(columns);
      Line& line = a.words.id < 0 ? last ? c.emit(name, {sums, factor_description(f), from, add, scoreboard(0)})
                                         : c.emit(name, {sums, factor_description(f), from, add})
                   : last ? c.emit(name, {sums, words, factor_description(f), from, add, scoreboard(0)})
                                  : c.emit(name, {sums, words, factor_description(f), from, add});
      if (b.across) line.instruction.modifiers.set(static_cast<std::size_t>(Modifier::tnspB));
    }
  }

  Value stage_start(Value stage, int first, std::uint32_t panel) {
    return factor_start(w_, w_.copy(times(stage, q_bytes(), uniform_add(w_, base_, first))), panel);
  }

  void next_queries() {
    Code& c = w_.code;
    const Value stage = stage_of(count_), parity = parity_of(count_, false);
    const Value s = scores_, dp = scores_.at(score_words()), p_words = scores_,
                ds_words = scores_.at(score_words() / 2);
    const auto panel = static_cast<std::uint32_t>(q_panel() / kChunk);
    wait_for_phase(w_, barrier_of(stage, q_full()), parity);
    const Value q = stage_start(stage, q_at(), 1);
    c.emit("WARPGROUP.ARRIVE");
    multiply(s, plan_.tile_q, plan_.size, {{}, k_, k_panel()}, {q, q_panel()}, true);
    wait_for_phase(w_, barrier_of(stage, do_full()), parity);
    const Value d_o = stage_start(stage, do_at(), 1);
    c.emit("WARPGROUP.ARRIVE");
    multiply(dp, plan_.tile_q, plan_.size, {{}, v_, k_panel()}, {d_o, q_panel()}, true);
    wait_for_products(1);
    mask(s);
    const Value rows = times(stage, kRowFloats * row_bytes(), uniform_add(w_, base_, rows_at()));
    const Value pair_bytes = w_.shift_left(pair_, 2);
    for (int j = 0; j < plan_.tile_q / 8; ++j) {
      const Value logs = w_.load_shared(pair_bytes, j * 32, 8, rows);
      for (int e = 0; e < 4; ++e) {
        const Value p = s.at(4 * j + e);
        c.emit("FFMA", {p, p, scale2_, -logs.at(e % 2)});
        c.emit("MUFU.EX2", {p, p});
      }
    }
    part();
    wait_for_products(0);
    for (int j = 0; j < plan_.tile_q / 8; ++j) {
      const Value deltas = w_.load_shared(pair_bytes, row_bytes() + j * 32, 8, rows);
      for (int e = 0; e < 4; ++e) {
        const Value ds = dp.at(4 * j + e);
        c.emit("FADD", {ds, ds, -deltas.at(e % 2)});
        c.emit("FMUL", {ds, ds, s.at(4 * j + e)});
      }
    }
    for (const auto& [words, sums] : {std::pair{p_words, s}, std::pair{ds_words, dp}})
      for (int i = 0; i < score_words() / 2; ++i) pack(w_, plan_.type, words.at(i), sums.at(2 * i), sums.at(2 * i + 1));
    const Value scores = times(stage, scores_bytes(), uniform_add(w_, base_, scores_at()));
    for (int i = 0; i < plan_.tile_q / kStrip; ++i)
      c.emit("STSM.16.MT88.4", {shared(scores_to_, i * kStrip * kRowBytes, scores), ds_words.at(4 * i)});
    part();
    c.emit("WARPGROUP.ARRIVE");
    multiply(dv_, plan_.size, plan_.tile_q, {p_words}, {stage_start(stage, do_at(), panel), 0, true}, false);
    publish(imm(kConsumers), consumers());
    const Value from = c.uniform();
    c.emit("UIMAD", {from, stage, imm(scores_bytes() / kChunk), scores_from_});
    c.emit("WARPGROUP.ARRIVE");
    for (int half = 0; half < halves(); ++half)
      multiply(dq_.at(half * dq_columns() / 2), dq_columns(), plan_.tile_k,
               {{}, from, q_panel(), half * kGroupRows * kRowBytes}, {k_columns_, 0, true}, true);
    wait_for_products(1);
    give_back(stage, do_empty());
    c.emit("WARPGROUP.ARRIVE");
    multiply(dk_, plan_.size, plan_.tile_q, {ds_words}, {stage_start(stage, q_at(), panel), 0, true}, false);
    wait_for_products(1);
    add_queries();
    part();
    wait_for_products(0);
    give_back(stage, q_empty());
    step_on();
    c.emit("UIADD3", {count_, count_, imm(1), kURZ});
  }

  void mask(Value s) {
    const bool ragged = plan_.keys % plan_.tile_k != 0;
    if (!ragged && !plan_.causal) return;
    Code& c = w_.code;
    const Label whole = c.new_label();
    // Of the block's keys none lies beyond the length, nor after the first query of the tile.
    const Value end = w_.add(key0_, imm(plan_.tile_k));
    Value inside = kPT;
    if (ragged) inside = w_.compare("LE", end, keys_);
    if (plan_.causal) inside = w_.compare_and("LE", end, w_.add(row0_, imm(1)), inside);
    c.branch(whole, inside);
    for (int h = 0; h < 2; ++h) {
      const Value key = w_.add(key_, imm(h * 8)), before = c.vector();
      const Value beyond = ragged ? w_.compare("GE", key, keys_) : Value{};
      if (plan_.causal) c.emit("IADD3", {before, key, -row0_, -pair_});
      for (int j = 0; j < plan_.tile_q / 8; ++j)
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          Value out = beyond;
          if (plan_.causal) {
            out = c.predicate();
            if (ragged)
              c.emit("ISETP.GT.OR", {out, kPT, before, imm(j * 8 + e % 2), beyond});
            else
              c.emit("ISETP.GT.AND", {out, kPT, before, imm(j * 8 + e % 2), kPT});
          }
          const Value score = s.at(4 * j + e);
          c.emit("FSEL", {score, score, imm(kMinusInfinity), !out});
        }
    }
    c.place(whole);
  }

  /// dQ's tiles of 64 queries lie one after another, register by register of the product's threads.
  void add_queries() {
    const Value row = w_.mad(head_, pitch_, row0_), element = w_.mad(row, imm(plan_.size), dq_at_);
    const Value to = w_.wide_mad(element, imm(4), w_.pointer(dq_sums_));
    for (int i = 0; i < dq_words(); ++i)
      w_.code.emit("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", {global(to, i * kGroupThreads * 4, w_.descriptor()), dq_.at(i)});
  }

  /// dK and dV take the places of K and V.
  void end() {
    Code& c = w_.code;
    const Value scale = w_.integer(scale_);
    for (int i = 0; i < plan_.size / 2; ++i) c.emit("FMUL", {dk_.at(i), dk_.at(i), scale});
    c.emit("BAR.SYNC.DEFER_BLOCKING", {imm(kConsumers), imm(consumers())});  // all groups have read K
    const Value v_rows = uniform_add(w_, k_rows_, v_at());
    store_rows(dv_, v_rows, k_panel());
    store_rows(dk_, k_rows_, k_panel());
    publish(imm(kConsumers), consumers());
    c.exit(first_thread_, true);
    const Value row = to_uniform(w_, w_.add(key0_, group_key_));
    store_boxes(kDv, v_rows, k_panel(), row, kv_head_);
    store_boxes(kDk, k_rows_, k_panel(), row, kv_head_);
    wait_for_boxes();
  }

  int dq_sums_ = 0, scale_ = 0;  ///< parameters
  Value kv_head_, queries_, keys_, pitch_, scale2_, key0_, first_row_, steps_, row0_, head_;
  Value group_key_, pair_, key_, k_rows_, k_, v_, k_columns_, scores_to_, scores_from_, dq_at_;
  Value scores_, dq_, dk_, dv_, count_;
};

}  // namespace

Kernel flash_groups_backward(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                             const SourcePosition& where) {
  return FlashGroupsBackward(plan, model, name).write(where);
}

int flash_groups_backward_shared(const AttentionPlan& plan) {
  constexpr int kStages = AttentionGroups::kStages, kBarriers = 1 + 4 * kStages;
  return (2 * plan.tile_k + 2 * kStages * plan.tile_q) * plan.row_bytes() +
         kStages * plan.tile_q * (2 * plan.tile_k + 4 * kRowFloats) + kBarriers * kBarrierBytes;
}

}  // namespace forewarp::sketch
