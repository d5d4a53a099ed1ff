// Products of warpgroups (wgmma), sm_90 alone.
//
// On tiles that TMA fetches into a ring of stages, each with a barrier that counts its bytes: either one of the threads
// that multiply asks for the next tile once all are done with a stage; or a warpgroup of its own does (`specialised`),
// and who multiplies hands stages back through a second barrier each and keeps one group of products under way. Blocks
// of a cluster share tiles then: each fetches its part of a tile into all that have it, and hands a stage back to all
// that fetch into it. Blocks that stay take one tile of C after another, and who fetches goes on to the next while who
// multiplies stores. Where k is parted, a block has the tiles of its part.
//
// On tiles that the threads copy: by cp.async into a ring, the next tile under the products of one, or through
// registers. Both write what wgmma reads past a fence.
#include <algorithm>

#include "sketch/families/groups.h"
#include "sketch/families/product.h"

namespace forewarp::sketch {
namespace {

/// What multiplies: sums, factors and results.
class GroupSums : public Product {
 public:
  using Product::Product;

 protected:
  /// B by rows lies in panels of 64 columns, by columns as A does.
  int b_panels() const { return plan_.b_turned ? 1 : plan_.tile_n / kPanel; }
  int panel_bytes() const { return (plan_.b_turned ? plan_.tile_n : plan_.tile_k) * kRowBytes; }
  int stage_bytes() const { return plan_.a_bytes() + plan_.b_bytes(); }
  /// Of a part.
  int tiles_of_k() const { return static_cast<int>(ceiling(ceiling(plan_.k, plan_.tile_k), plan_.parts)); }
  int halves() const { return plan_.warp_m / kGroupRows; }

  /// Where this block's part of k begins and ends. One that the parts before have left nothing of multiplies one tile
  /// that lies beyond k: zeros.
  void find_part() {
    const int depth = tiles_of_k() * plan_.tile_k;
    first_k_ = w_.mad(w_.copy(w_.block_z()), imm(depth), kRZ);
    const Value end = w_.code.vector();
    w_.code.emit("VIMNMX", {end, w_.add(first_k_, imm(depth)), k_, kPT});
    k_ = end;
  }
  Value first_depth() { return plan_.parts > 1 ? w_.copy(first_k_) : w_.number(0); }

  void clear() {
    sums_.resize(static_cast<std::size_t>(halves()));
    for (int h = 0; h < halves(); ++h) {
      Value& sum = sums_[static_cast<std::size_t>(h)];
      if (sum.id < 0) sum = w_.code.vector(plan_.tile_n / 2);
      for (int word = 0; word < plan_.tile_n / 2; word += 2)
        w_.code.emit("CS2R", {sum.at(word), special(SpecialRegister::Zero)});
    }
  }

  void find_factors() {
    const Value group = w_.add(w_.shift_right(thread_, 7), imm(plan_.specialised ? -1 : 0));
    a_from_ = w_.mad(group, imm(plan_.warp_m * kRowBytes), kRZ);
    in_group_ = w_.and_bits(thread_, kGroupThreads - 1);
  }

  /// Begins the products of the tile that lies at `stage`.
  void multiply(Value stage) {
    Code& c = w_.code;
    const Value a = factor_start(w_, w_.add(stage, a_from_), 1);
    const Value b = factor_start(w_, w_.add(stage, imm(plan_.a_bytes())),
                                 plan_.b_turned ? 1 : static_cast<std::uint32_t>(panel_bytes() / kChunk));
    const int b_step = plan_.b_turned ? kStepBytes : step_depth(plan_.type) * kRowBytes;
    c.emit("WARPGROUP.ARRIVE");
    const int steps = plan_.tile_k / step_depth(plan_.type);
    for (int step = 0; step < steps; ++step)
      for (int h = 0; h < halves(); ++h) {
        const Value factors = c.uniform(4);
        c.emit("UIADD3", {factors, a, imm((h * kGroupRows * kRowBytes + step * kStepBytes) / kChunk), kURZ});
        c.emit("UMOV", {factors.at(1), imm(kFactorHigh)});
        c.emit("UIADD3", {factors.at(2), b, imm(step * b_step / kChunk), kURZ});
        c.emit("UMOV", {factors.at(3), imm(kFactorHigh)});
        const Value sum = sums_[static_cast<std::size_t>(h)];
        const bool last = step == steps - 1 && h == halves() - 1;
        Line& line = last ? c.emit(mnemonic(), {sum, factor_description(factors), sum, uniform_true(), scoreboard(0)})
                          : c.emit(mnemonic(), {sum, factor_description(factors), sum, uniform_true()});
        if (!plan_.b_turned)
          line.instruction.modifiers.set(static_cast<std::size_t>(Modifier::tnspB));  // of the description
      }
  }

  std::string mnemonic() const {
    const std::string shape = "64x" + std::to_string(plan_.tile_n) + "x" + std::to_string(step_depth(plan_.type));
    switch (plan_.type) {
      case Type::S8:
        return "IGMMA." + shape + ".S8.S8";
      case Type::E4m3:
        return "QGMMA." + shape + ".F32.E4M3.E4M3";
      case Type::Tf32:
        return "HGMMA." + shape + ".F32.TF32";
      case Type::Bf16:
        return "HGMMA." + shape + ".F32.BF16";
      default:
        return "HGMMA." + shape + ".F32";
    }
  }

  void store_tile() {
    Code& c = w_.code;
    const Value group = w_.add(w_.shift_right(thread_, 7), imm(plan_.specialised ? -1 : 0));
    const Value lane = w_.and_bits(thread_, 31), warp = w_.and_bits(w_.shift_right(thread_, 5), 3);
    const Value in_group = w_.mad(warp, imm(kStrip), w_.shift_right(lane, 2));
    const Value first_row = w_.mad(block_m_, imm(plan_.tile_m), w_.mad(group, imm(plan_.warp_m), in_group));
    const Value first_column = w_.mad(block_n_, imm(plan_.tile_n), w_.shift_left(w_.and_bits(lane, 3), 1));
    std::vector<int> columns;
    for (int j = 0; j < plan_.tile_n / 8; ++j) columns.push_back(j * 8);
    begin_results(first_column, columns, 2);
    for (int half = 0; half < halves(); ++half)
      for (int h = 0; h < 2; ++h) {
        const Label skip = c.new_label();
        const Value row = w_.add(first_row, imm(half * kGroupRows + h * 8));
        c.diverge(skip);
        c.branch(skip, w_.compare("GE", row, m_));
        begin_row(row, first_column);
        for (std::size_t j = 0; j < columns.size(); ++j) {
          const Value beyond = w_.compare("GE", w_.add(first_column, imm(columns[j])), n_);
          const Value sum = sums_[static_cast<std::size_t>(half)].at(static_cast<int>(j) * 4 + 2 * h);
          store(j, {sum, sum.at(1)}, columns[j], beyond);
        }
        c.converge(skip);
      }
  }

  Value first_k_;            ///< of the block's part of k, which ends at k_
  Value a_from_, in_group_;  ///< where the group's rows of A are in a stage, the thread in its group
  std::vector<Value> sums_;
};

/// ... of tiles that TMA fetches.
class FetchedProduct : public GroupSums {
 public:
  using GroupSums::GroupSums;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    begin();
    if (plan_.specialised) {
      const Label consume = c.new_label();
      c.branch(consume, w_.compare("GE.U32", thread_, imm(kGroupThreads)));
      produce();
      c.place(consume);
    }
    begin_products();
    const Label tiles = c.new_label();
    const Value work = plan_.persistent ? w_.copy(first_work_) : Value{};
    if (plan_.persistent) c.place(tiles);
    multiply_tiles();
    if (plan_.clustered()) arrive_at_cluster();  // a block whose barriers others still arrive at stays
    if (plan_.persistent) {
      release_last();
      find_tile(work, block_m_, block_n_);
    }
    store_tile();
    if (plan_.persistent) {
      clear();
      w_.assign(depth_, imm(0));
      next_work(work, tiles);
    }
    if (plan_.clustered()) wait_for_cluster();
    return w_.finish(where, "take a smaller tile, or fewer rows a warpgroup", plan_.threads(), 0);
  }

 private:
  /// Columns of B that a block fetches.
  int columns_share() const { return plan_.tile_n / plan_.cluster_m; }
  int full_at() const { return plan_.stages * stage_bytes(); }
  int empty_at() const { return full_at() + plan_.stages * kBarrierBytes; }
  int consumers() const { return plan_.tile_m / plan_.warp_m; }
  /// Blocks that fetch into a stage of this one.
  int sources() const { return plan_.cluster_m + plan_.cluster_n - 1; }

  void begin() {
    Code& c = w_.code;
    find_maps(w_, pointers_, maps_, 2);
    if (plan_.clustered()) find_shares();
    if (plan_.persistent)
      first_work_ = w_.copy(w_.block_x());  // before the ways part
    else
      find_boxes();
    if (plan_.parts > 1) find_part();
    asks_ = w_.compare("NE", thread_, kRZ);
    const Label meet = c.new_label();
    c.diverge(meet);
    c.branch(meet, asks_);
    for (int s = 0; s < plan_.stages; ++s) {
      start_barrier(w_, uniform_add(w_, base_, full_at() + s * kBarrierBytes), 1);
      if (plan_.specialised)
        start_barrier(w_, uniform_add(w_, base_, empty_at() + s * kBarrierBytes), consumers() * sources());
    }
    c.emit("MEMBAR.ALL.CTA");
    c.emit("FENCE.VIEW.ASYNC.S");
    if (!plan_.specialised)
      for (int tile = 0; tile < std::min(plan_.stages, tiles_of_k()); ++tile) {
        Value depth;
        if (plan_.parts > 1) {
          const Value first = w_.add(first_k_, imm(tile * plan_.tile_k));
          if (tile > 0) c.branch(meet, w_.compare("GE", first, k_));
          depth = to_uniform(w_, first);
        } else {
          depth = uniform_number(w_, static_cast<std::uint32_t>(tile * plan_.tile_k));
        }
        fetch(depth, uniform_add(w_, base_, tile * stage_bytes()),
              uniform_add(w_, base_, full_at() + tile * kBarrierBytes));
      }
    c.converge(meet);
    if (plan_.clustered()) {
      arrive_at_cluster();  // nobody arrives at barriers of another block before they are made
      wait_for_cluster();
    } else {
      w_.barrier();
    }
  }

  // ---- the cluster

  /// A field of the block's number in the cluster.
  Value part_of_rank(Value rank, int below, int extent) {
    Code& c = w_.code;
    const Value high = c.uniform(), v = c.uniform();
    c.emit("USHF.R.U32.HI", {high, kURZ, imm(log2_of(below)), rank});
    Arg never = uniform_true();
    never.operand.invert = true;
    c.emit("ULOP3.LUT", {v, high, imm(extent - 1), kURZ, imm(0xc0), never});
    return v;
  }
  Value uniform_shift(Value a, int bits) {
    const Value v = w_.code.uniform();
    w_.code.emit("USHF.L.U32", {v, a, imm(bits), kURZ});
    return v;
  }

  /// Which part of the tiles this block fetches, and which blocks get it.
  void find_shares() {
    Code& c = w_.code;
    const Value rank = c.uniform();
    c.emit("S2UR", {rank, special(SpecialRegister::CgaCtaId)});
    const int step_m = plan_.rows_first() ? 1 : plan_.cluster_n, step_n = plan_.rows_first() ? plan_.cluster_m : 1;
    in_m_ = part_of_rank(rank, step_m, plan_.cluster_m);
    in_n_ = part_of_rank(rank, step_n, plan_.cluster_n);
    // Bits of the blocks with the same rows have A, of those with the same columns B; in the upper half of a word.
    const auto all = [&](int count, int step, Value from, int from_step) {
      std::uint32_t bits = 0;
      for (int i = 0; i < count; ++i) bits |= 0x10000u << (i * step);
      const Value v = c.uniform(), by = uniform_shift(from, log2_of(from_step));
      c.emit("USHF.L.U32", {v, uniform_number(w_, bits), by, kURZ});
      return v;
    };
    if (plan_.cluster_n > 1) have_a_ = all(plan_.cluster_n, step_n, in_m_, step_m);
    if (plan_.cluster_m > 1) have_b_ = all(plan_.cluster_m, step_m, in_n_, step_n);
    rows_share_ = w_.code.uniform();
    columns_share_ = w_.code.uniform();
    c.emit("UIMAD", {rows_share_, in_n_, imm(plan_.tile_m / plan_.cluster_n), kURZ});
    c.emit("UIMAD", {columns_share_, in_m_, imm(columns_share()), kURZ});
  }

  void release_to_cluster() {
    for (const char* what : {"MEMBAR.ALL.CTA", "MEMBAR.ALL.GPU", "ERRBAR", "CGAERRBAR"}) w_.code.emit(what);
  }
  void arrive_at_cluster() {
    release_to_cluster();
    w_.code.emit("UCGABAR_ARV");
  }
  void wait_for_cluster() {
    w_.code.emit("UCGABAR_WAIT");
    w_.code.emit("CCTL.IVALL");
  }

  void find_boxes() {
    row0_ = to_uniform(w_, w_.mad(block_m_, imm(plan_.tile_m), kRZ));
    column0_ = to_uniform(w_, w_.mad(block_n_, imm(plan_.tile_n), kRZ));
  }
  void next_work(Value work, Label tiles) {
    w_.code.emit("IADD3", {work, work, constant(kGridX), kRZ});
    w_.code.branch(tiles, w_.compare("LT", work, imm(all_tiles())));
  }

  /// Asks for the tiles from `depth` of k on.
  void fetch(Value depth, Value stage, Value barrier) {
    Code& c = w_.code;
    c.emit("SYNCS.ARRIVE.TRANS64", {kRZ, at(barrier), w_.number(stage_bytes())});
    Value a_to = stage, b_to = stage, row = row0_, column = column0_;
    if (plan_.clustered()) {
      const auto share = [&](Value part, int size, Value from) {
        const Value v = c.uniform();
        c.emit("UIMAD", {v, part, imm(size), from});
        return v;
      };
      a_to = share(rows_share_, kRowBytes, stage);
      row = share(rows_share_, 1, row0_);
      b_to = share(columns_share_, panel_bytes() / (plan_.b_turned ? plan_.tile_n : kPanel), stage);
      column = share(columns_share_, 1, column0_);
    }
    fetch_box(w_, maps_[0], a_to, 0, barrier, depth, 0, row, have_a_);
    if (plan_.b_turned) {
      fetch_box(w_, maps_[1], b_to, plan_.a_bytes(), barrier, depth, 0, column, have_b_);
      return;
    }
    for (int panel = 0; panel < columns_share() / kPanel; ++panel)
      fetch_box(w_, maps_[1], b_to, plan_.a_bytes() + panel * panel_bytes(), barrier, column, panel * kPanel, depth,
                have_b_);
  }
  void next(const RingTurn& t) { next_turn(w_, t, plan_.stages, stage_bytes()); }
  Value in_ring(Value offset, int further = 0) { return sketch::in_ring(w_, base_, offset, further); }

  void produce() {
    Code& c = w_.code;
    c.exit(asks_);
    const RingTurn turn = first_turn(w_);
    w_.assign(turn.parity, imm(0x80000000u));  // of a barrier just begun the phase before counts as over
    const Label tiles = c.new_label();
    const Value work = plan_.persistent ? w_.copy(first_work_) : Value{};
    if (plan_.persistent) {
      c.place(tiles);
      find_tile(work, block_m_, block_n_);
      find_boxes();
    }
    const Value depth = first_depth();
    const Label loop = c.new_label();
    c.place(loop);
    wait_for_phase(w_, in_ring(turn.barrier, empty_at()), turn.parity, plan_.clustered());
    fetch(to_uniform(w_, depth), in_ring(turn.stage), in_ring(turn.barrier, full_at()));
    next(turn);
    c.emit("IADD3", {depth, depth, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", depth, k_));
    if (plan_.persistent) next_work(work, tiles);
    c.exit();
  }

  void begin_products() {
    clear();
    find_factors();
    turn_ = first_turn(w_);
    depth_ = first_depth();
    before_ = w_.number(0);
  }

  void multiply_tiles() {
    Code& c = w_.code;
    const RingTurn& turn = turn_;
    const Label loop = c.new_label();
    c.place(loop);
    wait_for_phase(w_, in_ring(turn.barrier, full_at()), turn.parity, plan_.clustered());
    multiply(w_.add(turn.stage, base_));
    if (plan_.specialised)
      release(turn, before_, depth_, in_group_);
    else
      ask_again(turn, depth_);
    next(turn);
    c.emit("IADD3", {depth_, depth_, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", depth_, k_));
    if (plan_.specialised) c.emit("WARPGROUP.DEPBAR.LE", {scoreboard(0), imm(0)});
  }

  /// All are done with the stage: one of them asks for the tile that comes into it.
  void ask_again(const RingTurn& turn, Value tile) {
    Code& c = w_.code;
    c.emit("WARPGROUP.DEPBAR.LE", {scoreboard(0), imm(0)});
    w_.barrier();
    const Label meet = c.new_label();
    c.diverge(meet);
    const Value further = w_.add(tile, imm(plan_.stages * plan_.tile_k)), none = c.predicate();
    c.emit("ISETP.GE.OR", {none, kPT, further, k_, asks_});
    c.branch(meet, none);
    fetch(to_uniform(w_, further), in_ring(turn.stage), in_ring(turn.barrier, full_at()));
    c.converge(meet);
  }

  /// The products of the tile before are over: its stage goes back.
  void release(const RingTurn& turn, Value before, Value tile, Value lane) {
    Code& c = w_.code;
    c.emit("WARPGROUP.DEPBAR.LE", {scoreboard(0), imm(1)});
    const Label meet = c.new_label();
    c.diverge(meet);
    const Value first = w_.compare("EQ", tile, plan_.parts > 1 ? first_k_ : kRZ), none = c.predicate();
    if (plan_.clustered()) {
      c.emit("ISETP.GE.U32.OR", {none, kPT, lane, imm(plan_.cluster_m * plan_.cluster_n), first});
      c.branch(meet, none);
      if (plan_.cluster_m > 1 && plan_.cluster_n > 1) c.branch(meet, no_source(lane));
      // The barrier's address in the lane's block.
      const Value own = w_.copy(in_ring(before, empty_at())), there = c.vector();
      c.emit("PRMT", {there, lane, imm(0x654), own});
      release_to_cluster();
      c.emit("SYNCS.ARRIVE.TRANS64.RED.A1T0", {kRZ, shared(there), kRZ});
    } else {
      c.emit("ISETP.NE.OR", {none, kPT, lane, kRZ, first});
      c.branch(meet, none);
      c.emit("SYNCS.ARRIVE.TRANS64", {kRZ, at(in_ring(before, empty_at())), w_.number(0)});
    }
    c.converge(meet);
    w_.assign(before, turn.barrier);
  }

  /// All products are over: the last stage goes back before the next tile of C.
  void release_last() {
    const Label meet = w_.code.new_label();
    w_.code.diverge(meet);
    w_.code.branch(meet, w_.compare("NE", in_group_, kRZ));
    w_.code.emit("SYNCS.ARRIVE.TRANS64", {kRZ, at(in_ring(before_, empty_at())), w_.number(0)});
    w_.code.converge(meet);
  }

  /// Whether the block of that number has neither this one's rows nor its columns.
  Value no_source(Value rank) {
    const int below_m = plan_.rows_first() ? 1 : plan_.cluster_n, below_n = plan_.rows_first() ? plan_.cluster_m : 1;
    const auto part = [&](int below, int extent) {
      return w_.and_bits(w_.shift_right(rank, log2_of(below)), static_cast<std::uint32_t>(extent - 1));
    };
    const Value other_rows = w_.compare("NE", part(below_m, plan_.cluster_m), in_m_);
    return w_.compare_and("NE", part(below_n, plan_.cluster_n), in_n_, other_rows);
  }

  Value maps_[2], row0_, column0_, asks_, first_work_;
  Value in_m_{-1, 0, File::Uniform}, in_n_{-1, 0, File::Uniform};  ///< of the cluster
  Value have_a_{-1, 0, File::Uniform}, have_b_{-1, 0, File::Uniform}, rows_share_, columns_share_;
  RingTurn turn_;
  Value depth_, before_;  ///< of who multiplies
};

/// ... of tiles that the threads copy.
class CopiedProduct : public GroupSums {
 public:
  using GroupSums::GroupSums;

  Kernel write(const SourcePosition& where) {
    find_places();
    clear();
    find_factors();
    if (plan_.by_registers)
      through_registers();
    else
      through_ring();
    store_tile();
    return w_.finish(where, "take a smaller tile, or fewer rows a warpgroup", plan_.threads(), 0);
  }

 private:
  int size() const { return bytes_of(plan_.type); }
  int parts() const { return a_.passes() + b_panels() * b_.passes(); }

  void find_places() {
    const int threads = plan_.threads(), in_chunk = kChunk / size();
    a_ = TileCopy(w_, plan_.tile_m, kRowBytes, threads, thread_);
    b_ = TileCopy(w_, plan_.b_turned ? plan_.tile_n : plan_.tile_k, kRowBytes, threads, thread_);
    a_.find_places();
    b_.find_places();
    const Value pitch = k_;
    if (plan_.parts > 1) find_part();
    const Value a_chunk = w_.shift_left(a_.chunk(), log2_of(in_chunk)),
                b_chunk = w_.shift_left(b_.chunk(), log2_of(in_chunk)), first = first_depth();
    const Value depth = w_.add(first, a_chunk), b_depth = w_.add(first, plan_.b_turned ? b_chunk : b_.row());
    const Value row = w_.mad(block_m_, imm(plan_.tile_m), a_.row()),
                column = w_.mad(block_n_, imm(plan_.tile_n), plan_.b_turned ? b_.row() : b_chunk);
    a_.at = element(pointers_[0], row, pitch, depth, plan_.type);
    b_.at = plan_.b_turned ? element(pointers_[1], column, pitch, b_depth, plan_.type)
                           : element(pointers_[1], b_depth, n_, column, plan_.type);
    a_.step = w_.wide_mad(pitch, imm(a_.rows_a_pass() * size()), kRZ);
    b_.step = w_.wide_mad(plan_.b_turned ? pitch : n_, imm(b_.rows_a_pass() * size()), kRZ);
    if (!plan_.b_turned) b_tile_ = w_.wide_mad(n_, imm(plan_.tile_k * size()), kRZ);
    left_ = subtract(k_, first);
    a_depth_left_ = subtract(k_, depth);
    b_depth_left_ = subtract(k_, b_depth);
    b_columns_left_ = subtract(n_, column);
    a_.rows_left = subtract(m_, row);
    b_.rows_left = plan_.b_turned ? b_columns_left_ : b_depth_left_;
  }

  void next_tile() {
    w_.advance(a_.at, imm(plan_.tile_k * size()));
    if (plan_.b_turned)
      w_.advance(b_.at, imm(plan_.tile_k * size()));
    else
      advance_by(w_, b_.at, b_tile_);
    for (const Value v : {left_, a_depth_left_, b_depth_left_}) w_.code.emit("IADD3", {v, v, imm(-plan_.tile_k), kRZ});
  }

  /// Hands on each of this thread's copies of a tile: whose it is, its pass, where it goes in a stage, whether its
  /// chunk lies inside, and how far along the rows it is.
  template <typename F>
  void for_each_copy(F&& f) {
    const Value a_inside = w_.compare("GE", a_depth_left_, imm(1));
    for (int pass = 0; pass < a_.passes(); ++pass) f(a_, pass, a_.offset(pass), a_inside, 0);
    for (int panel = 0; panel < b_panels(); ++panel) {
      const Value inside = plan_.b_turned ? w_.compare("GE", b_depth_left_, imm(1))
                                          : w_.compare("GE", b_columns_left_, imm(panel * kPanel + 1));
      for (int pass = 0; pass < b_.passes(); ++pass)
        f(b_, pass, plan_.a_bytes() + panel * panel_bytes() + b_.offset(pass), inside, panel * kRowBytes);
    }
  }

  void copy_tile(Value stage, Value when) {
    for_each_copy([&](TileCopy& of, int pass, int offset, Value inside, int along) {
      const Value to = w_.code.vector();
      w_.code.emit("IADD3", {to, of.place(pass), stage, base_});
      of.copy(pass, to, offset, inside, when, along);
    });
    next_tile();
    w_.code.emit("LDGDEPBAR");
  }
  Value more() { return w_.compare("GE", left_, imm(1)); }

  /// What threads have written is there for wgmma, of all threads.
  void hand_over() {
    w_.code.emit("FENCE.VIEW.ASYNC.S");
    w_.barrier();
  }
  void wait_for_products() { w_.code.emit("WARPGROUP.DEPBAR.LE", {scoreboard(0), imm(0)}); }

  void through_ring() {
    Code& c = w_.code;
    const Value depth = first_depth(), used = w_.number(0), freed = w_.number((plan_.stages - 1) * stage_bytes());
    // A part that has nothing multiplies a tile of zeros.
    for (int s = 0; s + 1 < plan_.stages; ++s) {
      c.place(c.new_label());
      copy_tile(w_.number(s * stage_bytes()), s == 0 ? kPT : more());
    }
    const Label loop = c.new_label();
    c.place(loop);
    c.emit("DEPBAR.LE", {scoreboard(0), imm(plan_.stages - 2)});
    hand_over();
    multiply(w_.add(used, base_));
    copy_tile(freed, more());
    wait_for_products();
    w_.assign(freed, used);
    const Value next = w_.add(used, imm(stage_bytes()));
    c.emit("SEL", {used, next, kRZ, w_.compare("NE", next, imm(plan_.stages * stage_bytes()))});
    c.emit("IADD3", {depth, depth, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", depth, k_));
  }

  void through_registers() {
    Code& c = w_.code;
    std::vector<Value> chunks(static_cast<std::size_t>(parts()));
    const Label loop = c.new_label();
    c.place(loop);
    std::size_t next = 0;
    for_each_copy(
        [&](TileCopy& of, int pass, int, Value inside, int along) { of.fetch(pass, chunks[next++], inside, along); });
    next = 0;
    for_each_copy([&](TileCopy& of, int pass, int offset, Value, int) {
      w_.store_shared(of.place(pass), offset, chunks[next++], kChunk, base_);
    });
    next_tile();
    hand_over();
    multiply(w_.copy(base_));
    wait_for_products();
    w_.barrier();
    c.branch(loop, more());
  }

  TileCopy a_, b_;
  Value left_, a_depth_left_, b_depth_left_, b_columns_left_, b_tile_;
};

}  // namespace

Kernel group_product(const ProductPlan& plan, const GpuModel& model, const std::string& name,
                     const SourcePosition& where) {
  if (plan.tma) return FetchedProduct(plan, model, name).write(where);
  return CopiedProduct(plan, model, name).write(where);
}

}  // namespace forewarp::sketch
