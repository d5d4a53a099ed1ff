// Products on tensor cores. Copies by cp.async run `stages` - 1 tiles ahead in a ring of shared memory, swizzled so
// that ldmatrix meets no bank conflict; with `ahead` the words of a step are fetched while the one before is
// multiplied. By registers: a tile of each operand goes through registers into shared memory, all wait, all multiply;
// with `ahead` the next tile is on its way meanwhile. Blocks that stay take one tile of C after another, and the ring
// never drains. On sm_90 TMA may fill the ring: one thread asks for the next tile once all are done with a stage, whose
// barrier counts its bytes.
#include <algorithm>
#include <functional>

#include "sketch/families/groups.h"
#include "sketch/families/product.h"

namespace forewarp::sketch {
namespace {

class TensorProduct : public Product {
 public:
  using Product::Product;

  Kernel write(const SourcePosition& where) {
    if (plan_.tma)
      begin_boxes();
    else
      find_copies();
    find_warp();
    find_words();
    if (plan_.tma)
      through_boxes();
    else if (plan_.by_registers)
      through_registers();
    else
      through_ring();
    return w_.finish(where, plan_.remedy, plan_.threads(), 0);
  }

 private:
  struct Words {
    std::vector<Value> a, b;  ///< by strip
  };
  using Between = std::vector<std::function<void()>>;

  int size() const { return bytes_of(plan_.type); }
  int stage_bytes() const { return plan_.a_bytes() + plan_.b_bytes(); }
  int a_row_bytes() const { return (plan_.a_turned ? plan_.tile_m : plan_.tile_k) * size(); }
  int b_row_bytes() const { return (plan_.b_turned ? plan_.tile_k : plan_.tile_n) * size(); }
  int steps() const { return plan_.tile_k / step_depth(plan_.type); }
  int parts() const { return a_.passes() + b_.passes(); }
  int strips_m() const { return plan_.warp_m / kStrip; }
  int strips_n() const { return plan_.warp_n / kStrip; }
  int tiles_of_k() const { return static_cast<int>(ceiling(plan_.k, plan_.tile_k)); }
  bool stays() const { return plan_.persistent; }

  // ---- where things are

  void find_copies() {
    const int threads = plan_.threads();
    a_ = TileCopy(w_, plan_.a_turned ? plan_.tile_k : plan_.tile_m, a_row_bytes(), threads, thread_);
    b_ = TileCopy(w_, plan_.b_turned ? plan_.tile_n : plan_.tile_k, b_row_bytes(), threads, thread_);
    a_.find_places();
    b_.find_places();
    // As ptxas has it, unasked, of loops that fetch words ahead; not where e4m3 is widened between.
    a_.whole_lines = b_.whole_lines = plan_.ahead && plan_.type != Type::E4m3;
    if (stays()) {
      work_ = w_.copy(w_.block_x());
      fetched_ = w_.copy(work_);
      fetched_depth_ = w_.number(0);
      find_tile(fetched_, block_m_, block_n_);
    }
    point();
    const Value a_pitch = w_.uniform_integer(sizes_[plan_.a_turned ? 0 : 2]),
                b_pitch = w_.uniform_integer(sizes_[plan_.b_turned ? 2 : 1]);
    a_.step = w_.uniform_wide_mad(a_pitch, imm(a_.rows_a_pass() * size()), kURZ);
    b_.step = w_.uniform_wide_mad(b_pitch, imm(b_.rows_a_pass() * size()), kURZ);
    if (plan_.a_turned) a_tile_ = w_.uniform_wide_mad(a_pitch, imm(plan_.tile_k * size()), kURZ);
    if (!plan_.b_turned) b_tile_ = w_.uniform_wide_mad(b_pitch, imm(plan_.tile_k * size()), kURZ);
    if (plan_.parts > 1) {
      const Value left = w_.add(part_first_, imm(-tiles_of_k())), mine = w_.number(part_tiles());
      tiles_ = w_.code.vector();
      // The parts before may have taken all.
      w_.code.emit("IADD3", {left, kRZ, -left, kRZ});
      w_.code.emit(w_.code.hopper() ? "VIMNMX" : "IMNMX", {tiles_, left, mine, kPT});
    } else {
      tiles_ = w_.shift_right(w_.add(k_, imm(plan_.tile_k - 1)), log2_of(plan_.tile_k));
    }
  }

  /// Where the warp's part of the tile of C begins.
  void find_warp() {
    const Value warp = w_.shift_right(thread_, 5);
    const int across = plan_.tile_n / plan_.warp_n;
    lane_ = w_.and_bits(thread_, 31);
    warp_row_ = w_.shift_right(warp, log2_of(across));
    warp_column_ = w_.and_bits(warp, static_cast<std::uint32_t>(across - 1));
    row_ = w_.mad(warp_row_, imm(plan_.warp_m), kRZ);
    column_ = w_.mad(warp_column_, imm(plan_.warp_n), kRZ);
  }

  void find_words() {
    if (plan_.a_turned)
      a_words_ = TileWords(w_, Factor::ATurned, a_row_bytes(),
                           w_.mad(warp_row_, imm(plan_.warp_m * size() / kChunk), kRZ), lane_, strips_m());
    else
      a_words_ = TileWords(w_, Factor::A, a_row_bytes(), row_, lane_, steps());
    if (plan_.b_turned)
      b_words_ = TileWords(w_, Factor::BTurned, b_row_bytes(), column_, lane_, steps());
    else
      b_words_ = TileWords(w_, Factor::B, plan_.tma ? kRowBytes : b_row_bytes(),
                           w_.mad(warp_column_, imm(plan_.warp_n * size() / kChunk), kRZ), lane_, strips_n(),
                           plan_.tma ? b_panel_bytes() : 0);
    sums_.assign(static_cast<std::size_t>(strips_m()), std::vector<Value>(static_cast<std::size_t>(2 * strips_n())));
  }

  int part_tiles() const { return static_cast<int>(ceiling(tiles_of_k(), plan_.parts)); }

  void set(Value& to, Value from) {
    if (to.id < 0)
      to = from;
    else
      w_.assign(to, from);
  }
  void set_pair(Value& to, Value from) {
    if (to.id < 0) {
      to = from;
      return;
    }
    w_.assign(to, from);
    w_.assign(to.at(1), from.at(1));
  }

  /// Sources at the first tiles of A and B for the block's tile of C.
  void point() {
    const int chunk = kChunk / size();
    const auto first_of = [&](const TileCopy& of) { return w_.shift_left(of.chunk(), log2_of(chunk)); };
    const Value row = w_.mad(block_m_, imm(plan_.tile_m), plan_.a_turned ? first_of(a_) : a_.row());
    Value depth = plan_.a_turned ? a_.row() : first_of(a_), b_depth = plan_.b_turned ? Value{} : b_.row();
    if (plan_.b_turned) b_depth = first_of(b_);
    if (plan_.parts > 1) {
      part_first_ = w_.mad(w_.copy(w_.block_z()), imm(part_tiles()), kRZ);
      depth = w_.mad(part_first_, imm(plan_.tile_k), depth);
      b_depth = w_.mad(part_first_, imm(plan_.tile_k), b_depth);
    }
    const Value column = w_.mad(block_n_, imm(plan_.tile_n), plan_.b_turned ? b_.row() : first_of(b_));
    set_pair(a_.at, plan_.a_turned ? element(pointers_[0], in_batch(depth, k_), m_, row, plan_.type)
                                   : element(pointers_[0], in_batch(row, m_), k_, depth, plan_.type));
    set_pair(b_.at, plan_.b_turned
                        ? element(pointers_[1], in_batch(column, n_, plan_.shared_b), k_, b_depth, plan_.type)
                        : element(pointers_[1], in_batch(b_depth, k_, plan_.shared_b), n_, column, plan_.type));
    set(a_rows_left_, subtract(m_, row));
    set(a_depth_left_, subtract(k_, depth));
    set(b_depth_left_, subtract(k_, b_depth));
    set(b_columns_left_, subtract(n_, column));
    a_.rows_left = plan_.a_turned ? a_depth_left_ : a_rows_left_;
    b_.rows_left = plan_.b_turned ? b_columns_left_ : b_depth_left_;
  }

  void next_tile() {
    if (!stays()) {
      advance();
      return;
    }
    Code& c = w_.code;
    const Label other = c.new_label(), done = c.new_label();
    c.emit("IADD3", {fetched_depth_, fetched_depth_, imm(1), kRZ});
    c.branch(other, w_.compare("GE", fetched_depth_, tiles_));
    advance();
    c.branch(done);
    c.place(other);
    w_.assign(fetched_depth_, imm(0));
    c.emit("IADD3", {fetched_, fetched_, constant(kGridX), kRZ});
    find_tile(fetched_, block_m_, block_n_);
    point();
    c.place(done);
  }

  void advance() {
    if (plan_.a_turned)
      advance_by(w_, a_.at, a_tile_);
    else
      w_.advance(a_.at, imm(plan_.tile_k * size()));
    if (plan_.b_turned)
      w_.advance(b_.at, imm(plan_.tile_k * size()));
    else
      advance_by(w_, b_.at, b_tile_);
    for (const Value v : {a_depth_left_, b_depth_left_}) w_.code.emit("IADD3", {v, v, imm(-plan_.tile_k), kRZ});
  }

  // ---- by cp.async

  void through_ring() {
    Code& c = w_.code;
    // The ring begins with as many tiles as it holds less one.
    for (int s = 0; s + 1 < plan_.stages; ++s) {
      c.place(c.new_label());
      const Value more = stays() ? more_work() : w_.compare("GT", tiles_, imm(s));
      for (int part = 0; part < parts(); ++part) copy(part, w_.number(s * stage_bytes()), more);
      next_tile();
      c.emit("LDGDEPBAR");
    }
    clear();
    const Value tile = w_.number(0), used = w_.number(0), freed = w_.number((plan_.stages - 1) * stage_bytes());
    if (plan_.ahead) {
      wait_for_copies(w_, plan_.stages - 2);
      load(0, base_, 0);
    }
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LT", tiles_, imm(1)));
    c.place(loop);
    if (!plan_.ahead) wait_for_copies(w_, plan_.stages - 2);
    const Value more = stays() ? more_work() : w_.compare("LT", w_.add(tile, imm(plan_.stages - 1)), tiles_);
    Value stage = uniform(used);
    if (!plan_.ahead) {
      for (int part = 0; part < parts(); ++part) copy(part, freed, more);
      next_tile();
      c.emit("LDGDEPBAR");
    }
    for (int step = 0; step < steps(); ++step) {
      if (plan_.ahead && step == steps() - 1) {
        next_tile();
        c.emit("LDGDEPBAR");
        wait_for_copies(w_, plan_.stages - 2);
        turn(used, freed);
        stage = uniform(used);
      }
      if (plan_.ahead) {
        // The next step's words and a share of the copies go between the products, one for every other product.
        Between between = words_of_step((step + 1) % 2, stage, (step + 1) % steps());
        for (int part = 0; step < steps() - 1 && part < parts(); ++part)
          if (part * (steps() - 1) / parts() == step) between.push_back([=, this] { copy(part, freed, more); });
        multiply_step(step % 2, between);
      } else {
        load(0, stage, step);
        multiply_step(0);
      }
    }
    if (!plan_.ahead) turn(used, freed);
    c.emit("IADD3", {tile, tile, imm(1), kRZ});
    c.branch(loop, w_.compare("LT", tile, tiles_));
    c.place(done);
    if (stays()) {
      Value row, column;
      find_tile(work_, row, column);
      store_tile(row, column);
      w_.assign(tile, imm(0));
      c.emit("IADD3", {work_, work_, constant(kGridX), kRZ});
      clear();
      c.branch(loop, w_.compare("LT", work_, imm(all_tiles())));
    } else {
      store_own_tile();
    }
  }

  Value more_work() { return w_.compare("LT", fetched_, imm(all_tiles())); }

  TileCopy& operand_of(int part) { return part < a_.passes() ? a_ : b_; }
  int pass_of(int part) const { return part < a_.passes() ? part : part - a_.passes(); }
  int base_of(int part) const { return part < a_.passes() ? 0 : plan_.a_bytes(); }
  void find_inside(int part) {
    if (pass_of(part) > 0) return;
    const Value a_left = plan_.a_turned ? a_rows_left_ : a_depth_left_,
                b_left = plan_.b_turned ? b_depth_left_ : b_columns_left_;
    inside_ = w_.compare("GE", part < a_.passes() ? a_left : b_left, imm(1));
  }

  /// One of a tile's copies by this thread, into the stage that begins `stage` bytes into the ring.
  void copy(int part, Value stage, Value more) {
    TileCopy& of = operand_of(part);
    const int pass = pass_of(part);
    find_inside(part);
    const Value to = w_.code.vector();
    w_.code.emit("IADD3", {to, of.place(pass), stage, base_});
    of.copy(pass, to, base_of(part) + of.offset(pass), inside_, more);
  }

  void turn(Value used, Value freed) {
    w_.assign(freed, used);
    const Value next = w_.add(used, imm(stage_bytes()));
    const Value inside = w_.compare("NE", next, imm(plan_.stages * stage_bytes()));
    w_.code.emit("SEL", {used, next, kRZ, inside});
  }

  Value uniform(Value offset) {
    const Value v = w_.code.uniform(), sum = w_.code.uniform();
    w_.code.emit("R2UR", {v, offset});
    w_.code.emit("UIADD3", {sum, v, base_, kURZ});
    return sum;
  }

  // ---- by TMA

  /// B by rows lies in panels of 64 columns.
  int b_panel_bytes() const { return plan_.tile_k * kRowBytes; }
  int barriers_at() const { return plan_.stages * stage_bytes(); }

  void begin_boxes() {
    Code& c = w_.code;
    find_maps(w_, pointers_, maps_, 2);
    row0_ = to_uniform(w_, w_.mad(block_m_, imm(plan_.tile_m), kRZ));
    column0_ = to_uniform(w_, w_.mad(block_n_, imm(plan_.tile_n), kRZ));
    asks_ = w_.compare("NE", thread_, kRZ);
    const Label meet = c.new_label();
    c.diverge(meet);
    c.branch(meet, asks_);
    for (int s = 0; s < plan_.stages; ++s)
      start_barrier(w_, uniform_add(w_, base_, barriers_at() + s * kBarrierBytes), 1);
    c.emit("MEMBAR.ALL.CTA");
    c.emit("FENCE.VIEW.ASYNC.S");
    for (int tile = 0; tile < std::min(plan_.stages, tiles_of_k()); ++tile)
      fetch_boxes(uniform_number(w_, static_cast<std::uint32_t>(tile * plan_.tile_k)),
                  uniform_add(w_, base_, tile * stage_bytes()),
                  uniform_add(w_, base_, barriers_at() + tile * kBarrierBytes));
    c.converge(meet);
    w_.barrier();
  }

  /// Asks for the tiles from `depth` of k on.
  void fetch_boxes(Value depth, Value stage, Value barrier) {
    w_.code.emit("SYNCS.ARRIVE.TRANS64", {kRZ, at(barrier), w_.number(stage_bytes())});
    fetch_box(w_, maps_[0], stage, 0, barrier, depth, 0, row0_);
    if (plan_.b_turned) {
      fetch_box(w_, maps_[1], stage, plan_.a_bytes(), barrier, depth, 0, column0_);
      return;
    }
    for (int panel = 0; panel < plan_.tile_n / kPanel; ++panel)
      fetch_box(w_, maps_[1], stage, plan_.a_bytes() + panel * b_panel_bytes(), barrier, column0_, panel * kPanel,
                depth);
  }

  /// All have taken what they need of the stage: one of them asks for the tile that comes into it.
  void ask_again(const RingTurn& turn, Value depth) {
    Code& c = w_.code;
    w_.barrier();
    const Label meet = c.new_label();
    c.diverge(meet);
    const Value further = w_.add(depth, imm(plan_.stages * plan_.tile_k)), none = c.predicate();
    c.emit("ISETP.GE.OR", {none, kPT, further, k_, asks_});
    c.branch(meet, none);
    fetch_boxes(to_uniform(w_, further), in_ring(w_, base_, turn.stage),
                in_ring(w_, base_, turn.barrier, barriers_at()));
    c.converge(meet);
  }

  void wait_for_tile(const RingTurn& turn) {
    wait_for_phase(w_, in_ring(w_, base_, turn.barrier, barriers_at()), turn.parity);
  }

  void through_boxes() {
    Code& c = w_.code;
    clear();
    const RingTurn turn = first_turn(w_);
    const Value depth = w_.number(0);
    wait_for_tile(turn);
    if (plan_.ahead) load(0, base_, 0);
    const Label loop = c.new_label();
    c.place(loop);
    Value stage = in_ring(w_, base_, turn.stage);
    for (int step = 0; step < steps(); ++step) {
      if (!plan_.ahead) {
        load(0, stage, step);
        multiply_step(0);
        continue;
      }
      if (step == steps() - 1) {
        next_boxes(turn, depth);
        stage = in_ring(w_, base_, turn.stage);
      }
      multiply_step(step % 2, words_of_step((step + 1) % 2, stage, (step + 1) % steps()));
    }
    if (!plan_.ahead) next_boxes(turn, depth);
    c.branch(loop, w_.compare("LT", depth, k_));
    store_own_tile();
  }

  /// On to the next tile, which is waited for if there is one.
  void next_boxes(const RingTurn& turn, Value depth) {
    Code& c = w_.code;
    ask_again(turn, depth);
    next_turn(w_, turn, plan_.stages, stage_bytes());
    c.emit("IADD3", {depth, depth, imm(plan_.tile_k), kRZ});
    const Label last = c.new_label();
    c.branch(last, w_.compare("GE", depth, k_));
    wait_for_tile(turn);
    c.place(last);
  }

  // ---- by registers

  void through_registers() {
    Code& c = w_.code;
    clear();
    chunks_.assign(static_cast<std::size_t>(parts()), Value{});
    const Value left = w_.copy(tiles_);
    if (plan_.ahead) fetch();
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LT", left, imm(1)));
    c.place(loop);
    if (!plan_.ahead) fetch();
    for (int part = 0; part < parts(); ++part) {
      const TileCopy& of = operand_of(part);
      w_.store_shared(of.place(pass_of(part)), base_of(part) + of.offset(pass_of(part)),
                      chunks_[static_cast<std::size_t>(part)], kChunk, base_);
    }
    w_.barrier();
    if (plan_.ahead) fetch();  // beyond k: zeros
    for (int step = 0; step < steps(); ++step) {
      load(0, base_, step);
      multiply_step(0);
    }
    w_.barrier();
    c.emit("IADD3", {left, left, imm(-1), kRZ});
    c.branch(loop, w_.compare("GE", left, imm(1)));
    c.place(done);
    store_own_tile();
  }

  void fetch() {
    for (int part = 0; part < parts(); ++part) {
      find_inside(part);
      operand_of(part).fetch(pass_of(part), chunks_[static_cast<std::size_t>(part)], inside_);
    }
    next_tile();
  }

  // ---- products and results

  void clear() {
    for (auto& row : sums_)
      for (Value& sum : row) {
        if (sum.id < 0) sum = w_.code.vector(4);
        w_.code.emit("CS2R", {sum, special(SpecialRegister::Zero)});
        w_.code.emit("CS2R", {sum.at(2), special(SpecialRegister::Zero)});
      }
  }

  /// Sets of words have one place each: they live across the loop's end.
  void load(int set, Value stage, int step) {
    for (const auto& one : words_of_step(set, stage, step)) one();
  }
  Between words_of_step(int set, Value stage, int step) {
    const bool lasts = plan_.ahead && !plan_.by_registers;
    Words& words = words_[set];
    words.a.resize(static_cast<std::size_t>(strips_m()));
    words.b.resize(static_cast<std::size_t>(strips_n()));
    Between loads;
    const auto place = [&](Value& v) {
      if (!lasts || v.id < 0) v = w_.code.vector(4);
      return v;
    };
    for (int i = 0; i < strips_m(); ++i)
      loads.push_back(
          [=, this, to = place(words.a[static_cast<std::size_t>(i)])] { a_words_.load(to, i, step, stage, 0); });
    for (int j = 0; j < strips_n(); ++j)
      loads.push_back([=, this, to = place(words.b[static_cast<std::size_t>(j)])] {
        b_words_.load(to, j, step, stage, plan_.a_bytes());
      });
    return loads;
  }

  void multiply_step(int set, const Between& between = {}) {
    const Words words = words_[set];
    std::size_t done = 0, next = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i)
      for (std::size_t j = 0; j < sums_[i].size(); ++j) {
        if (done++ % 2 == 0 && next < between.size()) between[next++]();
        multiply(w_, plan_.type, sums_[i][j], words.a[i], words.b[j / 2].at(j % 2 == 0 ? 0 : 2), sums_[i][j]);
      }
    while (next < between.size()) between[next++]();
  }

  /// Where a block stores one tile, it asks again for what is soon known, rather than keep it in registers.
  void store_own_tile() {
    thread_ = w_.thread();
    find_block();
    find_warp();
    store_tile(block_m_, block_n_);
  }

  void store_tile(Value block_m, Value block_n) {
    Code& c = w_.code;
    const Value first_row = w_.mad(block_m, imm(plan_.tile_m), w_.mad(w_.shift_right(lane_, 2), imm(1), row_));
    const Value pair = w_.shift_left(w_.and_bits(lane_, 3), 1);
    const Value first_column = w_.mad(block_n, imm(plan_.tile_n), w_.mad(pair, imm(1), column_));
    std::vector<int> columns;
    for (int j = 0; j < 2 * strips_n(); ++j) columns.push_back(j * 8);
    begin_results(first_column, columns, 2);
    for (std::size_t i = 0; i < sums_.size(); ++i)
      for (int h = 0; h < 2; ++h) {
        const Label skip = c.new_label();
        const Value row = w_.add(first_row, imm(static_cast<int>(i) * kStrip + h * 8));
        c.diverge(skip);
        c.branch(skip, w_.compare("GE", row, m_));
        begin_row(row, first_column);
        for (std::size_t j = 0; j < sums_[i].size(); ++j) {
          const Value beyond = w_.compare("GE", w_.add(first_column, imm(columns[j])), n_);
          store(j, {sums_[i][j].at(2 * h), sums_[i][j].at(2 * h + 1)}, columns[j], beyond);
        }
        c.converge(skip);
      }
  }

  TileCopy a_, b_;
  TileWords a_words_, b_words_;
  Value a_rows_left_, a_depth_left_, b_depth_left_, b_columns_left_, a_tile_, b_tile_, tiles_, part_first_;
  Value work_, fetched_, fetched_depth_;
  Value maps_[2], row0_, column0_, asks_;  ///< of TMA
  Value row_, column_, warp_row_, warp_column_, lane_, inside_;
  Words words_[2];
  std::vector<Value> chunks_;
  std::vector<std::vector<Value>> sums_;
};

}  // namespace

Kernel tensor_product(const ProductPlan& plan, const GpuModel& model, const std::string& name,
                      const SourcePosition& where) {
  return TensorProduct(plan, model, name).write(where);
}

}  // namespace forewarp::sketch
