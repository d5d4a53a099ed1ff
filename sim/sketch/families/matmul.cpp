// Products of matrices, row-major: C[m][n] = A[m][k] B[k][n], a tile of C a block.
//
// mma: copies by cp.async run `stages` - 1 tiles ahead in a ring of shared memory, swizzled so that ldmatrix meets no
// bank conflict; with `ahead` the words of a step are fetched while the one before is multiplied.
// fma: a tile of each operand goes through registers into shared memory (A transposed), all wait, all multiply.
#include <algorithm>

#include "base/error.h"
#include "sketch/families/common.h"

namespace forewarp::sketch {
namespace {

constexpr int kChunk = 16;  ///< bytes of a copy
constexpr int kDepth = 16;  ///< of k in an mma of 16-bit types

struct Plan {
  std::int64_t m = 0, n = 0, k = 0;
  Type type = Type::F16;
  int tile_m = 0, tile_n = 0, tile_k = 0;
  int warp_m = 0, warp_n = 0, stages = 0;
  int thread_m = 8, thread_n = 8;
  bool ahead = true;
  bool mma() const { return type != Type::F32; }
  int threads() const {
    return mma() ? tile_m / warp_m * (tile_n / warp_n) * kWarpLanes : tile_m / thread_m * (tile_n / thread_n);
  }
  int a_bytes() const { return tile_m * tile_k * bytes_of(type); }
  int b_bytes() const { return tile_k * tile_n * bytes_of(type); }
  int shared_bytes() const { return (mma() ? stages : 1) * (a_bytes() + b_bytes()); }
};

class Product {
 public:
  Product(const Plan& plan, const GpuModel& model, const std::string& name) : plan_(plan), w_(model, name) {
    for (int& p : pointers_) p = w_.pointer_parameter();
    for (int& p : sizes_) p = w_.integer_parameter();
    w_.descriptor();
    thread_ = w_.thread();
    block_n_ = w_.copy(w_.block_x());
    block_m_ = w_.copy(w_.block_y());
    m_ = w_.integer(sizes_[0]);
    n_ = w_.integer(sizes_[1]);
    k_ = w_.integer(sizes_[2]);
    base_ = w_.shared_base();
  }

 protected:
  Value subtract(Value a, Value b) {
    const Value v = w_.code.vector();
    w_.code.emit("IADD3", {v, a, -b, kRZ});
    return v;
  }
  /// The address of element (row, column) of a matrix with so many in a row.
  Value element(int parameter, Value row, Value pitch, Value column) {
    const Value place = w_.code.vector(2);
    w_.assign(place, column);
    w_.code.emit("IMAD.MOV.U32", {place.at(1), kRZ, kRZ, kRZ});
    const Value sum = w_.wide_mad(row, pitch, place);
    const Value base = w_.pointer(parameter), carry = w_.code.predicate(), at = w_.code.vector(2);
    const int shift = log2_of(bytes_of(plan_.type));
    w_.code.emit("LEA", {at, carry, sum, base, imm(shift)});
    w_.code.emit("LEA.HI.X", {at.at(1), sum, base.at(1), sum.at(1), imm(shift), carry});
    return at;
  }
  void advance(Value pair, Value by) {
    const Value carry = w_.code.predicate();
    w_.code.emit("IADD3", {pair, carry, pair, by, kRZ});
    w_.code.emit("IADD3.X", {pair.at(1), pair.at(1), by.at(1), kRZ, carry, !kPT});
  }
  Value further(Value pair, Value by) {
    const Value sum = w_.code.vector(2), carry = w_.code.predicate();
    w_.code.emit("IADD3", {sum, carry, pair, by, kRZ});
    w_.code.emit("IADD3.X", {sum.at(1), pair.at(1), by.at(1), kRZ, carry, !kPT});
    return sum;
  }
  Value outside(Value left, int least, Value inside) {
    const Value p = w_.code.predicate();
    w_.code.emit("ISETP.LT.OR", {p, kPT, left, imm(least), !inside});
    return p;
  }

  const Plan& plan_;
  Writer w_;
  int pointers_[3]{}, sizes_[3]{};
  Value thread_, block_m_, block_n_, m_, n_, k_, base_;
};

class TensorProduct : public Product {
 public:
  using Product::Product;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    find_places();
    // The ring begins with as many tiles as it holds less one.
    for (int s = 0; s + 1 < plan_.stages; ++s) {
      c.place(c.new_label());
      const Value more = w_.compare("GT", tiles_, imm(s));
      for (int part = 0; part < parts(); ++part) copy(part, w_.number(s * stage_bytes()), more);
      next_tile();
      c.emit("LDGDEPBAR");
    }
    for (auto& row : sums_)
      for (Value& sum : row) {
        sum = c.vector(4);
        c.emit("CS2R", {sum, special(SpecialRegister::Zero)});
        c.emit("CS2R", {sum.at(2), special(SpecialRegister::Zero)});
      }
    const Value tile = w_.number(0), used = w_.number(0), freed = w_.number((plan_.stages - 1) * stage_bytes());
    if (plan_.ahead) {
      wait();
      load(0, base_, 0);
    }
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LT", tiles_, imm(1)));
    c.place(loop);
    const int steps = plan_.tile_k / kDepth;
    if (!plan_.ahead) wait();
    const Value more = w_.compare("LT", w_.add(tile, imm(plan_.stages - 1)), tiles_);
    Value stage = uniform(used);
    if (!plan_.ahead) {
      for (int part = 0; part < parts(); ++part) copy(part, freed, more);
      next_tile();
      c.emit("LDGDEPBAR");
    }
    for (int step = 0; step < steps; ++step) {
      if (plan_.ahead && step == steps - 1) {
        next_tile();
        c.emit("LDGDEPBAR");
        wait();
        turn(used, freed);
        stage = uniform(used);
      }
      if (plan_.ahead)
        load((step + 1) % 2, stage, (step + 1) % steps);
      else
        load(0, stage, step);
      if (plan_.ahead && step < steps - 1)
        for (int part = 0; part < parts(); ++part)
          if (part * (steps - 1) / parts() == step) copy(part, freed, more);
      multiply(plan_.ahead ? step % 2 : 0);
    }
    if (!plan_.ahead) turn(used, freed);
    c.emit("IADD3", {tile, tile, imm(1), kRZ});
    c.branch(loop, w_.compare("LT", tile, tiles_));
    c.place(done);
    store();
    return w_.finish(where, "take a smaller warp tile", plan_.threads(), 0);
  }

 private:
  static constexpr int kMostStrips = 8;
  struct Words {
    Value a[kMostStrips], b[kMostStrips];
  };

  int stage_bytes() const { return plan_.a_bytes() + plan_.b_bytes(); }
  int a_pitch() const { return plan_.tile_k * 2; }
  int b_pitch() const { return plan_.tile_n * 2; }
  int a_chunks() const { return a_pitch() / kChunk; }
  int b_chunks() const { return b_pitch() / kChunk; }
  int a_passes() const { return plan_.tile_m * a_chunks() / plan_.threads(); }
  int b_passes() const { return plan_.tile_k * b_chunks() / plan_.threads(); }
  int parts() const { return a_passes() + b_passes(); }
  int strips_m() const { return plan_.warp_m / 16; }
  int strips_n() const { return plan_.warp_n / 16; }

  /// Byte of (row, chunk) in a tile whose rows are so many chunks: chunks change places by row.
  Value place(Value row, Value chunk, int chunks) {
    const int ways = std::min(chunks, 8);
    const Value turned = w_.and_bits(w_.shift_right(row, 3 - log2_of(ways)), static_cast<std::uint32_t>(ways - 1));
    const Value swapped = w_.exclusive_or(chunk, turned);
    return w_.mad(row, imm(chunks * kChunk), w_.shift_left(swapped, 4));
  }

  void find_places() {
    const int threads = plan_.threads();
    const Value a_row = w_.shift_right(thread_, log2_of(a_chunks())),
                a_chunk = w_.and_bits(thread_, static_cast<std::uint32_t>(a_chunks() - 1));
    const Value b_row = w_.shift_right(thread_, log2_of(b_chunks())),
                b_chunk = w_.and_bits(thread_, static_cast<std::uint32_t>(b_chunks() - 1));
    const int a_rows = threads / a_chunks(), b_rows = threads / b_chunks();
    a_rows_a_pass_ = a_rows;
    b_rows_a_pass_ = b_rows;
    for (int p = 0; p < a_passes(); ++p)
      to_.push_back(p > 0 && a_rows % 8 == 0
                        ? to_[0]
                        : place(p == 0 ? a_row : w_.add(a_row, imm(p * a_rows)), a_chunk, a_chunks()));
    for (int p = 0; p < b_passes(); ++p)
      to_.push_back(p > 0 && b_rows % 8 == 0
                        ? to_[static_cast<std::size_t>(a_passes())]
                        : place(p == 0 ? b_row : w_.add(b_row, imm(p * b_rows)), b_chunk, b_chunks()));
    const Value row = w_.mad(block_m_, imm(plan_.tile_m), a_row), depth = w_.shift_left(a_chunk, 3);
    const Value column = w_.mad(block_n_, imm(plan_.tile_n), w_.shift_left(b_chunk, 3));
    a_at_ = element(pointers_[0], row, k_, depth);
    b_at_ = element(pointers_[1], b_row, n_, column);
    a_rows_left_ = subtract(m_, row);
    a_depth_left_ = subtract(k_, depth);
    b_depth_left_ = subtract(k_, b_row);
    b_columns_left_ = subtract(n_, column);
    a_step_ = w_.wide_mad(k_, imm(a_rows * 2), kRZ);
    b_step_ = w_.wide_mad(n_, imm(b_rows * 2), kRZ);
    b_tile_ = w_.wide_mad(n_, imm(plan_.tile_k * 2), kRZ);
    tiles_ = w_.shift_right(w_.add(k_, imm(plan_.tile_k - 1)), log2_of(plan_.tile_k));

    const Value lane = w_.and_bits(thread_, 31), warp = w_.shift_right(thread_, 5);
    const int across = plan_.tile_n / plan_.warp_n;
    const Value warp_row = w_.shift_right(warp, log2_of(across)),
                warp_column = w_.and_bits(warp, static_cast<std::uint32_t>(across - 1));
    row_ = w_.mad(warp_row, imm(plan_.warp_m), kRZ);
    column_ = w_.mad(warp_column, imm(plan_.warp_n), kRZ);
    lane_ = lane;
    const Value low = w_.and_bits(lane, 15), high = w_.shift_right(lane, 4);
    const Value a_first = place(w_.mad(warp_row, imm(plan_.warp_m), low), high, a_chunks());
    const Value b_first = place(low, w_.mad(warp_column, imm(plan_.warp_n / 8), high), b_chunks());
    for (int step = 0; step < plan_.tile_k / kDepth; ++step)
      a_from_.push_back(step == 0 ? a_first : w_.exclusive_or(a_first, imm(step * 32)));
    for (int strip = 0; strip < strips_n(); ++strip)
      b_from_.push_back(strip == 0 ? b_first : w_.exclusive_or(b_first, imm(strip * 32)));
    sums_.assign(static_cast<std::size_t>(strips_m()), std::vector<Value>(static_cast<std::size_t>(2 * strips_n())));
  }

  /// One of a tile's copies by this thread, into the stage that begins `stage` bytes into the ring.
  void copy(int part, Value stage, Value more) {
    Code& c = w_.code;
    const bool of_a = part < a_passes();
    const int pass = of_a ? part : part - a_passes();
    const int rows = of_a ? a_rows_a_pass_ : b_rows_a_pass_;
    if (pass == 0)
      at_ = of_a ? a_at_ : b_at_;
    else
      at_ = further(at_, of_a ? a_step_ : b_step_);
    if (pass == 0) inside_ = of_a ? w_.compare("GE", a_depth_left_, imm(1)) : w_.compare("GE", b_columns_left_, imm(1));
    const Value out = outside(of_a ? a_rows_left_ : b_depth_left_, pass * rows + 1, inside_);
    const Value to = c.vector();
    c.emit("IADD3", {to, to_[static_cast<std::size_t>(part)], stage, base_});
    const bool shifted = pass > 0 && rows % 8 == 0;
    const int offset = (of_a ? 0 : plan_.a_bytes()) + (shifted ? pass * rows * (of_a ? a_pitch() : b_pitch()) : 0);
    c.emit("LDGSTS.E.BYPASS.128", {shared(to, offset), global(at_, 0, w_.descriptor()), !out}).when(more);
  }

  void next_tile() {
    w_.advance(a_at_, imm(plan_.tile_k * 2));
    advance(b_at_, b_tile_);
    for (const Value v : {a_depth_left_, b_depth_left_}) w_.code.emit("IADD3", {v, v, imm(-plan_.tile_k), kRZ});
  }

  void wait() {
    w_.code.emit("DEPBAR.LE", {scoreboard(0), imm(plan_.stages - 2)});
    w_.barrier();
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

  /// Sets of words have one place each: they live across the loop's end.
  void load(int set, Value stage, int step) {
    Code& c = w_.code;
    Words& words = words_[set];
    for (int i = 0; i < strips_m(); ++i) {
      if (!plan_.ahead || words.a[i].id < 0) words.a[i] = c.vector(4);
      c.emit("LDSM.16.M88.4", {words.a[i], shared(a_from_[static_cast<std::size_t>(step)], i * 16 * a_pitch(), stage)});
    }
    for (int j = 0; j < strips_n(); ++j) {
      if (!plan_.ahead || words.b[j].id < 0) words.b[j] = c.vector(4);
      c.emit("LDSM.16.MT88.4", {words.b[j], shared(b_from_[static_cast<std::size_t>(j)],
                                                   plan_.a_bytes() + step * kDepth * b_pitch(), stage)});
    }
  }

  void multiply(int set) {
    const Words& words = words_[set];
    const char* mnemonic = plan_.type == Type::Bf16 ? "HMMA.16816.F32.BF16" : "HMMA.16816.F32";
    for (std::size_t i = 0; i < sums_.size(); ++i)
      for (std::size_t j = 0; j < sums_[i].size(); ++j)
        w_.code.emit(mnemonic, {sums_[i][j], words.a[i], words.b[j / 2].at(j % 2 == 0 ? 0 : 2), sums_[i][j]});
  }

  void store() {
    Code& c = w_.code;
    const Value first_row = w_.mad(block_m_, imm(plan_.tile_m), w_.mad(w_.shift_right(lane_, 2), imm(1), row_));
    const Value pair = w_.shift_left(w_.and_bits(lane_, 3), 1);
    const Value first_column = w_.mad(block_n_, imm(plan_.tile_n), w_.mad(pair, imm(1), column_));
    for (std::size_t i = 0; i < sums_.size(); ++i)
      for (int h = 0; h < 2; ++h) {
        const Label skip = c.new_label();
        const Value row = w_.add(first_row, imm(static_cast<int>(i) * 16 + h * 8));
        c.diverge(skip);
        c.branch(skip, w_.compare("GE", row, m_));
        const Value at = element(pointers_[2], row, n_, first_column);
        for (std::size_t j = 0; j < sums_[i].size(); ++j) {
          const Value beyond = w_.compare("GE", w_.add(first_column, imm(static_cast<int>(j) * 8)), n_);
          const Value packed = w_.fp(plan_.type == Type::Bf16 ? "F2FP.BF16.F32.PACK_AB" : "F2FP.F16.F32.PACK_AB",
                                     sums_[i][j].at(2 * h + 1), sums_[i][j].at(2 * h));
          w_.store_global(at, static_cast<int>(j) * 16, packed, 4, beyond, true);
        }
        c.converge(skip);
      }
  }

  int a_rows_a_pass_ = 0, b_rows_a_pass_ = 0;
  std::vector<Value> to_, a_from_, b_from_;
  Value a_at_, b_at_, a_rows_left_, a_depth_left_, b_depth_left_, b_columns_left_, a_step_, b_step_, b_tile_, tiles_;
  Value row_, column_, lane_, at_, inside_;
  Words words_[2];
  std::vector<std::vector<Value>> sums_;
};

class FloatProduct : public Product {
 public:
  using Product::Product;

  Kernel write(const SourcePosition& where) {
    Code& c = w_.code;
    const int fours_k = plan_.tile_k / 4, fours_n = plan_.tile_n / 4;
    const Value a_row = w_.shift_right(thread_, log2_of(fours_k)),
                a_column = w_.shift_left(w_.and_bits(thread_, static_cast<std::uint32_t>(fours_k - 1)), 2);
    const Value b_row = w_.shift_right(thread_, log2_of(fours_n)),
                b_column = w_.shift_left(w_.and_bits(thread_, static_cast<std::uint32_t>(fours_n - 1)), 2);
    const int across = plan_.tile_n / plan_.thread_n;
    const Value row = w_.mad(w_.shift_right(thread_, log2_of(across)), imm(plan_.thread_m), kRZ);
    const Value column = w_.mad(w_.and_bits(thread_, static_cast<std::uint32_t>(across - 1)), imm(plan_.thread_n), kRZ);
    const Value from_row = w_.mad(block_m_, imm(plan_.tile_m), a_row),
                to_column = w_.mad(block_n_, imm(plan_.tile_n), b_column);
    const Value a_at = element(pointers_[0], from_row, k_, a_column),
                b_at = element(pointers_[1], b_row, n_, to_column);
    const Value rows_in = w_.compare("LT", from_row, m_), columns_in = w_.compare("LT", to_column, n_);
    const Value b_tile = w_.wide_mad(n_, imm(plan_.tile_k * 4), kRZ);
    const Value a_to = w_.mad(a_column, imm(plan_.tile_m * 4), w_.shift_left(a_row, 2));
    const Value b_to = w_.mad(b_row, imm(plan_.tile_n * 4), w_.shift_left(b_column, 2));
    const Value a_from = w_.shift_left(row, 2), b_from = w_.shift_left(column, 2);
    const Value depth = w_.number(0);
    std::vector<std::vector<Value>> sums(static_cast<std::size_t>(plan_.thread_m));
    for (int r = 0; r < plan_.thread_m; ++r)
      for (int s = 0; s < plan_.thread_n; s += 4) {
        const Value four = c.vector(4);
        c.emit("CS2R", {four, special(SpecialRegister::Zero)});
        c.emit("CS2R", {four.at(2), special(SpecialRegister::Zero)});
        for (int e = 0; e < 4; ++e) sums[static_cast<std::size_t>(r)].push_back(four.at(e));
      }
    const Label loop = c.new_label(), done = c.new_label();
    c.branch(done, w_.compare("LT", k_, imm(1)));
    c.place(loop);
    const Value a = c.vector(4), b = c.vector(4);
    for (const Value v : {a, b}) {
      c.emit("CS2R", {v, special(SpecialRegister::Zero)});
      c.emit("CS2R", {v.at(2), special(SpecialRegister::Zero)});
    }
    w_.load_global(a, a_at, 0, 16, true, w_.compare_and("LT", w_.add(a_column, depth), k_, rows_in));
    w_.load_global(b, b_at, 0, 16, true, w_.compare_and("LT", w_.add(b_row, depth), k_, columns_in));
    for (int e = 0; e < 4; ++e) w_.store_shared(a_to, e * plan_.tile_m * 4, a.at(e), 4, base_);
    w_.store_shared(b_to, plan_.a_bytes(), b, 16, base_);
    w_.advance(a_at, imm(plan_.tile_k * 4));
    advance(b_at, b_tile);
    w_.barrier();
    for (int i = 0; i < plan_.tile_k; ++i) {
      std::vector<Value> x, y;
      for (int r = 0; r < plan_.thread_m; r += 4) {
        const Value v = w_.load_shared(a_from, i * plan_.tile_m * 4 + r * 4, 16, base_);
        for (int e = 0; e < 4; ++e) x.push_back(v.at(e));
      }
      for (int s = 0; s < plan_.thread_n; s += 4) {
        const Value v = w_.load_shared(b_from, plan_.a_bytes() + i * plan_.tile_n * 4 + s * 4, 16, base_);
        for (int e = 0; e < 4; ++e) y.push_back(v.at(e));
      }
      for (std::size_t s = 0; s < y.size(); ++s)
        for (std::size_t r = 0; r < x.size(); ++r) c.emit("FFMA", {sums[r][s], x[r], y[s], sums[r][s]});
    }
    w_.barrier();
    c.emit("IADD3", {depth, depth, imm(plan_.tile_k), kRZ});
    c.branch(loop, w_.compare("LT", depth, k_));
    c.place(done);
    const Value first_row = w_.mad(block_m_, imm(plan_.tile_m), row),
                first_column = w_.mad(block_n_, imm(plan_.tile_n), column);
    for (int r = 0; r < plan_.thread_m; ++r) {
      const Label skip = c.new_label();
      const Value at_row = w_.add(first_row, imm(r));
      c.diverge(skip);
      c.branch(skip, w_.compare("GE", at_row, m_));
      const Value at = element(pointers_[2], at_row, n_, first_column);
      for (int s = 0; s < plan_.thread_n; s += 4) {
        const Value beyond = w_.compare("GE", w_.add(first_column, imm(s)), n_);
        w_.store_global(at, s * 4, sums[static_cast<std::size_t>(r)][static_cast<std::size_t>(s)], 16, beyond, true);
      }
      c.converge(skip);
    }
    return w_.finish(where, "take fewer results a thread", plan_.threads(),
                     static_cast<std::uint32_t>(plan_.shared_bytes()));
  }
};

/// Extents of a tile, powers of two in a range.
void read_extents(const config::Node& node, std::initializer_list<int*> to, int least, int most) {
  const std::vector<config::Node> list = node.list(to.size(), to.size());
  std::size_t i = 0;
  for (int* extent : to) {
    *extent = static_cast<int>(list[i].integer(least, most));
    if (!is_power_of_two(*extent)) throw list[i].error("is " + std::to_string(*extent), "tiles are powers of two");
    ++i;
  }
}

void not_yet(config::Map& m, const char* key) {
  if (const auto node = m.find(key)) throw node->error("cannot be sketched yet", "leave it out");
}

}  // namespace

Draft draft_matmul(const std::string& id, const config::Node& node, const GpuModel& model) {
  Draft draft;
  Plan plan;
  node.read_map([&](config::Map& m) {
    const std::vector<config::Node> shape = m.at("shape").list(3, 3);
    std::int64_t* const extents[] = {&plan.m, &plan.n, &plan.k};
    for (std::size_t i = 0; i < 3; ++i) *extents[i] = shape[i].integer(1, 1 << 20);
    const auto type = m.find("type");
    if (type)
      plan.type = read_type(*type, {Type::F32, Type::F16, Type::Bf16});
    else
      draft.assume("type: f16, sums in f32");
    const int size = bytes_of(plan.type);
    for (std::size_t i = 1; i < 3; ++i)
      if (*extents[i] * size % kChunk != 0)
        throw shape[i].error("makes rows that are no whole 16-byte chunks",
                             "pad it to a multiple of " + std::to_string(kChunk / size));
    if (std::max({plan.m * plan.k, plan.k * plan.n, plan.m * plan.n}) >= std::int64_t{1} << 31)
      throw m.at("shape").error("has a matrix of 2^31 elements or more", "a sketch counts them in 32 bits");
    if (const auto copies = m.find("copies")) {
      switch (copies->choice({"async", "registers", "tma"})) {
        case 0:
          if (!plan.mma()) throw copies->error("async needs tensor cores in a sketch", "leave it out for f32");
          break;
        case 1:
          if (plan.mma()) throw copies->error("by registers cannot be sketched with tensor cores yet", "write async");
          break;
        default:
          throw copies->error("by TMA cannot be sketched yet", "write async");
      }
    }
    if (const auto math = m.find("math"))
      if (const std::size_t which = math->choice({"mma", "fma", "wgmma"}); which != (plan.mma() ? 0u : 1u))
        throw math->error(which == 2 ? "cannot be sketched yet" : "does not suit the type",
                          plan.mma() ? "write mma" : "write fma");
    for (const char* key : {"split_k", "persistent", "cluster", "order", "epilogue"}) not_yet(m, key);
    const auto given = [&](const char* key, const std::string& otherwise) {
      auto found = m.find(key);
      if (!found) draft.assume(std::string(key) + ": " + otherwise);
      return found;
    };
    if (plan.mma()) {
      plan.tile_m = plan.tile_n = 128, plan.tile_k = 32, plan.warp_m = 64, plan.warp_n = 32, plan.stages = 3;
      if (const auto tile = given("tile", "[128, 128, 32]"))
        read_extents(*tile, {&plan.tile_m, &plan.tile_n, &plan.tile_k}, 16, 256);
      const auto warp = given("warp", "[64, 32]");
      if (warp) read_extents(*warp, {&plan.warp_m, &plan.warp_n}, 16, 128);
      const config::Node& about = warp ? *warp : m.node();
      if (plan.warp_m > plan.tile_m || plan.warp_n > plan.tile_n)
        throw about.error("is larger than the block's tile", "give a tile that warps divide");
      if (plan.threads() > 1024)
        throw about.error("makes " + std::to_string(plan.threads()) + " threads of a block",
                          "1024 is the most: take larger warp tiles");
      if (const auto stages = given("stages", "3")) plan.stages = static_cast<int>(stages->integer(2, 8));
      if (const auto ahead = given("ahead", "true: words of the next step are fetched while one is multiplied"))
        plan.ahead = ahead->boolean();
      const int threads = plan.threads(), steps = plan.tile_k / kDepth;
      const auto deals = [&](int bytes, int row_bytes) {
        return bytes / kChunk % threads == 0 && threads % (row_bytes / kChunk) == 0;
      };
      if (plan.tile_n < 64 || !deals(plan.a_bytes(), plan.tile_k * 2) || !deals(plan.b_bytes(), plan.tile_n * 2))
        throw about.error("and the tile do not leave a whole number of 16-byte copies for each of " +
                              std::to_string(threads) + " threads",
                          "take a larger tile, n at least 64");
      if (plan.ahead && steps % 2 != 0)
        throw m.node().error("fetches words ahead in two sets, and has one step of k a tile",
                             "take a tile of k = 32 or more, or ahead: false");
    } else {
      plan.tile_m = plan.tile_n = 128, plan.tile_k = 8;
      if (const auto tile = given("tile", "[128, 128, 8]"))
        read_extents(*tile, {&plan.tile_m, &plan.tile_n, &plan.tile_k}, 4, 256);
      const auto thread = given("thread", "[8, 8]");
      if (thread) read_extents(*thread, {&plan.thread_m, &plan.thread_n}, 4, 16);
      const config::Node& about = thread ? *thread : m.node();
      const int threads = plan.tile_m * plan.tile_n / (plan.thread_m * plan.thread_n);
      if (plan.thread_m > plan.tile_m || plan.thread_n > plan.tile_n || threads > 1024 || threads < 32 ||
          plan.tile_m * plan.tile_k != threads * 4 || plan.tile_n * plan.tile_k != threads * 4)
        throw about.error("and the tile do not give each thread one 16-byte load of A and one of B",
                          "take a tile of m x k and n x k = 4 times the threads");
      draft.assume("copies: registers, 16 bytes a load, A stored transposed; the loop over a tile's k unrolled");
    }
  });
  const auto bytes = [&](std::int64_t rows, std::int64_t columns) {
    return static_cast<std::uint64_t>(rows * columns * bytes_of(plan.type));
  };
  Launch launch;
  launch.kernel = id;
  launch.where = node.where();
  launch.grid = {static_cast<std::uint32_t>(ceiling(plan.n, plan.tile_n)),
                 static_cast<std::uint32_t>(ceiling(plan.m, plan.tile_m)), 1};
  launch.block = {static_cast<std::uint32_t>(plan.threads()), 1, 1};
  launch.arguments = {pointer_to(draft.buffer("a", bytes(plan.m, plan.k), random_fill(plan.type))),
                      pointer_to(draft.buffer("b", bytes(plan.k, plan.n), random_fill(plan.type))),
                      pointer_to(draft.buffer("c", bytes(plan.m, plan.n), FillZero{}))};
  for (const std::int64_t extent : {plan.m, plan.n, plan.k}) launch.arguments.push_back(number_argument(extent));
  if (plan.mma()) {
    launch.dynamic_shared_bytes = static_cast<std::uint32_t>(plan.shared_bytes());
    draft.kernels.push_back(TensorProduct(plan, model, id).write(node.where()));
  } else {
    draft.kernels.push_back(FloatProduct(plan, model, id).write(node.where()));
  }
  draft.item.launches.push_back(std::move(launch));
  return draft;
}

}  // namespace forewarp::sketch
