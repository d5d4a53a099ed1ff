// FlashAttention-3, forward: one thread has TMA fetch K and V into a ring of two stages each; warpgroups of 64 queries
// multiply by wgmma. Under a group's softmax run its own product of the keys before, P V, which is issued behind S = Q
// K^T of these keys, and the other group's products: the two hand each other the right to issue by named barriers. Keys
// go from the last to the first, so masked ones come first; causal blocks with the most keys go first. O leaves by TMA
// from where Q was, cut at the sequence's end. sm_90 alone.
#include <algorithm>

#include "sketch/families/attention_groups.h"

namespace forewarp::sketch {
namespace {

constexpr int kTurnThreads = 2 * kGroupThreads;

class FlashGroups : AttentionGroups {
 public:
  using AttentionGroups::AttentionGroups;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    begin();
    split([&] { produce(); });
    begin_group();
    first_keys();
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LE", tiles_, imm(1)));
    c.place(loop);
    next_keys();
    c.branch(loop, w_.compare("GT", tiles_, w_.add(w_.copy(count_), imm(1))));
    c.place(done);
    last_values();
    end();
    Kernel kernel = w_.finish(where, "take fewer keys a tile", plan_.threads(), 0, kConsumerRegisters);
    kernel.barrier_count = 1 + 2 * kMostGroups;
    return kernel;
  }

 private:
  int groups() const { return plan_.tile_q / kGroupRows; }
  int q_panel() const { return plan_.tile_q * kRowBytes; }
  int k_panel() const { return plan_.tile_k * kRowBytes; }
  int tile_bytes() const { return panels() * k_panel(); }
  int k_at() const { return panels() * q_panel(); }
  int v_at() const { return k_at() + kStages * tile_bytes(); }
  // Barriers, behind the tiles.
  int barrier_at(int i) const { return v_at() + kStages * tile_bytes() + i * kBarrierBytes; }
  int q_full() const { return barrier_at(0); }
  int k_full() const { return barrier_at(1); }
  int v_full() const { return k_full() + kStages * kBarrierBytes; }
  int k_empty() const { return v_full() + kStages * kBarrierBytes; }
  int v_empty() const { return k_empty() + kStages * kBarrierBytes; }
  int eights() const { return plan_.tile_k / 8; }
  /// Tiles of keys that a causal block of queries must mask: those of its diagonal.
  bool masks_in_loop() const { return plan_.causal && plan_.tile_q > plan_.tile_k; }

  void begin() {
    Code& c = w_.code;
    int maps[4];
    for (int& m : maps) m = w_.tensor_map_parameter();
    const int queries = w_.integer_parameter(), keys = w_.integer_parameter(), scale = w_.integer_parameter();
    if (plan_.log_sums) {
      pitch_ = w_.integer_parameter();
      log_sums_ = w_.pointer_parameter();
      w_.descriptor();
    }
    find_maps(w_, maps, maps_, 4);
    thread_ = w_.thread();
    base_ = w_.shared_base();
    head_ = w_.block_y();
    queries_ = w_.uniform_integer(queries);
    keys_ = w_.uniform_integer(keys);
    scale_ = w_.integer(scale);
    Value tile = w_.copy(w_.block_x());
    if (plan_.causal) {
      const Value from_end = c.vector();
      c.emit("LOP3.LUT", {from_end, kRZ, tile, kRZ, imm(0x33), !kPT});
      tile = c.vector();
      c.emit("IADD3", {tile, from_end, constant(kGridX), kRZ});
    }
    row0_ = w_.mad(tile, imm(plan_.tile_q), kRZ);
    Value seen = w_.copy(keys_);
    if (plan_.causal) {
      const Value least = c.vector();
      c.emit("VIMNMX", {least, w_.add(row0_, imm(plan_.tile_q)), seen, kPT});
      seen = least;
    }
    tiles_ = w_.shift_right(w_.add(seen, imm(plan_.tile_k - 1)), log2_of(plan_.tile_k));
    key0_ = w_.mad(w_.add(tiles_, imm(-1)), imm(plan_.tile_k), kRZ);

    const Label meet = c.new_label();
    c.diverge(meet);
    c.branch(meet, w_.compare("NE", thread_, kRZ));
    start_barrier(w_, uniform_add(w_, base_, q_full()), 1);
    for (int stage = 0; stage < kStages; ++stage)
      for (const int full : {true, false})
        for (const int at_byte : {full ? k_full() : k_empty(), full ? v_full() : v_empty()})
          start_barrier(w_, uniform_add(w_, base_, at_byte + stage * kBarrierBytes), full ? 1 : groups());
    show_barriers(meet);
  }

  // ---- who fetches

  void produce() {
    Code& c = w_.code;
    const Value head = c.uniform(), row = to_uniform(w_, key0_), count = c.uniform();
    c.emit("USHF.R.U32.HI", {head, kURZ, imm(log2_of(plan_.group)), head_});
    const Value q_barrier = uniform_add(w_, base_, q_full());
    expect(q_barrier, panels() * q_panel());
    fetch(0, base_, q_panel(), to_uniform(w_, row0_), head_, q_barrier);
    c.emit("UMOV", {count, kURZ});
    const Label loop = c.new_label();
    c.place(loop);
    const Value parity = parity_of(count, true), stage = stage_of(count);
    wait_for_phase(w_, barrier_of(stage, k_empty()), parity);
    fetch_tile(1, stage, k_at(), k_full(), row, head);
    wait_for_phase(w_, barrier_of(stage, v_empty()), parity);
    fetch_tile(2, stage, v_at(), v_full(), row, head);
    c.emit("UIADD3", {row, row, imm(-plan_.tile_k), kURZ});
    c.emit("UIADD3", {count, count, imm(1), kURZ});
    c.branch(loop, w_.compare("GT", tiles_, count));
    c.exit();
  }

  void fetch_tile(int map, Value stage, int first, int full, Value row, Value head) {
    const Value barrier = barrier_of(stage, full);
    expect(barrier, tile_bytes());
    fetch(map, times(stage, tile_bytes(), uniform_add(w_, base_, first)), k_panel(), row, head, barrier);
  }

  // ---- who multiplies

  void begin_group() {
    Code& c = w_.code;
    const Value group = c.vector();
    c.emit("SHFL.IDX", {kPT, group, w_.shift_right(thread_, 7), kRZ, imm(0x1f)});
    own_ = group;  // 1 or 2, which are also barriers
    if (groups() > 1) {
      other_ = c.vector();
      c.emit("IADD3", {other_, -group, imm(3), kRZ});
    }
    const Value in_group = w_.and_bits(thread_, kGroupThreads - 1), lane = w_.and_bits(thread_, 31);
    first_thread_ = w_.compare("EQ", in_group, kRZ);
    const Value strip = w_.mad(w_.shift_right(in_group, 5), imm(kStrip), kRZ);
    group_row_ = w_.mad(w_.add(group, imm(-1)), imm(kGroupRows), kRZ);
    q_rows_ = to_uniform(w_, w_.mad(group_row_, imm(kRowBytes), base_));
    row_ = w_.add(w_.add(row0_, group_row_), w_.add(strip, w_.shift_right(lane, 2)));
    pair_ = w_.shift_left(w_.and_bits(lane, 3), 1);
    q_ = factor_start(w_, w_.copy(q_rows_), 1);
    s_ = c.vector(plan_.tile_k / 2);
    out_ = c.vector(plan_.size / 2);
    p_ = c.vector(plan_.tile_k / 4);
    for (int h = 0; h < 2; ++h) {
      largest_[h] = w_.copy(imm(kMinusInfinity));
      sum_[h] = w_.number(0);
      kept_[h] = c.vector();
    }
    count_ = c.uniform();
    c.emit("UMOV", {count_, kURZ});
    if (groups() > 1) {  // the first group goes first
      const Value second = w_.compare("EQ", group, imm(2));
      c.emit("BAR.ARV", {other_, imm(kTurnThreads)}).when(second);
    }
  }

  void my_turn() {
    if (groups() > 1) w_.code.emit("BAR.SYNC.DEFER_BLOCKING", {own_, imm(kTurnThreads)});
  }
  void your_turn() {
    if (groups() > 1) w_.code.emit("BAR.ARV", {other_, imm(kTurnThreads)});
  }
  Value start_of(Value stage, int first, std::uint32_t panel) {
    return factor_start(w_, w_.copy(times(stage, tile_bytes(), uniform_add(w_, base_, first))), panel);
  }

  /// S = Q K^T of the keys in a stage.
  void begin_scores(Value stage) {
    Code& c = w_.code;
    const Value k = start_of(stage, k_at(), 1);
    c.emit("WARPGROUP.ARRIVE");
    const int steps = plan_.size / step_depth(plan_.type), per_panel = kRowBytes / kStepBytes;
    for (int step = 0; step < steps; ++step) {
      const Value f = factors();
      const int in_panel = step % per_panel * kStepBytes, panel = step / per_panel;
      c.emit("UIADD3", {f, q_, imm((panel * q_panel() + in_panel) / kChunk), kURZ});
      c.emit("UIADD3", {f.at(2), k, imm((panel * k_panel() + in_panel) / kChunk), kURZ});
      const Arg sums = step == 0 ? Arg(kRZ) : Arg(s_), add = step == 0 ? never() : uniform_true();
      if (step == steps - 1)
        c.emit(mnemonic(plan_.tile_k), {s_, factor_description(f), sums, add, scoreboard(0)});
      else
        c.emit(mnemonic(plan_.tile_k), {s_, factor_description(f), sums, add});
    }
  }
  /// O += P V of the keys in a stage.
  void begin_sums(Value stage) {
    Code& c = w_.code;
    const Value v = start_of(stage, v_at(), static_cast<std::uint32_t>(k_panel() / kChunk));
    c.emit("WARPGROUP.ARRIVE");
    const int depth = step_depth(plan_.type), steps = plan_.tile_k / depth;
    for (int step = 0; step < steps; ++step) {
      const Value f = factors();
      c.emit("UMOV", {f, kURZ});
      c.emit("UIADD3", {f.at(2), v, imm(step * depth * kRowBytes / kChunk), kURZ});
      const Value p = p_.at(4 * step);
      Line& line =
          step == steps - 1
              ? c.emit(mnemonic(plan_.size), {out_, p, factor_description(f), out_, uniform_true(), scoreboard(0)})
              : c.emit(mnemonic(plan_.size), {out_, p, factor_description(f), out_, uniform_true()});
      line.instruction.modifiers.set(static_cast<std::size_t>(Modifier::tnspB));
    }
  }

  void first_keys() {
    const Value zero = w_.number(0), stage = uniform_number(w_, 0);
    wait_for_phase(w_, uniform_add(w_, base_, q_full()), zero);
    wait_for_phase(w_, uniform_add(w_, base_, k_full()), zero);
    my_turn();
    begin_scores(stage);
    your_turn();
    clear(out_, plan_.size / 2);
    wait_for_products(0);
    give_back(stage, k_empty());
    if (plan_.causal || plan_.keys % plan_.tile_k != 0) mask();
    weigh();
    part();
    pack_weights();
  }

  void next_keys() {
    Code& c = w_.code;
    const Value stage = stage_of(count_), parity = parity_of(count_, false);
    const Value next = uniform_add(w_, count_, 1);
    const Value next_stage = stage_of(next);
    c.emit("VIADD", {key0_, key0_, imm(-plan_.tile_k)});
    wait_for_phase(w_, barrier_of(next_stage, k_full()), parity_of(next, false));
    my_turn();
    begin_scores(next_stage);
    wait_for_phase(w_, barrier_of(stage, v_full()), parity);
    begin_sums(stage);
    your_turn();
    wait_for_products(1);
    give_back(next_stage, k_empty());
    if (masks_in_loop()) {
      const Label whole = c.new_label();
      c.branch(whole, w_.compare("LE", w_.add(key0_, imm(plan_.tile_k - 1)), w_.add(row0_, group_row_)));
      mask();
      c.place(whole);
    }
    weigh();
    part();
    wait_for_products(0);
    give_back(stage, v_empty());
    multiply_rows(kept_);
    pack_weights();
    c.emit("UMOV", {count_, next});
  }

  void last_values() {
    const Value stage = stage_of(count_);
    wait_for_phase(w_, barrier_of(stage, v_full()), parity_of(count_, false));
    begin_sums(stage);
    if (groups() > 1) {  // the other's last turn has been announced
      const Value first = w_.compare("EQ", own_, imm(1));
      w_.code.emit("BAR.SYNC.DEFER_BLOCKING", {own_, imm(kTurnThreads)}).when(first);
    }
    wait_for_products(0);
  }

  /// Keys beyond the length, or after the query, count for nothing.
  void mask() {
    Code& c = w_.code;
    const Value first = w_.add(key0_, pair_), last = w_.add(w_.copy(keys_), imm(-1));
    for (int h = 0; h < 2; ++h) {
      Value limit = last;
      if (plan_.causal) {
        limit = c.vector();
        c.emit("VIMNMX", {limit, last, w_.add(row_, imm(h * 8)), kPT});
      }
      const Value before = c.vector();
      c.emit("IADD3", {before, -first, limit, kRZ});
      for (int j = 0; j < eights(); ++j)
        for (int e = 2 * h; e < 2 * h + 2; ++e) {
          const Value s = s_.at(j * 4 + e), beyond = w_.compare("LT", before, imm(j * 8 + e % 2));
          c.emit("FSEL", {s, s, imm(kMinusInfinity), !beyond});
        }
    }
  }

  void power_of_2(Value to, Value x) { w_.code.emit("MUFU.EX2", {to, x}); }

  /// S becomes P, relative to the greatest so far; kept_: what sums made before have to be multiplied with.
  void weigh() {
    Code& c = w_.code;
    for (int h = 0; h < 2; ++h) {
      const Value largest = largest_[h], sum = sum_[h];
      Value most = largest;
      for (int j = 0; j < eights(); ++j)
        most = combine(w_, most, combine(w_, s_.at(j * 4 + 2 * h), s_.at(j * 4 + 2 * h + 1), Reduce::Max), Reduce::Max);
      most = across_row(most, Reduce::Max);
      Value shift;
      if (masks_in_loop()) {  // a row may have no keys yet
        const Value none = c.predicate();
        c.emit("FSETP.NEU.AND", {none, kPT, most, imm(kMinusInfinity), kPT});
        shift = w_.fp("FMUL", w_.fp("FSEL", most, kRZ, none), scale_);
        power_of_2(kept_[h], w_.fp("FFMA", largest, scale_, -shift));
      } else {
        shift = w_.fp("FMUL", most, scale_);
        power_of_2(kept_[h], w_.fp("FMUL", w_.fp("FADD", largest, -most), scale_));
      }
      w_.assign(largest, most);
      Value added;
      for (int j = 0; j < eights(); ++j) {
        const Value a = s_.at(j * 4 + 2 * h), b = a.at(1);
        for (const Value& s : {a, b}) {
          c.emit("FFMA", {s, s, scale_, -shift});
          power_of_2(s, s);
        }
        const Value both = w_.fp("FADD", a, b);
        added = added.id < 0 ? both : w_.fp("FADD", added, both);
      }
      c.emit("FFMA", {sum, sum, kept_[h], added});  // of this lane's keys; the lanes are added up at the end
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

  void multiply_rows(const Value (&by)[2]) {
    for (int i = 0; i < plan_.size / 2; ++i) w_.code.emit("FMUL", {out_.at(i), out_.at(i), by[i / 2 % 2]});
  }
  /// The sums of S are the words of P as they lie.
  void pack_weights() {
    for (int i = 0; i < plan_.tile_k / 4; ++i) pack(w_, plan_.type, p_.at(i), s_.at(2 * i), s_.at(2 * i + 1));
  }

  void end() {
    Code& c = w_.code;
    Value by[2];
    for (int h = 0; h < 2; ++h) {
      total_[h] = across_row(sum_[h], Reduce::Sum);
      by[h] = reciprocal_of_normal(w_, total_[h]);
    }
    multiply_rows(by);
    if (plan_.log_sums) store_logarithms();
    store_rows(out_, q_rows_, q_panel());  // this group's rows of Q have been read
    publish(w_.add(own_, imm(kMostGroups)), kGroupThreads);
    c.exit(first_thread_, true);
    store_boxes(3, q_rows_, q_panel(), to_uniform(w_, w_.add(row0_, group_row_)), head_);
    wait_for_boxes();
  }

  /// Of the rows' sums, to base 2, as a way back takes them.
  void store_logarithms() {
    Code& c = w_.code;
    const Value first_lane = w_.compare("EQ", pair_, kRZ), pitch = w_.integer(pitch_);
    const Value head_row = w_.mad(w_.copy(head_), pitch, kRZ);
    for (int h = 0; h < 2; ++h) {
      const Value row = w_.add(row_, imm(h * 8));
      const Label skip = c.new_label();
      c.diverge(skip);
      c.branch(skip, w_.compare_and("LT", row, pitch, first_lane), true);
      const Value log = w_.fp("FMUL", logarithm(w_, total_[h]), imm(static_cast<float>(kLog2E)));
      const Value result = w_.fp("FFMA", largest_[h], scale_, log);
      w_.store_global(w_.wide_mad(w_.add(head_row, row), imm(4), w_.pointer(log_sums_)), 0, result, 4);
      c.converge(skip);
    }
  }

  int log_sums_ = 0, pitch_ = 0;  ///< parameters
  Value head_, queries_, keys_, scale_, row0_, tiles_, key0_;
  Value own_, other_, group_row_, q_rows_, row_, pair_, q_, s_, out_, p_, count_;
  Value largest_[2], sum_[2], kept_[2], total_[2];
};

}  // namespace

Kernel flash_groups(const AttentionPlan& plan, const GpuModel& model, const std::string& name,
                    const SourcePosition& where) {
  return FlashGroups(plan, model, name).write(where);
}

int flash_groups_shared(const AttentionPlan& plan) {
  constexpr int kStages = AttentionGroups::kStages, kBarriers = 1 + 4 * kStages;
  return (plan.tile_q + 2 * kStages * plan.tile_k) * plan.row_bytes() + kBarriers * kBarrierBytes;
}

}  // namespace forewarp::sketch
